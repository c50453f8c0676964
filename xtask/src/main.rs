//! `cargo xtask`: build, run and test. The only place that knows about toolchains; see README.md.

mod bench;
mod browser;
mod checks;
mod content;
mod grade;
mod nvrtc;
mod sh;
mod test;
mod toolchain;
mod up;
mod wasm;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Build, run and test Ringlab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build everything, migrate the database, start the server and a runner beside it, print the URL.
    Up(up::Args),
    /// Run what CI runs: format, lints, house rules, every test, the whole path in a browser.
    Test(test::Args),
    /// Build the browser's WebAssembly alone into .ringlab/pkg.
    Wasm,
    /// Measure the engine beside Gloo and Open MPI, or NCCL, in release builds. Nothing else may run on the machine meanwhile.
    Bench(bench::Args),
    /// Check the course and the interview bank; NCCL_SRC and NCCL_TESTS_SRC name checkouts in which citations are looked up.
    Content(content::Args),
    /// Grade answers of the interview bank with the deterministic grader.
    Grade(grade::Args),
    /// Fetch what the other commands need (WebAssembly target, NVRTC, a headless browser) and stop.
    Setup,
}

fn main() -> std::process::ExitCode {
    let run = || -> anyhow::Result<()> {
        let sh = sh::Sh::at_workspace_root()?;
        match Cli::parse().command {
            Command::Up(args) => up::run(&sh, &args),
            Command::Test(args) => test::run(&sh, &args),
            Command::Wasm => wasm::build(&sh).map(|_| ()),
            Command::Bench(args) => bench::run(&sh, &args),
            Command::Content(args) => content::run(&sh, &args),
            Command::Grade(args) => grade::run(&sh, &args),
            Command::Setup => {
                toolchain::ensure(&sh)?;
                nvrtc::ensure(&sh)?;
                browser::ensure(&sh).map(|_| ())
            }
        }
    };
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
