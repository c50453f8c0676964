//! A Rust compiler that can produce WebAssembly: the installed one if it has the target, else with rustup, else Debian's.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::sh::{self, Sh, find, made_once, say};

const TARGET: &str = "wasm32-unknown-unknown";

/// What a WebAssembly build sets in its environment; empty when the installed toolchain has the target.
#[derive(Debug, Default)]
pub struct WasmToolchain {
    pub env: Vec<(&'static str, OsString)>,
}

pub fn ensure(sh: &Sh) -> Result<WasmToolchain> {
    if installed(sh)? {
        return Ok(WasmToolchain::default());
    }
    let prefix = sh.home.join("wasm-toolchain");
    if !prefix.exists() {
        if find("rustup").is_some() {
            say(format!("asking rustup for {TARGET}"));
            let added = sh.command("rustup").args(["target", "add", TARGET]).stdin(Stdio::null()).output();
            if added.is_ok_and(|out| out.status.success()) && installed(sh)? {
                return Ok(WasmToolchain::default());
            }
        }
        sh::timed(
            "rustup cannot provide it; unpacking Debian's compiler for WebAssembly into .ringlab (190 MB)",
            || made_once(&prefix, |partial| unpack_debian(sh, partial)),
        )?;
    }
    let wrapper = prefix.join("rustc");
    write_wrapper(&wrapper, &prefix)?;
    Ok(WasmToolchain {
        env: vec![
            ("RUSTC", wrapper.into()),
            ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker(sh)?.into()),
            // A compiler cache around the usual compiler must not sit around this one.
            ("RUSTC_WRAPPER", OsString::new()),
        ],
    })
}

fn rustc(sh: &Sh) -> Command {
    sh.command("rustc")
}

fn installed(sh: &Sh) -> Result<bool> {
    let dir = sh::output(rustc(sh).args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(Path::new(dir.trim()).is_dir())
}

/// `rust-lld` of the installed toolchain: Debian's compiler would call `lld`, which may be absent.
fn linker(sh: &Sh) -> Result<PathBuf> {
    let sysroot = sh::output(rustc(sh).args(["--print", "sysroot"]))?;
    let version = sh::output(rustc(sh).arg("-vV"))?;
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let lld = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/rust-lld");
    if lld.is_file() {
        return Ok(lld);
    }
    find("wasm-ld").or_else(|| find("lld")).context(
        "no linker for WebAssembly: the Rust toolchain has no rust-lld and there is no lld in PATH; install the package lld",
    )
}

/// Downloads with a private apt state: nothing is installed, no system file is touched, signatures are checked as always.
fn unpack_debian(sh: &Sh, prefix: &Path) -> Result<()> {
    for tool in ["apt-get", "apt-cache", "dpkg"] {
        if find(tool).is_none() {
            bail!(
                "the {TARGET} target is missing, rustup cannot add it and this system has no {tool}; \
                 add the target to your Rust toolchain by hand, then run this again"
            );
        }
    }
    let state = sh.home.join("apt");
    let debs = state.join("debs");
    for dir in [state.join("lists/partial"), state.join("cache/archives/partial"), debs.clone()] {
        fs::create_dir_all(&dir)?;
    }
    fs::write(state.join("status"), "")?;
    fs::write(state.join("sources.list"), source_line())?;
    // apt drops to the user _apt for downloads when run by root, who cannot write here.
    let mut options: Vec<String> = vec!["-o".into(), "APT::Sandbox::User=root".into()];
    for (key, value) in [
        ("Dir::Etc::sourcelist", state.join("sources.list")),
        ("Dir::Etc::sourceparts", "-".into()),
        ("Dir::State::lists", state.join("lists")),
        ("Dir::Cache", state.join("cache")),
        ("Dir::State::status", state.join("status")),
    ] {
        options.extend(["-o".into(), format!("{key}={}", value.display())]);
    }
    sh::output(sh.command("apt-get").args(&options).arg("update"))
        .context("cannot read Debian's package index of forky")?;
    let packages = packages(sh, &options)?;
    sh::output(sh.command("apt-get").current_dir(&debs).args(&options).arg("download").args(&packages))
        .context("cannot download Debian's compiler")?;
    for deb in fs::read_dir(&debs)? {
        sh::output(sh.command("dpkg").arg("-x").arg(deb?.path()).arg(prefix))?;
    }
    for unused in ["wasm32-wasip1", "wasm32-wasip2"] {
        let dir = prefix.join("usr/lib/rustlib").join(unused);
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
    }
    fs::remove_dir_all(&state).context("cannot remove the downloads")
}

/// The archive this system already uses, its suite replaced; a local mirror is kept.
fn source_line() -> String {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    files.extend(
        fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path()),
    );
    let mirror = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .find(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"))
        .unwrap_or_else(|| "http://deb.debian.org/debian".into());
    format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} forky main\n")
}

/// The compiler, its standard library for both targets, and the shared libraries it loads: versions in the names move with forky,
/// so they are read from the index.
fn packages(sh: &Sh, options: &[String]) -> Result<Vec<String>> {
    const WANTED: [&str; 15] = [
        "libstd-rust-",
        "libllvm",
        "libz3-",
        "libxml2",
        "libedit",
        "libtinfo",
        "libzstd",
        "libstdc++6",
        "libgcc-s1",
        "libc6",
        "zlib1g",
        "libbsd",
        "libmd",
        "libffi",
        "libncurses",
    ];
    let mut args = options.to_vec();
    args.extend(
        ["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"]
            .map(Into::into),
    );
    args.extend(["--no-replaces", "--no-enhances", "rustc", "libstd-rust-dev-wasm32"].map(Into::into));
    let closure = sh::output(sh.command("apt-cache").args(&args))?;
    let mut names: Vec<String> = closure
        .lines()
        .filter(|line| !line.starts_with([' ', '|', '<']))
        .map(|line| line.trim().to_owned())
        .filter(|name| name == "rustc" || WANTED.iter().any(|wanted| name.starts_with(wanted)))
        .filter(|name| !name.ends_with("-dev") || name == "libstd-rust-dev")
        .filter(|name| !name.contains(':'))
        .collect();
    names.sort();
    names.dedup();
    if !names.iter().any(|name| name == "libstd-rust-dev-wasm32") {
        bail!("Debian's index of forky has no libstd-rust-dev-wasm32 (found: {})", names.join(" "));
    }
    Ok(names)
}

/// Runs Debian's compiler with its own loader and libraries, so that an older C library of this system does not matter.
fn write_wrapper(path: &Path, prefix: &Path) -> Result<()> {
    let p = prefix.display();
    let text = format!(
        "#!/bin/sh\nexec '{p}/usr/lib64/ld-linux-x86-64.so.2' --argv0 '{p}/usr/bin/rustc' \
         --library-path '{p}/usr/lib/x86_64-linux-gnu:{p}/usr/lib' '{p}/usr/bin/rustc' --sysroot '{p}/usr' \"$@\"\n"
    );
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
