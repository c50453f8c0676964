//! `cargo xtask content`: everything that is checked of the course and the bank, with citations where NCCL's source is at hand.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::sh::{self, Sh, say};

/// Git directories (or checkouts) to look citations up in, by the repository that a `source` block names.
const CHECKOUTS: [(&str, &str); 2] = [("NCCL_SRC", "NVIDIA/nccl"), ("NCCL_TESTS_SRC", "NVIDIA/nccl-tests")];

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(sh: &Sh, _: &Args) -> Result<()> {
    sh::run(sh.cargo().args([
        "build",
        "--quiet",
        "--locked",
        "-p",
        "ringlab-content",
        "--bin",
        "ringlab-content-check",
    ]))?;
    let mut check = sh.command(sh.root.join("target/debug/ringlab-content-check"));
    check.arg("--root").arg(&sh.root);
    for (variable, repo) in CHECKOUTS {
        let Some(folder) = std::env::var_os(variable).map(PathBuf::from) else {
            say(format!("{variable} is not set: citations of {repo} are checked for form alone"));
            continue;
        };
        if !folder.is_dir() {
            bail!(
                "{variable} is {}, which is no folder: give a git checkout of {repo} with its tags",
                folder.display()
            );
        }
        let mut option = std::ffi::OsString::from(format!("{repo}="));
        option.push(&folder);
        check.arg("--sources").arg(option);
    }
    for (variable, option) in [("RINGLAB_ORIGINALS", "--originals"), ("RINGLAB_ORIGINALS_ALLOW", "--allow")] {
        if let Some(path) = std::env::var_os(variable) {
            check.arg(option).arg(path);
        } else if option == "--originals" {
            say(format!(
                "{variable} is not set: the texts are not compared with the documents they were written from"
            ));
        }
    }
    sh::run(&mut check)
}
