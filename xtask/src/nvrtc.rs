//! NVIDIA's run-time compiler, as a Python package: it compiles every kernel without a GPU.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sh::{self, Sh, find, made_once};

/// Kernels are written for CUDA 13 (`cuda-13000` in the workspace's cudarc).
const WHEEL: &str = "nvidia-cuda-nvrtc>=13,<14";

/// Folder with `libnvrtc.so.13` and its builtins, for `LD_LIBRARY_PATH`.
pub fn ensure(sh: &Sh) -> Result<PathBuf> {
    let dir = sh.home.join("nvrtc");
    if !dir.exists() {
        sh::timed("fetching NVRTC, which compiles the GPU kernels (90 MB)", || {
            made_once(&dir, |partial| fetch(sh, partial))
        })?;
    }
    let lib = dir.join("nvidia/cu13/lib");
    if !lib.is_dir() {
        bail!(
            "{} has no nvidia/cu13/lib: the wheel's layout has changed; remove the folder and adapt xtask",
            dir.display()
        );
    }
    Ok(lib)
}

fn fetch(sh: &Sh, into: &std::path::Path) -> Result<()> {
    let Some(python) = find("python3") else {
        bail!("python3 with pip is needed to fetch {WHEEL}; install the packages python3 and python3-pip");
    };
    sh::output(
        sh.command(&python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet", "--dest"])
            .arg(into)
            .arg(WHEEL),
    )
    .context("pip cannot download NVRTC; if pip itself is missing, install the package python3-pip")?;
    for entry in fs::read_dir(into)? {
        let wheel = entry?.path();
        sh::output(sh.command(&python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(into))?;
        fs::remove_file(wheel)?;
    }
    Ok(())
}
