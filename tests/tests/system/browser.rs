//! The whole path as a learner walks it, in headless Chromium.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use ringlab_tests::PATIENCE;
use ringlab_tests::process::{self, Signal};
use ringlab_tests::system::System;
use thirtyfour::prelude::*;

use crate::chromium::{Browser, browser_wanted};

#[tokio::test]
async fn a_learner_reads_predicts_runs_and_reopens() {
    if !browser_wanted() {
        return;
    }
    let system = System::with_runner().await.unwrap();
    let browser = Browser::start().await.unwrap();
    let walked =
        tokio::time::timeout(3 * PATIENCE, walk(&system, &browser)).await.context("the walk took too long");
    let address = browser.page.current_url().await.map(|url| url.to_string());
    let text = match browser.page.find(By::Css("main")).await {
        Ok(main) => main.text().await.unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    let quit = browser.page.clone().quit().await;
    walked
        .and_then(|result| result)
        .with_context(|| format!("at {address:?}:\n{text}\n{}", system.logs()))
        .unwrap();
    quit.unwrap();
}

async fn walk(system: &System, browser: &Browser) -> Result<()> {
    let page = &browser.page;
    // Read: the home page leads to the chapter, the chapter to its lab.
    page.goto(format!("{}/zh/", system.url)).await?;
    let chapter = browser.one("main a[href='/zh/course/12-ring-allreduce']").await?;
    chapter.send_keys(Key::Enter + "").await?;
    browser.appears(".katex math").await?;
    // The stepper wakes when it is reached, and steps.
    let stepper = browser.one("leptos-island").await?;
    stepper.scroll_into_view().await?;
    browser.appears("leptos-island[data-hydrated]").await?;
    let lab = browser.one(".lab-call a[href='/zh/labs/ring-allreduce']").await?;
    lab.scroll_into_view().await?;
    page.goto(format!("{}/zh/labs/ring-allreduce", system.url)).await?;
    browser.appears("html[data-islands=ready]").await?;

    // A wrong plan is refused in the browser, by the same verifier, while typing.
    let good = browser.one("#code").await?.prop("value").await?.context("the editor is empty")?;
    let bad = good.replacen("recv from prev", "# recv from prev", 1);
    if bad == good {
        bail!("the starting plan has no `recv from prev`:\n{good}");
    }
    let set = "const e = document.querySelector('#code'); e.value = arguments[0]; e.dispatchEvent(new Event('input', {bubbles: true}));";
    page.execute(set, vec![serde_json::json!(bad)]).await?;
    browser.appears("#plan-verdict .verdict.fail").await.context("the wrong plan was not refused")?;
    page.execute(set, vec![serde_json::json!(good)]).await?;
    browser.appears("#plan-verdict .verdict.pass").await.context("the right plan was not accepted")?;

    // Predict and run. The job is long and its worker is held for a moment, so that the log is seen to arrive while it runs.
    page.execute(
        "const e = document.querySelector('#params-size'); e.value = '27525120'; e.dispatchEvent(new Event('change', {bubbles: true}));",
        vec![],
    )
    .await?;
    for (field, value) in [("steps", "7"), ("bytes", "41287680"), ("chunk", "0")] {
        browser.fill(&format!("#prediction-{field}"), value).await?;
    }
    let submit = browser.one("form.panel button[type=submit]").await?;
    // By keyboard, as a reader without a mouse.
    submit.send_keys(Key::Enter + "").await?;
    let worker = system.worker(0).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    process::send(worker, Signal::STOP)?;
    browser.appears(".run-state .badge.running").await.context("the run page does not show a running job")?;
    browser.appears(".log li").await.context("no line of the log arrived while the job was running")?;
    process::send(worker, Signal::CONT)?;

    // See marks and the timeline.
    browser.appears(".run-state .badge.done").await?;
    browser.appears(".result-check.pass").await?;
    browser.appears(".timeline canvas").await?;
    let (passed, url) = (browser.count(".result-check.pass").await?, page.current_url().await?);
    if passed < 5 {
        bail!("{passed} checks passed, expected at least correct, steps, bytes, chunk and traffic");
    }

    // Reload, and reopen by the URL in another tab: the same result.
    page.refresh().await?;
    browser.appears(".run-state .badge.done").await?;
    assert_eq!(browser.count(".result-check.pass").await?, passed, "after a reload");
    let tab = page.new_tab().await?;
    page.switch_to_window(tab).await?;
    page.goto(url.as_str()).await?;
    browser.appears(".timeline canvas").await?;
    assert_eq!(browser.count(".result-check.pass").await?, passed, "in another tab");
    Ok(())
}
