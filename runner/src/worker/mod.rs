//! The per-job process: one specification in, numbered events and one last line out.

mod collective;
mod limits;
mod report;
mod sink;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use ringlab_labs::job::{Backend, JobSpec, Level, SCHEMA, Task};
use ringlab_labs::wire::{Failure, FailureKind};

use crate::line::{Line, MAX_SPEC, Outcome, is_plain_name};
use sink::Sink;

/// Ends a task early.
#[derive(Debug)]
enum Stop {
    /// To be reported.
    Failure(Failure),
    /// The daemon cannot be reached or the folder not be written: nothing to report to.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Io(e)
    }
}

impl Stop {
    fn job(message: String) -> Stop {
        Stop::Failure(Failure { kind: FailureKind::Job, message })
    }

    fn limit(message: String) -> Stop {
        Stop::Failure(Failure { kind: FailureKind::Limit, message })
    }

    fn runner(message: String) -> Stop {
        Stop::Failure(Failure { kind: FailureKind::Runner, message })
    }
}

/// The subcommand `worker`. Status 0 means that the last line was written, whatever it says.
pub fn main(parent: Option<u32>) -> ExitCode {
    match run(parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("worker: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(parent: Option<u32>) -> anyhow::Result<()> {
    if let Some(parent) = parent {
        limits::die_with_parent(parent)?;
    }
    let out = take_stdout()?;
    let mut text = Vec::new();
    io::stdin().take(MAX_SPEC + 1).read_to_end(&mut text).context("reading the specification")?;
    if text.len() as u64 > MAX_SPEC {
        bail!("the specification is larger than {MAX_SPEC} bytes");
    }
    let spec: JobSpec = serde_json::from_slice(&text).context("reading the specification")?;
    drop(text);
    limits::apply(&spec.limits, uses_cuda(&spec))?;
    let mut sink = Sink::new(out, spec.limits.output_bytes);
    let last = match job(&spec, &mut sink) {
        Ok(outcome) => Line::Result(outcome),
        Err(Stop::Failure(failure)) => Line::Failure(failure),
        Err(Stop::Io(e)) => return Err(e).context("reporting"),
    };
    sink.end(&last).context("reporting the end")
}

fn job(spec: &JobSpec, sink: &mut Sink<File>) -> Result<Outcome, Stop> {
    check_spec(spec)?;
    report::opening(spec, sink)?;
    let mut outcome = Outcome { tasks: Vec::new(), artifacts: Vec::new(), engine: engine_version() };
    for task in &spec.tasks {
        match task {
            Task::Collective(task) => {
                let (result, produced) = collective::run(task, spec, sink)?;
                sink.task_done(result.clone())?;
                outcome.tasks.push(result);
                outcome.artifacts.extend(produced);
            }
        }
    }
    sink.log(Level::Info, "worker", "All tasks are done.")?;
    Ok(outcome)
}

fn check_spec(spec: &JobSpec) -> Result<(), Stop> {
    if spec.schema != SCHEMA {
        return Err(Stop::runner(format!(
            "The job is of schema {}; this worker reads {SCHEMA}.",
            spec.schema
        )));
    }
    let mut seen = BTreeSet::new();
    for Task::Collective(task) in &spec.tasks {
        if !is_plain_name(&task.id) || !seen.insert(&task.id) {
            return Err(Stop::job(format!(
                "Task id `{}` must be unique and of letters, digits, `.`, `_` and `-`.",
                task.id
            )));
        }
    }
    Ok(())
}

fn uses_cuda(spec: &JobSpec) -> bool {
    spec.tasks.iter().any(|Task::Collective(task)| task.backend == Backend::Cuda)
}

fn engine_version() -> String {
    format!("ringlab-engine {}", crate::version())
}

/// Keeps the real standard output for [`Line`]s alone and lets everything else that prints (a driver, device code) go to standard error.
fn take_stdout() -> anyhow::Result<File> {
    let own = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).context("keeping the standard output")?;
    rustix::stdio::dup2_stdout(io::stderr()).context("redirecting the standard output")?;
    Ok(File::from(own))
}
