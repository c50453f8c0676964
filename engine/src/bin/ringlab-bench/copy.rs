//! `ringlab-bench copy`: what the GPU's memory can do. Ranks that share a GPU cannot be faster than their bytes are read and written.

use std::path::PathBuf;

use clap::Parser;
use serde_json::{Value, json};

/// Large against every cache.
#[cfg(feature = "cuda")]
const BYTES: u64 = 1 << 30;
#[cfg(feature = "cuda")]
const ROUNDS: u32 = 10;

/// Measures the driver's copy of 1 GiB within a GPU's memory, ten rounds of eight copies.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench copy")]
pub struct Args {
    /// CUDA device.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    device: u32,

    /// Writes rounds, hardware and driver to this file.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<bool, String> {
    let (copy, hardware) = on(args.device)?;
    println!(
        "{:.0} GB/s read plus written by the driver's copy on {}, driver {}",
        copy["gb_s"].as_f64().unwrap_or(f64::NAN),
        hardware["device"].as_str().unwrap_or("?"),
        hardware["driver"].as_str().unwrap_or("?")
    );
    if let Some(path) = &args.json {
        let finished = crate::report::now();
        let file = json!({
            "version": 1,
            "program": "ringlab-bench",
            "kind": "copy",
            "commit": crate::report::commit(),
            "command": std::env::args().map(|word| crate::words::bare(&word)).collect::<Vec<_>>(),
            "finished_unix": finished,
            "hardware": hardware,
            "copy": copy,
        });
        crate::child::write_json(path, &file)?;
    }
    Ok(true)
}

/// For a run's own file. A process of its own measures: a context that stays open here would be in the way of what comes next.
pub fn measured(scratch: &crate::child::Scratch, device: u32) -> Result<Value, String> {
    let this =
        std::env::current_exe().map_err(|err| format!("cannot find this program to start it: {err}"))?;
    let path = scratch.path("copy.json");
    let line = crate::child::Line::new(this).args(["copy", "--device", &device.to_string(), "--json"]);
    line.arg(&path).run(std::time::Duration::from_secs(60))?;
    Ok(crate::child::read_json(&path)?["copy"].clone())
}

#[cfg(feature = "cuda")]
fn on(device: u32) -> Result<(Value, Value), String> {
    let hardware = hardware(device)?;
    let rounds = ringlab_engine::exec::cuda::copy_bandwidth(device, BYTES, ROUNDS);
    let rounds = rounds.map_err(|why| why.to_string())?;
    let rounds: Vec<f64> = rounds.into_iter().map(|bytes_per_second| bytes_per_second / 1e9).collect();
    let gb_s = crate::samples::median(&rounds);
    let copy = json!({"gb_s": gb_s, "bytes": BYTES, "counted": "read plus written", "rounds_gb_s": rounds});
    Ok((copy, hardware))
}

/// What is there, as files record it.
///
/// # Errors
/// When there is no such device, with what to do.
#[cfg(feature = "cuda")]
pub fn hardware(device: u32) -> Result<Value, String> {
    let all = ringlab_engine::exec::cuda::devices().map_err(|why| why.to_string())?;
    let info = all
        .get(device as usize)
        .ok_or_else(|| format!("there is no CUDA device {device}; the driver shows {}", all.len()))?;
    Ok(json!({"backend": "cuda", "device": info.name, "devices": 1, "driver": info.driver}))
}

#[cfg(not(feature = "cuda"))]
fn on(device: u32) -> Result<(Value, Value), String> {
    Err(hardware(device).expect_err("there is no back end"))
}

#[cfg(not(feature = "cuda"))]
pub fn hardware(_device: u32) -> Result<Value, String> {
    Err("this build has no CUDA back end; build with the feature `cuda`".into())
}
