//! `cargo xtask test`: what CI runs, in the order in which failures are cheap to find.

use anyhow::Result;

use crate::sh::{self, Sh, say, timed};
use crate::{browser, checks, nvrtc, up, wasm};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave out the tests that need a browser; the output says so.
    #[arg(long)]
    no_browser: bool,
}

pub fn run(sh: &Sh, args: &Args) -> Result<()> {
    timed("format", || sh::run(sh.cargo().args(["fmt", "--all", "--check"])))?;
    timed("house rules", || checks::run(sh))?;
    let nvrtc = nvrtc::ensure(sh)?;
    let browser = if args.no_browser { None } else { Some(browser::ensure(sh)?) };
    let building = wasm::start(sh)?;
    timed("lints", || {
        sh::run(sh.cargo().args([
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    timed("building the programs", || {
        sh::run(sh.cargo().args(["build", "--locked", "--workspace", "--bins"]))
    })?;
    let pkg = building.finish()?;
    timed("the course: structure, arithmetic, links, both languages", || {
        sh::run(sh.command(sh.root.join("target/debug/ringlab-content-check")).arg("--root").arg(&sh.root))
    })?;
    let mut tests = sh.cargo();
    tests.args(["test", "--locked", "--workspace"]);
    tests.env("LD_LIBRARY_PATH", up::joined(&nvrtc, "LD_LIBRARY_PATH")?).env("RINGLAB_REQUIRE_NVRTC", "1");
    tests
        .env("RINGLAB_BIN", sh.root.join("target/debug"))
        .env("RINGLAB_PKG", pkg)
        .env("RINGLAB_ROOT", &sh.root);
    match browser {
        Some(browser) => {
            tests.env("RINGLAB_CHROMIUM", browser.chromium).env("RINGLAB_CHROMEDRIVER", browser.driver);
        }
        None => {
            tests.env("RINGLAB_NO_BROWSER", "1");
        }
    }
    timed("tests", || sh::run(&mut tests))?;
    say(if args.no_browser { "all green, without the browser's tests" } else { "all green" });
    Ok(())
}
