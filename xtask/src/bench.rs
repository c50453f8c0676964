//! `cargo xtask bench`: the runs behind the tables in `engine/PERFORMANCE.md`. What is measured and how is `ringlab-bench`'s; here programs
//! are built and called.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh::{self, Sh, say, timed};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// cpu: beside Open MPI and Gloo on two cores. gpu: beside NCCL on one GPU, and our kernels among each other. robust: random
    /// operations, sanitizers and killed ranks on a GPU.
    #[arg(value_enum)]
    what: What,

    /// Folder for the JSON files; what is there already is not measured again.
    #[arg(long, value_name = "FOLDER", default_value = ".ringlab/bench")]
    out: PathBuf,

    /// Flags for ringlab-bench, after `--`: for cpu those of a run, as --python or --rounds; for gpu and robust those of the command of
    /// that name, as --nccl.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Cpu,
    Gpu,
    Robust,
}

pub fn run(sh: &Sh, args: &Args) -> Result<()> {
    let commit = sh::output(sh.command("git").args(["describe", "--always", "--dirty", "--abbrev=12"]))?;
    let commit = commit.trim();
    let mut build = sh.cargo();
    build.args(["build", "--release", "--locked", "-p", "ringlab-engine", "--bins"]);
    if !matches!(args.what, What::Cpu) {
        build.args(["--features", "cuda"]);
    }
    timed("building release programs", || sh::run(build.env("RINGLAB_COMMIT", commit)))?;
    let program = sh.root.join("target/release/ringlab-bench");
    let out = sh.root.join(&args.out);
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let bench = || {
        let mut bench = sh.command(&program);
        bench.env("RINGLAB_COMMIT", commit);
        bench
    };
    match args.what {
        What::Cpu => cpu(&bench, &out, &args.rest)?,
        What::Gpu => sh::run(bench().arg("gpu").arg("--out").arg(&out).args(&args.rest))?,
        What::Robust => {
            let comm_gpu = timed("building the test program that kills ranks", || comm_gpu(sh, commit))?;
            let mut robust = bench();
            robust.arg("robust").arg("--comm-gpu").arg(comm_gpu);
            sh::run(robust.arg("--json").arg(out.join("robust.json")).args(&args.rest))?;
        }
    }
    say(format_args!(
        "the runs are in {0}; to publish them: target/release/ringlab-bench store {0}/*.json && target/release/ringlab-bench tables",
        args.out.display()
    ));
    Ok(())
}

/// Every collective beside every peer. One that fails does not keep the others from being measured.
fn cpu(bench: &dyn Fn() -> Command, out: &Path, rest: &[String]) -> Result<()> {
    const COLLECTIVES: [&str; 5] = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"];
    let mut failed = Vec::new();
    for (peer, collective) in ["openmpi", "gloo"].into_iter().flat_map(|peer| COLLECTIVES.map(|c| (peer, c)))
    {
        let name = format!("bench-{peer}-{}.json", collective.replace('_', "-"));
        let path = out.join(&name);
        if path.exists() {
            say(format_args!("{name} is there"));
            continue;
        }
        say(format_args!("{collective} beside {peer}"));
        let mut bench = bench();
        bench.args(["--peer", peer, "--collective", collective, "--ranks", "2,4", "--cores", "0,1"]);
        if let Err(why) = sh::run(bench.arg("--json").arg(path).args(rest)) {
            say(format_args!("{why:#}"));
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("not measured: {}; run the same command again for these alone", failed.join(", "));
    }
    Ok(())
}

/// Builds the engine's test `comm_gpu` and says where it is: its name carries a hash.
fn comm_gpu(sh: &Sh, commit: &str) -> Result<PathBuf> {
    let mut build = sh.cargo();
    build.args(["test", "--release", "--locked", "-p", "ringlab-engine", "--features", "cuda"]);
    build.args(["--test", "comm_gpu", "--no-run", "--message-format", "json"]).env("RINGLAB_COMMIT", commit);
    let messages = sh::output(&mut build)?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    // The package's binaries are built, and named, as well.
    let mut programs = messages.filter(|message| message["target"]["name"] == "comm_gpu");
    let found = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.context("cargo named no program of the test comm_gpu")
}
