//! A headless Chromium and its driver for the tests that walk through the pages.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sh::{self, Sh, find};

#[derive(Debug)]
pub struct Browser {
    pub chromium: PathBuf,
    pub driver: PathBuf,
}

/// Finds them, or installs Debian's packages when run by root (with a font that has the course's Chinese).
pub fn ensure(sh: &Sh) -> Result<Browser> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-noto-cjk"];
    if find("apt-get").is_none() || !rustix::process::geteuid().is_root() {
        bail!(
            "no chromium and chromedriver in PATH; install them (Debian: apt-get install {}), or run `cargo xtask test --no-browser`",
            PACKAGES.join(" ")
        );
    }
    sh::timed("installing a headless browser for the tests", || {
        sh::output(sh.command("apt-get").arg("update"))?;
        sh::output(
            sh.command("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(PACKAGES),
        )
    })?;
    installed().context("the packages are installed, yet there is no chromium and chromedriver in PATH")
}

fn installed() -> Option<Browser> {
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(find)?;
    Some(Browser { chromium, driver: find("chromedriver")? })
}
