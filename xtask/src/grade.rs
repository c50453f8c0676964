//! `cargo xtask grade`: answers in, grades out. The grader is `ringlab-content`'s; here it is built and called, so that this crate stays quick.

use anyhow::Result;

use crate::sh::{self, Sh};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// FILE.jsonl with answers, --score, --explain, --samples, --report: as `ringlab-grade` takes them (content/interview/README.md).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    rest: Vec<String>,
}

pub fn run(sh: &Sh, args: &Args) -> Result<()> {
    let mut build = sh.cargo();
    build.args(["build", "--quiet", "--locked", "-p", "ringlab-content", "--bin", "ringlab-grade"]);
    // A report says how long grading takes.
    let report = args.rest.iter().any(|word| word == "--report");
    if report {
        build.arg("--release");
    }
    sh::run(&mut build)?;
    // Run where the caller stands, so that FILE means what it says there.
    let mut grade = std::process::Command::new(sh.root.join(if report {
        "target/release/ringlab-grade"
    } else {
        "target/debug/ringlab-grade"
    }));
    sh::run(grade.arg("--root").arg(&sh.root).args(&args.rest))
}
