//! `cargo xtask bench`: the engine beside its peers, with the arguments behind the tables in `engine/PERFORMANCE.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::sh::{self, Sh, say, timed};

/// Where the runs are that the tables quote.
const STORED: &str = "labs/measurements";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// cpu: beside Open MPI and Gloo on two cores. gpu: beside nccl-tests on one GPU.
    #[arg(value_enum)]
    what: What,

    /// Folder for the JSON files.
    #[arg(long, value_name = "FOLDER", default_value = STORED)]
    out: PathBuf,

    /// Flags for every ringlab-bench run, after `--`: as --python, --nccl-tests, --rounds or --cores.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    Cpu,
    Gpu,
}

pub fn run(sh: &Sh, args: &Args) -> Result<()> {
    let commit = sh::output(sh.command("git").args(["describe", "--always", "--dirty", "--abbrev=12"]))?;
    let mut build = sh.cargo();
    build.args(["build", "--release", "--locked", "-p", "ringlab-engine", "--bins"]);
    if matches!(args.what, What::Gpu) {
        build.args(["--features", "cuda"]);
    }
    build.env("RINGLAB_COMMIT", commit.trim());
    timed("building release programs", || sh::run(&mut build))?;
    let program = sh.root.join("target/release/ringlab-bench");
    let out = sh.root.join(&args.out);
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    for (peer, collective, fixed) in runs(args.what) {
        let name = format!("bench-{peer}-{}.json", collective.replace('_', "-"));
        say(format_args!("{collective} beside {peer}"));
        let mut bench = Command::new(&program);
        bench.current_dir(&sh.root).args(["--peer", peer, "--collective", collective]).args(fixed);
        bench.arg("--json").arg(out.join(name)).args(&args.rest);
        sh::run(&mut bench)?;
    }
    if args.out == Path::new(STORED) {
        sh::run(Command::new(&program).current_dir(&sh.root).arg("tables"))?;
    }
    Ok(())
}

/// Peer, collective, and the flags of its table.
fn runs(what: What) -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    const COLLECTIVES: [&str; 5] = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"];
    match what {
        What::Cpu => {
            let flags: &[&str] = &["--ranks", "2,4", "--cores", "0,1"];
            let peers = ["openmpi", "gloo"];
            peers
                .into_iter()
                .flat_map(|peer| COLLECTIVES.map(|collective| (peer, collective, flags)))
                .collect()
        }
        What::Gpu => {
            let flags: &[&str] = &["--ranks", "2,4,8", "--our-arg=--devices=0"];
            COLLECTIVES.map(|collective| ("nccl-tests", collective, flags)).to_vec()
        }
    }
}
