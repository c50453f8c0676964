//! Headless Chromium, driven.

use std::process::Command;

use anyhow::{Context, Result};
use ringlab_tests::process::Process;
use ringlab_tests::system::wait_for;
use thirtyfour::prelude::*;

/// Chromium through its driver; both end with the test.
pub struct Browser {
    pub page: WebDriver,
    _driver: Process,
    _folder: tempfile::TempDir,
}

impl Browser {
    pub async fn start() -> Result<Browser> {
        // The client has no provider of its own; another test may have given it one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let driver = std::env::var("RINGLAB_CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".into());
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(&driver);
        command.arg(format!("--port={port}"));
        let process = Process::start(command, folder.path().join("driver.log"))
            .with_context(|| format!("{driver} is needed: `cargo xtask setup` installs it"))?;
        let mut wanted = DesiredCapabilities::chrome();
        wanted.set_headless()?;
        wanted.set_no_sandbox()?;
        wanted.add_arg("--window-size=1280,1000")?;
        wanted.add_arg(&format!("--user-data-dir={}", folder.path().join("profile").display()))?;
        if let Ok(chromium) = std::env::var("RINGLAB_CHROMIUM") {
            wanted.set_binary(&chromium)?;
        }
        let url = format!("http://127.0.0.1:{port}");
        let page = wait_for("the browser's driver", || async {
            Ok(Some(WebDriver::new(url.as_str(), wanted.clone()).await?))
        })
        .await
        .with_context(|| process.log())?;
        Ok(Browser { page, _driver: process, _folder: folder })
    }

    pub async fn one(&self, css: &str) -> Result<WebElement> {
        wait_for(css, || async { Ok(Some(self.page.find(By::Css(css)).await?)) }).await
    }

    pub async fn count(&self, css: &str) -> Result<usize> {
        Ok(self.page.find_all(By::Css(css)).await?.len())
    }

    pub async fn appears(&self, css: &str) -> Result<()> {
        wait_for(css, || async { Ok((self.count(css).await? > 0).then_some(())) }).await
    }

    pub async fn fill(&self, css: &str, text: &str) -> Result<()> {
        let field = self.one(css).await?;
        field.scroll_into_view().await?;
        field.clear().await?;
        field.send_keys(text).await?;
        Ok(())
    }
}

pub fn browser_wanted() -> bool {
    let wanted = std::env::var_os("RINGLAB_NO_BROWSER").is_none();
    if !wanted {
        eprintln!("skipped: RINGLAB_NO_BROWSER is set (`cargo xtask test --no-browser`)");
    }
    wanted
}
