//! The node daemon: holds at most one lease, runs its job in a worker process, and reports to the server.

mod agent;
mod attempt;
mod backoff;
mod connection;
mod outbox;
mod upload;
mod work;

use anyhow::Context;
use ringlab_labs::wire::LeaseRef;
use rustix::process::DumpableBehavior;

use crate::config::Config;

/// Runs until told to stop by a signal, or refused by the server. Must run on the process's main thread (see
/// [`crate::supervise::supervise`]).
pub async fn run(config: Config) -> anyhow::Result<()> {
    // Workers run as the same user: keep them from reading the token out of this process's memory and environment.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .context("protecting the runner's memory")?;
    let stop = agent::stop_signals()?;
    tracing::info!(name = %config.name, server = %config.server, version = crate::version(), "ringlab-runner");
    tracing::warn!(
        "jobs are held by resource limits and a watchdog; the full sandbox (namespaces, seccomp, cgroups) is not in place yet: \
         run this as a user that owns nothing of worth"
    );
    if config.server.is_in_clear() {
        tracing::warn!("the connection is not encrypted: the token and all jobs can be read on the way");
    }
    let slot = crate::folder::Slot::take(&config.work)?;
    let hardware = {
        let folder = slot.job(&LeaseRef { job: "self-test".into(), attempt: 0 })?;
        crate::selftest::tested_hardware(&config.backends, folder.path()).await?
    };
    tracing::info!(
        cpu = %hardware.cpu,
        cores = hardware.cores,
        gpus = hardware.gpus.len(),
        backends = ?hardware.backends,
        "hardware"
    );
    let uploader = upload::Uploader::new(&config)?;
    let node = attempt::Node { slot, uploader, hardware };
    agent::Agent::new(config, node, stop).run().await
}
