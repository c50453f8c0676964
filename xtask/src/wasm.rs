//! The browser's half: `web/hydrate`, `web/preview` and `web/reader` compiled to WebAssembly and given their JavaScript by wasm-bindgen, used as a library.
//!
//! No `wasm-opt`, not even where it is installed: measured, it saved 0.2 % after brotli, and an older one wrote a module that
//! browsers refuse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use crate::sh::{Sh, say};
use crate::toolchain;

/// A module as cargo names it and as pages load it: `/pkg/ringlab.js`, `/pkg/ringlab_bg.wasm`.
const MODULES: [(&str, &str); 3] =
    [("ringlab_hydrate", "ringlab"), ("ringlab_preview", "preview"), ("ringlab_reader", "reader")];

/// A running build, so that the host build can go on beside it.
#[derive(Debug)]
pub struct Building {
    child: Child,
    folder: PathBuf,
    pkg: PathBuf,
}

pub fn build(sh: &Sh) -> Result<PathBuf> {
    start(sh)?.finish()
}

pub fn start(sh: &Sh) -> Result<Building> {
    let toolchain = toolchain::ensure(sh)?;
    say("building the WebAssembly (a few minutes the first time)");
    let target = sh.root.join("target-wasm");
    let child = sh
        .cargo()
        .args([
            "build",
            "--locked",
            "--quiet",
            "--package",
            "ringlab-hydrate",
            "--package",
            "ringlab-preview",
            "--package",
            "ringlab-reader",
            "--target",
            "wasm32-unknown-unknown",
        ])
        .args(["--profile", "wasm", "--target-dir"])
        .arg(&target)
        .envs(toolchain.env)
        .spawn()
        .context("cannot start cargo for the WebAssembly build")?;
    let folder = target.join("wasm32-unknown-unknown/wasm");
    Ok(Building { child, folder, pkg: sh.home.join("pkg") })
}

impl Building {
    /// Waits for the compiler, writes the package and returns its folder.
    pub fn finish(mut self) -> Result<PathBuf> {
        let status = self.child.wait().context("cannot wait for the WebAssembly build")?;
        if !status.success() {
            anyhow::bail!("the WebAssembly build failed ({status}); its messages are above");
        }
        let module = |name: &str| self.folder.join(format!("{name}.wasm"));
        let stamp =
            MODULES.iter().map(|(name, _)| stamp(&module(name))).collect::<Result<Vec<_>>>()?.join("\n");
        let stamp_file = self.pkg.join("made-from");
        if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
            return Ok(self.pkg.clone());
        }
        let partial = self.pkg.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        for (name, page_name) in MODULES {
            Bindgen::new()
                .input_path(module(name))
                .out_name(page_name)
                .web(true)
                .map_err(|e| anyhow!("{e:#}"))?
                .typescript(false)
                .remove_name_section(true)
                .remove_producers_section(true)
                .generate(&partial)
                .map_err(|e| anyhow!("wasm-bindgen: {name}: {e:#}"))?;
        }
        fs::write(partial.join("made-from"), stamp)?;
        if self.pkg.exists() {
            fs::remove_dir_all(&self.pkg)?;
        }
        fs::rename(&partial, &self.pkg)?;
        Ok(self.pkg.clone())
    }
}

impl Drop for Building {
    /// A host build that failed first must not leave the other one running.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn stamp(module: &Path) -> Result<String> {
    let meta = fs::metadata(module).with_context(|| format!("the build left no {}", module.display()))?;
    Ok(format!("{} {:?}", meta.len(), meta.modified()?))
}
