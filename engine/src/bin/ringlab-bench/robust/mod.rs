//! `ringlab-bench robust`: random operations in parallel processes, sanitizers over small sizes, ranks killed at random moments; one file
//! says what came of it.

mod kills;
mod random;
mod sanitizers;

use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::{Value, json};

use crate::child::{read_json, write_json};
use crate::{copy, report, words};

const KINDS: [&str; 3] = ["random", "sanitizers", "kills"];

/// Tries to break the engine: random operations, compute-sanitizer, killed ranks. Ends with code 1 when anything was wrong.
#[derive(Debug, Parser)]
#[command(name = "ringlab-bench robust")]
pub struct Args {
    /// random, sanitizers and kills, or some of them. What is left out stays in --json's file as it was.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "random,sanitizers,kills",
          value_parser = clap::builder::PossibleValuesParser::new(KINDS))]
    only: Vec<String>,

    /// cuda or cpu; on cpu there are random operations alone.
    #[arg(long, value_name = "NAME", default_value = "cuda", value_parser = ["cuda", "cpu"])]
    backend: String,

    /// Random operations of all processes together.
    #[arg(long, value_name = "COUNT", default_value_t = 10_400, value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,

    /// Processes that run random operations at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 13, value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,

    /// Ranks to kill, over all families.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,

    /// Families of processes in which ranks are killed at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    families: u32,

    /// Of the first random operation and the first family; each process has its own.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Seconds that one process may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 550, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    deadline: u64,

    /// ringlab-perf; without, the one beside this program.
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,

    /// The engine's test program comm_gpu, which kills ranks; without, the one beside this program.
    #[arg(long, value_name = "PATH")]
    comm_gpu: Option<PathBuf>,

    /// compute-sanitizer of the CUDA toolkit.
    #[arg(long, value_name = "PATH", default_value = "compute-sanitizer")]
    sanitizer: PathBuf,

    /// Adds what was found to this file.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
}

/// What one kind of attempt found: its summary, and whether it held.
type Found = Result<(Value, bool), String>;

impl Args {
    fn beside(&self, given: Option<&PathBuf>, name: &str) -> Result<PathBuf, String> {
        let this = std::env::current_exe().unwrap_or_default();
        let path = given.cloned().unwrap_or_else(|| this.with_file_name(name));
        match path.is_file() {
            true => Ok(path),
            false => Err(format!("{} is not there; `cargo xtask bench robust` builds it", path.display())),
        }
    }

    fn wants(&self, kind: &str) -> bool {
        self.only.iter().any(|wanted| wanted == kind) && (self.backend == "cuda" || kind == "random")
    }
}

pub fn run(args: &Args) -> Result<bool, String> {
    let hardware = match args.backend.as_str() {
        "cuda" => copy::hardware(0)?,
        _ => random::cpu(&args.beside(args.ours.as_ref(), "ringlab-perf")?)?,
    };
    let ours = args.beside(args.ours.as_ref(), "ringlab-perf")?;
    let comm_gpu = match args.wants("kills") {
        true => Some(args.beside(args.comm_gpu.as_ref(), "comm_gpu")?),
        false => None,
    };
    let mut file = kept(args.json.as_deref(), &hardware)?;
    let mut held = true;
    for kind in KINDS.into_iter().filter(|kind| args.wants(kind)) {
        eprintln!("{kind}");
        let found: Found = match kind {
            "random" => random::run(args, &ours),
            "sanitizers" => sanitizers::run(args, &ours),
            _ => kills::run(args, comm_gpu.as_deref().expect("looked for above")),
        };
        let (mut summary, well) = found?;
        held &= well;
        summary["held"] = well.into();
        summary["finished_unix"] = report::now().into();
        println!("{kind}: {summary:#}");
        file[kind] = summary;
        // After each kind: the next one may be cut short by whoever lent the machine.
        if let Some(path) = &args.json {
            file["finished_unix"] = report::now().into();
            write_json(path, &file)?;
        }
    }
    Ok(held)
}

/// The file as it is to become, with what an earlier run of the same program on the same hardware found.
fn kept(path: Option<&Path>, hardware: &Value) -> Result<Value, String> {
    let mut file = json!({
        "version": 1,
        "program": "ringlab-bench",
        "kind": "robust",
        "engine_version": env!("CARGO_PKG_VERSION"),
        "commit": report::commit(),
        "command": std::env::args().map(|word| words::bare(&word)).collect::<Vec<_>>(),
        "environment": words::environment(),
        "hardware": hardware,
    });
    if let Some(path) = path.filter(|path| path.is_file()) {
        let before = read_json(path)?;
        let same = |key: &str| before[key] == file[key];
        if !(same("program") && same("kind") && same("commit") && same("hardware")) {
            return Err(format!(
                "{} is of another commit or machine; give another file with --json",
                path.display()
            ));
        }
        for kind in KINDS.into_iter().filter(|kind| before[kind].is_object()) {
            file[kind] = before[kind].clone();
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_run_of_the_same_program_found_is_kept() {
        let path = std::env::temp_dir().join(format!("ringlab-robust-{}.json", std::process::id()));
        let hardware = json!({"device": "H"});
        let mut file = kept(Some(&path), &hardware).unwrap();
        file["kills"] = json!({"kills": 3});
        write_json(&path, &file).unwrap();
        assert_eq!(kept(Some(&path), &hardware).unwrap()["kills"]["kills"], 3);
        let other = kept(Some(&path), &json!({"device": "other"})).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(other.contains("another commit or machine"), "{other}");
    }
}
