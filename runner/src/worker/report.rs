//! What a learner reads in the log. Figures with units; no bandwidths: labs ask for them.

use std::io::{self, Write};

use ringlab_engine::exec::{CheckReport, Hardware, Timing};
use ringlab_engine::plan::Plan;
use ringlab_engine::plan::layout::Layout;
use ringlab_engine::verify::Proof;
use ringlab_labs::job::{CollectiveTask, JobSpec, Level};

use super::sink::Sink;

/// Ranks listed one by one; beyond these, the smallest and largest.
const LISTED: usize = 16;

pub fn opening<W: Write>(spec: &JobSpec, sink: &mut Sink<W>) -> io::Result<()> {
    let tasks = spec.tasks.len();
    sink.log(
        Level::Info,
        "worker",
        format!("Job {}: lab {}, {tasks} {}, seed {}.", spec.job, spec.lab, plural(tasks, "task"), spec.seed),
    )?;
    let limits = &spec.limits;
    sink.log(
        Level::Info,
        "worker",
        format!(
            "Held by resource limits and a watchdog: {:.1} s of wall clock, {} of memory, {} of log, {:.1} s for one execution. The \
             full sandbox (namespaces, seccomp, cgroups) is not in place yet.",
            limits.wall_ms as f64 / 1e3,
            bytes(limits.memory_bytes),
            bytes(limits.output_bytes),
            limits.collective_ms as f64 / 1e3
        ),
    )
}

pub fn task<W: Write>(task: &CollectiveTask, sink: &mut Sink<W>) -> io::Result<()> {
    let size = task.block * task.dtype.size() as u64;
    let op = if task.collective.reduces() { format!(", {}", task.op) } else { String::new() };
    sink.log(
        Level::Info,
        "engine",
        format!(
            "Task {}: {} on {} ranks, backend {}; a block of {} {} elements ({}){op}, {}.",
            task.id,
            task.collective.name(),
            task.ranks,
            task.backend.name(),
            task.block,
            task.dtype,
            bytes(size),
            if task.in_place { "in place" } else { "out of place" }
        ),
    )
}

pub fn proof<W: Write>(
    plan: &Plan,
    proof: &Proof,
    task: &CollectiveTask,
    sink: &mut Sink<W>,
) -> io::Result<()> {
    sink.log(Level::Info, "engine", format!("Plan {}: {}", plan.name, proof.summary().en))?;
    let block = task.block as f64 * task.dtype.size() as f64;
    let in_bytes = |blocks: f64| bytes((blocks * block).round() as u64);
    sink.log(
        Level::Info,
        "engine",
        format!(
            "At this size: {} through the busiest rank; no plan can do with less than {}.",
            in_bytes(proof.busiest.blocks()),
            in_bytes(proof.lower_bound.blocks())
        ),
    )
}

pub fn layout<W: Write>(plan: &Plan, layout: &Layout, elem: usize, sink: &mut Sink<W>) -> io::Result<()> {
    sink.log(
        Level::Info,
        "engine",
        format!(
            "Cut: {} {} per block over {} {}; each program runs {} {}, a tile holds at most {} elements ({}).",
            plan.chunks,
            plural(plan.chunks as usize, "chunk"),
            plan.channels,
            plural(plan.channels as usize, "channel"),
            layout.tiles(),
            if layout.tiles() == 1 { "time" } else { "times" },
            layout.tile_elems(),
            bytes(layout.tile_elems() * elem as u64)
        ),
    )
}

pub fn hardware<W: Write>(hardware: &Hardware, ranks: u32, sink: &mut Sink<W>) -> io::Result<()> {
    sink.log(
        Level::Info,
        "engine",
        format!(
            "Hardware: {} × {} ({}), backend {}; {ranks} ranks share {}.",
            hardware.devices,
            hardware.device,
            hardware.driver,
            hardware.backend,
            if hardware.devices == 1 { "it".to_owned() } else { "them".to_owned() }
        ),
    )
}

pub fn times<W: Write>(
    times_us: &[f64],
    iterations: u32,
    timing: &Timing,
    sink: &mut Sink<W>,
) -> io::Result<()> {
    let average = times_us.iter().sum::<f64>() / times_us.len().max(1) as f64;
    let message = if timing.iterations.is_empty() {
        format!(
            "Measured: {iterations} executions back to back, {average:.2} us each on average; clock: {}.",
            timing.clock
        )
    } else {
        let least = times_us.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times_us.iter().copied().fold(0.0, f64::max);
        format!(
            "Measured: {iterations} executions, {average:.2} us on average ({least:.2} to {most:.2}); clock: {}.",
            timing.clock
        )
    };
    sink.log(Level::Info, "engine", message)
}

pub fn moved<W: Write>(moved: &[u64], sink: &mut Sink<W>) -> io::Result<()> {
    let message = if moved.len() <= LISTED {
        let each: Vec<String> =
            moved.iter().enumerate().map(|(rank, n)| format!("rank {rank}: {n}")).collect();
        format!(
            "Bytes that crossed between ranks in one execution, counted as they moved: {}.",
            each.join(", ")
        )
    } else {
        format!(
            "Bytes that crossed between ranks in one execution, counted as they moved: {} to {} per rank, {} over all {} ranks.",
            moved.iter().min().copied().unwrap_or(0),
            moved.iter().max().copied().unwrap_or(0),
            moved.iter().sum::<u64>(),
            moved.len()
        )
    };
    sink.log(Level::Info, "engine", message)
}

pub fn checked<W: Write>(report: &CheckReport, in_place: bool, sink: &mut Sink<W>) -> io::Result<()> {
    let what = if in_place { "every output" } else { "every output, and that no input changed" };
    match &report.first_wrong {
        None if report.wrong == 0 => {
            let message = format!("Checked {} elements exactly ({what}): none wrong.", report.elements);
            sink.log(Level::Info, "engine", message)
        }
        first => {
            let first = first.as_ref().map_or_else(String::new, |w| {
                format!(
                    " First: rank {}, element {}: expected {}, got {}.",
                    w.rank, w.index, w.expected, w.got
                )
            });
            let message =
                format!("Checked {} elements ({what}): {} wrong.{first}", report.elements, report.wrong);
            sink.log(Level::Error, "engine", message)
        }
    }
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Bytes for people, exact below 10 KiB.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 10 << 10 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_short_and_small_ones_exact() {
        assert_eq!(
            [bytes(0), bytes(10_007), bytes(1 << 20), bytes(3 << 29)],
            ["0 B", "10007 B", "1.0 MiB", "1.5 GiB"]
        );
    }
}
