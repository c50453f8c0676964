//! One attempt at one job, from its assignment to what is to be reported: worker, upload, clean-up. It knows nothing of the connection.

use std::sync::Arc;
use std::time::Instant;

use ringlab_labs::job::{EventBody, HardwareInfo, JobResult, JobSpec, Level, SCHEMA, Task};
use ringlab_labs::wire::{Failure, FailureKind, LeaseRef};
use tokio::sync::{mpsc, watch};

use super::upload::Uploader;
use crate::folder::{JobFolder, Slot};
use crate::line::{MAX_ARTIFACTS, Outcome, is_plain_name};
use crate::supervise::{End, Order, supervise};

/// What an attempt reports to the agent.
#[derive(Debug)]
pub enum Report {
    Event {
        at_ms: u64,
        body: EventBody,
    },
    /// The last one; the worker and its folder are gone.
    Finished(Finished),
}

#[derive(Debug)]
pub enum Finished {
    Result(Box<JobResult>),
    Failure(Failure),
    Stopped,
}

/// What every attempt of a daemon needs.
#[derive(Debug)]
pub struct Node {
    pub slot: Slot,
    pub uploader: Uploader,
    pub hardware: HardwareInfo,
}

pub async fn run(
    node: Arc<Node>,
    lease: LeaseRef,
    spec: JobSpec,
    orders: watch::Receiver<Order>,
    // Without a bound, so that the watchdog never waits for a lost connection; the job's output limit bounds it.
    reports: mpsc::UnboundedSender<Report>,
) {
    let finished = attempt(&node, &lease, &spec, orders, &reports).await;
    // The agent outlives its attempts; without it there is nobody to tell.
    let _ = reports.send(Report::Finished(finished));
}

async fn attempt(
    node: &Node,
    lease: &LeaseRef,
    spec: &JobSpec,
    mut orders: watch::Receiver<Order>,
    reports: &mpsc::UnboundedSender<Report>,
) -> Finished {
    if let Err(message) = can_run(lease, spec, &node.hardware) {
        return Finished::Failure(Failure { kind: FailureKind::Runner, message });
    }
    let folder = match node.slot.job(lease) {
        Ok(folder) => folder,
        Err(e) => {
            let message = format!("The runner cannot prepare a working directory: {e:#}");
            return Finished::Failure(Failure { kind: FailureKind::Runner, message });
        }
    };
    let started = Instant::now();
    let at_ms = || started.elapsed().as_millis() as u64;
    let mut report = |at_ms: u64, body: EventBody| {
        let _ = reports.send(Report::Event { at_ms, body });
    };
    let end = supervise(spec, folder.path(), orders.clone(), &mut report).await;
    let outcome = match end {
        End::Done(outcome) => outcome,
        End::Failed(failure) => {
            let message = failure.message.clone();
            report(at_ms(), EventBody::Log { level: Level::Error, source: "runner".into(), message });
            return Finished::Failure(failure);
        }
        End::Stopped => return Finished::Stopped,
    };
    tokio::select! {
        // A stop of the job also stops its uploads.
        _ = orders.wait_for(|order| *order == Order::Stop) => Finished::Stopped,
        finished = hand_in(node, outcome, &folder, |body| report(at_ms(), body)) => finished,
    }
}

/// Whether this runner can take the job at all; the text says why not.
fn can_run(lease: &LeaseRef, spec: &JobSpec, hardware: &HardwareInfo) -> Result<(), String> {
    if spec.schema != SCHEMA {
        return Err(format!(
            "The job is of schema {}, this runner ({}) speaks {SCHEMA}: bring server and runner to the same version.",
            spec.schema,
            crate::version()
        ));
    }
    if spec.job != lease.job || !is_plain_name(&spec.job) {
        return Err(format!("The lease names the job `{}`, its specification `{}`.", lease.job, spec.job));
    }
    for Task::Collective(task) in &spec.tasks {
        if !hardware.backends.contains(&task.backend) {
            let has: Vec<_> = hardware.backends.iter().map(|b| b.name()).collect();
            return Err(format!(
                "Task {} needs the backend {}; this runner offers {}.",
                task.id,
                task.backend.name(),
                has.join(", ")
            ));
        }
    }
    Ok(())
}

async fn hand_in(
    node: &Node,
    outcome: Outcome,
    folder: &JobFolder,
    mut report: impl FnMut(EventBody),
) -> Finished {
    if outcome.artifacts.len() > MAX_ARTIFACTS {
        let message =
            format!("The job left {} files; at most {MAX_ARTIFACTS} are kept.", outcome.artifacts.len());
        return Finished::Failure(Failure { kind: FailureKind::Limit, message });
    }
    let total = outcome.artifacts.len() as u32;
    let mut artifacts = Vec::new();
    for (done, produced) in (1..).zip(&outcome.artifacts) {
        match node.uploader.upload(folder.path(), produced).await {
            Ok(artifact) => artifacts.push(artifact),
            Err(e) => {
                let message = format!("A file of the result could not be handed in: {e:#}");
                report(EventBody::Log {
                    level: Level::Error,
                    source: "runner".into(),
                    message: message.clone(),
                });
                return Finished::Failure(Failure { kind: FailureKind::Runner, message });
            }
        }
        report(EventBody::Progress { task: String::new(), done, total, phase: "upload".into() });
    }
    Finished::Result(Box::new(JobResult {
        schema: SCHEMA,
        hardware: node.hardware.clone(),
        tasks: outcome.tasks,
        artifacts,
        engine: outcome.engine,
    }))
}
