//! `ringlab-bench store`: puts runs among the stored ones, under the names that `tables` looks for, without the folders of the machine
//! that made them.

use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;

use crate::child::{read_json, write_json};
use crate::words;

/// Copies runs among the stored ones: named after what they measured, and without the folders of the machine that made them.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench store")]
pub struct Args {
    /// Files of --json of ringlab-bench and its commands, and of ringlab-perf.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[arg(long, value_name = "FOLDER", default_value = "labs/measurements")]
    to: PathBuf,
}

pub fn run(args: &Args) -> Result<bool, String> {
    for file in &args.files {
        let mut json = read_json(file)?;
        clean(&mut json);
        let to = args.to.join(match named(&json) {
            Ok(name) => name,
            // Whoever measured by hand gave it a name.
            Err(_) if json["program"] == "ringlab-perf" => {
                file.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Err(why) => return Err(format!("{}: {why}", file.display())),
        });
        write_json(&to, &json)?;
        println!("{}", to.display());
    }
    Ok(true)
}

/// Cuts folders from the commands, and calls a peer what it is.
pub fn clean(json: &mut Value) {
    if let Some(command) = json.get_mut("command").and_then(Value::as_array_mut) {
        for word in command {
            if let Some(text) = word.as_str() {
                *word = words::bare(text).into();
            }
        }
    }
    for of_band in json.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten() {
        for side in ["ours", "theirs"] {
            if let Some(text) = of_band[side].as_str() {
                of_band[side] = words::line(text).into();
            }
        }
    }
    // Files of before nccl_perf was told from nccl-tests. Both run NCCL; this one says so in its first words.
    let library = json["peer"]["library"].as_str().unwrap_or("");
    if json["peer"]["name"] == "nccl-tests" && library.contains("in one process on device") {
        json["peer"]["name"] = "nccl_perf".into();
    }
}

/// The file's name among the stored runs.
pub fn named(json: &Value) -> Result<String, String> {
    let text = |pointer: &str| {
        let text = json.pointer(pointer).and_then(Value::as_str);
        text.map(|text| text.replace('_', "-")).ok_or_else(|| format!("it has no text at {pointer}"))
    };
    let device = || {
        let device = text("/hardware/device")?.to_lowercase();
        let words: Vec<&str> =
            device.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        Ok::<_, String>(words.join("-"))
    };
    match (json["program"].as_str(), json["kind"].as_str()) {
        (Some("ringlab-bench"), None | Some("beside")) => {
            let peer = text("/peer/name")?;
            let collective = text("/collective")?;
            let forced = json["forced"].as_str().map(|name| format!("-{name}")).unwrap_or_default();
            let rows = json["rows"].as_array().ok_or("it has no rows")?;
            let ranks: std::collections::BTreeSet<u64> =
                rows.iter().filter_map(|row| row["ranks"].as_u64()).collect();
            // A file for each number of ranks where ranks share a GPU.
            match (peer.as_str(), ranks.iter().copied().collect::<Vec<_>>().as_slice()) {
                ("nccl-perf", [one]) => Ok(format!("bench-nccl-{collective}{forced}-{one}.json")),
                (_, [one]) => Ok(format!("bench-{peer}-{collective}{forced}-{one}.json")),
                _ => Ok(format!("bench-{peer}-{collective}{forced}.json")),
            }
        }
        (Some("ringlab-bench"), Some(kind)) => Ok(format!("{kind}-{}.json", device()?)),
        (Some("ringlab-perf"), _) if json["settings"]["kernel"].as_str().is_some_and(|k| k != "auto") => {
            let ranks = json["settings"]["ranks"].as_u64().ok_or("it has no number of ranks")?;
            let (algorithm, kernel) = (text("/settings/algorithm")?, text("/settings/kernel")?);
            Ok(format!("kernels-{}-{algorithm}-{kernel}-{ranks}.json", text("/settings/collective")?))
        }
        _ => Err("it is of neither ringlab-bench nor a comparison of kernels by ringlab-perf".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_named_after_what_it_measured() {
        let mut run = json!({
            "program": "ringlab-bench", "collective": "all_gather", "rows": [{"ranks": 4}],
            "peer": {"name": "nccl-tests", "library": "nccl-library=23007 all_gather ranks 4 in one process on device 0"},
            "command": ["/opt/x/ringlab-bench", "--json", "/tmp/y.json"],
            "commands": [{"ours": "/opt/x/ringlab-perf -g 4", "theirs": "A=/b/c /n/nccl_perf -g 4"}],
        });
        clean(&mut run);
        assert_eq!(run["command"], json!(["ringlab-bench", "--json", "y.json"]));
        assert_eq!(run["commands"][0], json!({"ours": "ringlab-perf -g 4", "theirs": "A=c nccl_perf -g 4"}));
        assert_eq!(run["peer"]["name"], "nccl_perf");
        assert_eq!(named(&run).unwrap(), "bench-nccl-all-gather-4.json");
        run["forced"] = "ring".into();
        assert_eq!(named(&run).unwrap(), "bench-nccl-all-gather-ring-4.json");
        run["peer"]["name"] = "gloo".into();
        run["forced"] = Value::Null;
        run["rows"] = json!([{"ranks": 2}, {"ranks": 4}]);
        assert_eq!(named(&run).unwrap(), "bench-gloo-all-gather.json");
    }

    #[test]
    fn kernels_and_robustness_have_names_and_a_foreign_file_none() {
        let settings =
            json!({"collective": "all_reduce", "algorithm": "two_shot", "kernel": "fused", "ranks": 2});
        let perf = json!({"program": "ringlab-perf", "settings": settings});
        assert_eq!(named(&perf).unwrap(), "kernels-all-reduce-two-shot-fused-2.json");
        let robust =
            json!({"program": "ringlab-bench", "kind": "robust", "hardware": {"device": "NVIDIA H200"}});
        assert_eq!(named(&robust).unwrap(), "robust-nvidia-h200.json");
        let copy =
            json!({"program": "ringlab-bench", "kind": "copy", "hardware": {"device": "AMD EPYC (2 cores)"}});
        assert_eq!(named(&copy).unwrap(), "copy-amd-epyc-2-cores.json");
        assert!(named(&json!({"program": "other"})).is_err());
    }
}
