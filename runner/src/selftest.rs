//! Before a runner offers a backend it runs a small all-reduce on it, the way every job will be run, and checks every element.

use std::path::Path;

use anyhow::{Context, bail};
use ringlab_engine::plan::{self, Algorithm};
use ringlab_engine::types::{Collective, DType, RedOp};
use ringlab_labs::job::{Backend, CollectiveTask, EventBody, HardwareInfo, JobSpec, Limits, SCHEMA, Task};
use tokio::sync::watch;

use crate::hardware::{built_backends, discover};
use crate::supervise::{End, Order, supervise};

/// The machine with the backends that passed. `wanted` are required to pass; none given: all of this build that do.
pub async fn tested_hardware(wanted: &[Backend], folder: &Path) -> anyhow::Result<HardwareInfo> {
    let mut hardware = discover().await;
    let candidates = if wanted.is_empty() { built_backends() } else { wanted.to_vec() };
    for backend in candidates {
        if backend == Backend::Cuda && hardware.gpus.is_empty() && wanted.is_empty() {
            continue;
        }
        match test(backend, folder).await {
            Ok(()) if hardware.backends.contains(&backend) => {}
            Ok(()) => hardware.backends.push(backend),
            Err(e) if wanted.is_empty() => tracing::warn!("backend {} is not offered: {e:#}", backend.name()),
            Err(e) => return Err(e.context(format!("the backend {} was asked for", backend.name()))),
        }
    }
    if hardware.backends.is_empty() {
        bail!("no backend passed its self-test; the lines above say why");
    }
    Ok(hardware)
}

async fn test(backend: Backend, folder: &Path) -> anyhow::Result<()> {
    let spec = spec(backend)?;
    let (_keep, orders) = watch::channel(Order::Work);
    let mut errors = Vec::new();
    let mut note = |_, body| {
        if let EventBody::Log { message, .. } = body {
            tracing::debug!(backend = backend.name(), message);
            errors.push(message);
        }
    };
    match supervise(&spec, folder, orders, &mut note).await {
        End::Done(outcome) => {
            let wrong: u64 = outcome.tasks.iter().map(|t| t.wrong).sum();
            let elements: u64 = outcome.tasks.iter().map(|t| t.elements).sum();
            if wrong > 0 || elements == 0 {
                bail!("self-test: {wrong} of {elements} elements wrong: {}", errors.join("; "));
            }
            Ok(())
        }
        End::Failed(failure) => bail!("self-test failed: {}", failure.message),
        End::Stopped => bail!("self-test interrupted"),
    }
}

fn spec(backend: Backend) -> anyhow::Result<JobSpec> {
    let ranks = 2;
    let plan = plan::generate(Algorithm::Ring, Collective::AllReduce, ranks, 1)
        .context("making the self-test's plan")?;
    Ok(JobSpec {
        schema: SCHEMA,
        job: format!("self-test-{}", backend.name()),
        lab: "self-test".into(),
        lab_version: String::new(),
        seed: 1,
        tasks: vec![Task::Collective(CollectiveTask {
            id: "all-reduce".into(),
            backend,
            plan: plan::text::print(&plan),
            collective: Collective::AllReduce,
            ranks,
            // Odd: the last tile is a part of one.
            block: 10_007,
            dtype: DType::F32,
            op: RedOp::Sum,
            in_place: false,
            warmup: 1,
            iterations: 2,
            trace: false,
        })],
        limits: Limits {
            // A first CUDA start compiles the kernels.
            wall_ms: if backend == Backend::Cuda { 120_000 } else { 20_000 },
            memory_bytes: 1 << 30,
            output_bytes: 1 << 20,
            collective_ms: 5_000,
        },
    })
}
