//! Running other programs, and saying so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The workspace and the folder that holds all that these commands fetch or make, apart from cargo's own.
#[derive(Debug)]
pub struct Sh {
    pub root: PathBuf,
    pub home: PathBuf,
}

impl Sh {
    pub fn at_workspace_root() -> Result<Sh> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("the xtask folder has no parent")?.to_owned();
        let home = root.join(".ringlab");
        fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
        Ok(Sh { root, home })
    }

    /// A command that starts in the workspace root.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// `cargo` itself, as the alias was started with it.
    pub fn cargo(&self) -> Command {
        let mut command = self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // What `cargo run` sets for this program is not meant for the builds it starts.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST")
                || name == "CARGO_CRATE_NAME"
            {
                command.env_remove(name.as_ref());
            }
        }
        command
    }
}

/// Tells what happens now, in words.
pub fn say(text: impl std::fmt::Display) {
    eprintln!("\x1b[1m==>\x1b[0m {text}");
}

/// Tells what a longer piece of work is and, afterwards, how long it took.
pub fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(what);
    let start = Instant::now();
    let value = work().with_context(|| format!("while: {what}"))?;
    let seconds = start.elapsed().as_secs_f64();
    if seconds >= 1.0 {
        eprintln!("    {seconds:.0} s");
    }
    Ok(value)
}

/// Runs to its end with our output; an exit status other than 0 is an error that shows the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs quietly; on failure the error carries what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let out =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))?;
    if !out.status.success() {
        bail!(
            "{} ended with {}\n{}{}",
            shown(command),
            out.status,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// First folder of `PATH` that holds this program.
pub fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// A folder made once: built beside its place by `make` and moved there only when complete, so that an interrupted download leaves
/// nothing that looks finished.
pub fn made_once(dir: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let partial = dir.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    make(&partial)?;
    fs::rename(&partial, dir).with_context(|| format!("cannot move {} into place", partial.display()))
}

fn shown(command: &Command) -> String {
    let mut text = Path::new(command.get_program()).display().to_string();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}
