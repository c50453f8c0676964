//! The JSON file of a run: every figure with what it was measured on and how.

use ringlab_engine::exec::Hardware;
use serde_json::{Value, json};

use crate::bench::{Measured, Settings, Shape};

/// Version of the file's structure.
const VERSION: u32 = 1;

/// One line of the table; `in_place` is null where the collective has no such thing.
pub fn row(
    shape: Shape,
    channels: u32,
    dtype: &str,
    redop: &str,
    root: i64,
    out_of_place: &Measured,
    in_place: Option<&Measured>,
) -> Value {
    json!({
        "size": shape.bytes,
        "count": shape.count,
        "channels": channels,
        "type": dtype,
        "redop": redop,
        "root": root,
        "out_of_place": half(out_of_place),
        "in_place": in_place.map(half),
    })
}

fn half(measured: &Measured) -> Value {
    let first = measured.first_wrong.as_ref();
    json!({
        "time_us": measured.cells.time_us,
        "algbw_gb_s": measured.cells.algbw,
        "busbw_gb_s": measured.cells.busbw,
        "wrong": measured.cells.wrong,
        "first_wrong": first.map(|w| json!({"rank": w.rank, "index": w.index, "expected": w.expected, "got": w.got})),
        "rounds_us": measured.rounds_us,
        "moved_bytes_per_rank": measured.moved_bytes,
    })
}

/// The whole file.
pub fn file(
    settings: &Settings,
    hardware: &Hardware,
    algorithm: &str,
    rows: Vec<Value>,
    wrong: u64,
    mean_busbw: f64,
) -> Value {
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let plan = &settings.plan;
    json!({
        "version": VERSION,
        "program": "ringlab-perf",
        "engine_version": env!("CARGO_PKG_VERSION"),
        "commit": commit(),
        "command": std::env::args().collect::<Vec<_>>(),
        "finished_unix": seconds,
        "hardware": {
            "backend": hardware.backend,
            "device": hardware.device,
            "driver": hardware.driver,
            "devices": hardware.devices,
            "kernel": hardware.kernel,
        },
        "settings": {
            "collective": plan.collective.name(),
            "algorithm": algorithm,
            "ranks": plan.ranks,
            "slot_bytes": settings.slot_bytes,
            "iters": settings.iters,
            "rounds": settings.rounds,
            "warmup_iters": settings.warmup,
            "checks": settings.checks,
            "kernel": settings.kernel.name(),
            "graph_replays": settings.replays,
            "timed": "host monotonic clock over iters executions back to back, divided by iters; median of rounds",
        },
        "rows": rows,
        "out_of_bounds": wrong,
        "mean_busbw_gb_s": mean_busbw,
    })
}

/// The commit this program was built from: set `RINGLAB_COMMIT` when building or running; null when neither was done.
pub fn commit() -> Option<String> {
    option_env!("RINGLAB_COMMIT").map(Into::into).or_else(|| std::env::var("RINGLAB_COMMIT").ok())
}
