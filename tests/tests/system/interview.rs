//! A timed session from the invitation to the reviewed report, in headless Chromium: the connection is lost twice, the page reloaded, a
//! question left out, two points overridden.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use ringlab_tests::PATIENCE;
use ringlab_tests::process;
use ringlab_tests::system::{System, wait_for};
use thirtyfour::cdp::domains::network::NetworkConditions;
use thirtyfour::prelude::*;

use crate::chromium::{Browser, browser_wanted};

const PASSWORD: &str = "correct horse battery";
/// The 45-minute set.
const SET: [u32; 8] = [1, 4, 6, 9, 14, 25, 33, 47];

struct Words {
    lang: &'static str,
    name: &'static str,
    answer: &'static str,
    more: &'static str,
    reason: &'static str,
}

const ZH: Words = Words {
    lang: "zh",
    name: "候选人甲",
    answer: "每个 rank 都要以相同顺序调用，流量系数是 $2(N-1)/N$。",
    more: "断网时写的。",
    reason: "图示里说清楚了",
};
const EN: Words = Words {
    lang: "en",
    name: "Candidate A",
    answer: "Every rank has to call them in the same order; the traffic factor is $2(N-1)/N$.",
    more: "Written while offline.",
    reason: "clear from the figure",
};

#[tokio::test]
async fn a_candidate_sits_the_short_set_in_chinese() {
    sit(&ZH).await;
}

#[tokio::test]
async fn a_candidate_sits_the_short_set_in_english() {
    sit(&EN).await;
}

async fn sit(words: &Words) {
    if !browser_wanted() {
        return;
    }
    let mut system = System::start().await.unwrap();
    let instructor = Browser::start().await.unwrap();
    let candidate = Browser::start().await.unwrap();
    let walked = tokio::time::timeout(6 * PATIENCE, walk(&mut system, &instructor, &candidate, words)).await;
    let mut seen = String::new();
    for browser in [&instructor, &candidate] {
        let text = match browser.page.find(By::Css("main")).await {
            Ok(main) => main.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        seen.push_str(&format!(
            "at {:?}:\n{text}\n",
            browser.page.current_url().await.map(|u| u.to_string())
        ));
    }
    for browser in [instructor, candidate] {
        browser.page.clone().quit().await.unwrap();
    }
    walked
        .context("the walk took too long")
        .and_then(|result| result)
        .with_context(|| format!("{seen}{}", system.logs()))
        .unwrap();
}

async fn walk(system: &mut System, instructor: &Browser, candidate: &Browser, words: &Words) -> Result<()> {
    let Words { lang, name, answer, more, .. } = *words;
    make_instructor(system)?;
    sign_in(system, instructor, lang).await?;
    let link = invite(system, instructor, words).await?;

    // The invitation says what awaits; the clock starts with the button.
    let page = &candidate.page;
    page.goto(&link).await?;
    candidate.appears(".awaits li").await?;
    candidate.fill("#start-name", name).await?;
    press(candidate, "#start button[type=submit]").await?;
    candidate.appears(".sitting[data-state=running]").await?;
    let questions = candidate.count(".question-list button").await?;
    ensure!(questions >= 3, "{questions} questions");
    let numbers = numbers(candidate).await?;

    // The first answer is saved while it is written, with its formula rendered beside it.
    let first = format!("#answer-{}", numbers[0]);
    candidate.fill(&first, answer).await?;
    candidate.appears(".question:not([hidden]) .save-status.saved").await.context("not saved")?;
    candidate.appears(".question:not([hidden]) .write-preview math").await.context("no preview")?;

    // Lost once: what is written stays, is said to be here, and is sent when the network is back.
    offline(candidate, true).await?;
    candidate.one(&first).await?.send_keys(more).await?;
    candidate.appears(".question:not([hidden]) .save-status.trouble").await.context("no word of the loss")?;
    offline(candidate, false).await?;
    candidate.appears(".question:not([hidden]) .save-status.saved").await.context("not sent afterwards")?;

    // Lost again: the server is killed while somebody writes, and the page is reloaded once it is back.
    choose(candidate, numbers[1]).await?;
    let second = format!("#answer-{}", numbers[1]);
    candidate.fill(&second, answer).await?;
    candidate.appears(".question:not([hidden]) .save-status.saved").await?;
    process::send(system.server.pid(), process::Signal::KILL)?;
    candidate.one(&second).await?.send_keys(more).await?;
    candidate
        .appears(".question:not([hidden]) .save-status.trouble")
        .await
        .context("a dead server unnoticed")?;
    system.restart_server().await?;
    // A reload that asks whether to leave is answered with yes: nothing may be lost by it.
    page.execute("window.onbeforeunload = null; location.reload()", vec![]).await?;
    let _ = page.accept_alert().await;
    candidate.appears(".sitting[data-state=running]").await?;
    choose(candidate, numbers[1]).await?;
    let kept = candidate.one(&second).await?.prop("value").await?.unwrap_or_default();
    ensure!(kept == format!("{answer}{more}"), "after the reload: {kept}");
    candidate.appears(".question:not([hidden]) .save-status.saved").await?;

    // A large paste is recorded. All but the last question get an answer.
    let paste = "const d = new DataTransfer(); d.setData('text/plain', 'x'.repeat(300)); document.querySelector(arguments[0])\
                 .dispatchEvent(new ClipboardEvent('paste', {clipboardData: d, bubbles: true}));";
    page.execute(paste, vec![serde_json::json!(second)]).await?;
    for number in &numbers[2..questions - 1] {
        choose(candidate, *number).await?;
        candidate.fill(&format!("#answer-{number}"), answer).await?;
        candidate.appears(".question:not([hidden]) .save-status.saved").await?;
    }

    // Submitting names what is missing, and is final.
    press(candidate, "#submit-all").await?;
    candidate.appears(".submit-dialog .missing li").await?;
    ensure!(candidate.count(".submit-dialog .missing li").await? == 1, "one question is unanswered");
    press(candidate, "#submit-now").await?;
    candidate.appears(".sitting[data-state=ended]").await?;
    let report = candidate.one(".sitting .button.primary").await?.attr("href").await?.context("no report")?;
    page.goto(format!("{}{report}", system.url)).await?;
    candidate.appears(".report-total").await?;
    candidate.appears(".event-list li").await.context("no events")?;
    ensure!(candidate.count(".report-question").await? == questions, "a question is missing in the report");

    review(system, instructor, words, &numbers).await?;

    page.refresh().await?;
    candidate.appears(".report .override").await?;
    ensure!(candidate.count(".report .override").await? == 2, "both changes are in the report");
    let text = candidate.one(".report").await?.text().await?;
    for part in [name, words.reason] {
        ensure!(text.contains(part), "the report lacks {part}:\n{text}");
    }
    Ok(())
}

/// Two points changed with a reason, then confirmed.
async fn review(system: &System, browser: &Browser, words: &Words, numbers: &[u32]) -> Result<()> {
    let page = &browser.page;
    page.goto(format!("{}/{}/review", system.url, words.lang)).await?;
    let row = browser.one(".review-queue a").await?;
    let sitting = row.attr("href").await?.context("no link in the queue")?;
    page.goto(format!("{}{sitting}", system.url)).await?;
    for (done, number) in numbers[..2].iter().enumerate() {
        let form = format!("#q{number} .override-form");
        browser.appears(&form).await?;
        page.execute("document.querySelector(arguments[0]).open = true", vec![serde_json::json!(form)])
            .await?;
        browser.fill(&format!("#override-{number}-to"), "1").await?;
        browser.fill(&format!("#override-{number}-why"), words.reason).await?;
        press(browser, &format!("{form} button[type=submit]")).await?;
        wait_for("the override", || async {
            Ok((browser.count(".report .override").await? == done + 1).then_some(()))
        })
        .await?;
    }
    press(browser, "#confirm button[type=submit]").await?;
    wait_for("the end of the review", || async { Ok((browser.count("#confirm").await? == 0).then_some(())) })
        .await
}

fn make_instructor(system: &System) -> Result<()> {
    let mut command = Command::new(process::program("ringlab-server")?);
    command.arg("--data").arg(system.data()).args(["account", "create", "--email", "i@example.com"]);
    command.args(["--role", "instructor", "--name", "Ada", "--password-stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("no standard input")?.write_all(format!("{PASSWORD}\n").as_bytes())?;
    let status = child.wait()?;
    ensure!(status.success(), "making the instructor: {status}");
    Ok(())
}

async fn sign_in(system: &System, browser: &Browser, lang: &str) -> Result<()> {
    browser.page.goto(format!("{}/{lang}/sign-in?next=/{lang}/assessments", system.url)).await?;
    browser.fill("#sign-in-email", "i@example.com").await?;
    browser.fill("#sign-in-password", PASSWORD).await?;
    press(browser, "#sign-in button[type=submit]").await?;
    browser.appears(".make").await
}

/// The 45-minute set with a clock of six minutes, or what is written of it; the candidate's link.
async fn invite(system: &System, browser: &Browser, words: &Words) -> Result<String> {
    let written = system.client()?.get("/api/v1/questions").await?.json()?;
    let cards = written.as_array().context("questions are a list")?;
    let there = |n: &u32| cards.iter().any(|c| c["number"] == *n);
    let numbers: Vec<String> = SET.iter().filter(|n| there(n)).map(u32::to_string).collect();
    press(browser, ".make summary").await?;
    browser.fill("#make-title", "Screening").await?;
    if numbers.len() < SET.len() {
        let custom = "const e = document.querySelector('#make-set'); e.value = 'custom'; e.dispatchEvent(new Event('change', {bubbles: true}));";
        browser.page.execute(custom, vec![]).await?;
        browser.fill("#make-numbers", &numbers.join(" ")).await?;
    }
    browser.fill("#make-minutes", "6").await?;
    press(browser, "#make button[type=submit]").await?;
    press(browser, ".invite summary").await?;
    browser.fill(".invite textarea", words.name).await?;
    press(browser, ".invite button[type=submit]").await?;
    let link = browser.one(".invitation-link").await?.attr("href").await?;
    link.context("the link has no address")
}

async fn numbers(browser: &Browser) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for button in browser.page.find_all(By::Css(".question-list button")).await? {
        let Some(number) = button.attr("data-question").await? else { bail!("a question without a number") };
        numbers.push(number.parse()?);
    }
    Ok(numbers)
}

async fn choose(browser: &Browser, number: u32) -> Result<()> {
    press(browser, &format!(".question-list button[data-question='{number}']")).await?;
    browser.appears(&format!(".question:not([hidden]) #answer-{number}")).await
}

async fn press(browser: &Browser, css: &str) -> Result<()> {
    let button = browser.one(css).await?;
    button.scroll_into_view().await?;
    // By keyboard, as a candidate without a mouse.
    button.send_keys(Key::Enter + "").await?;
    Ok(())
}

async fn offline(browser: &Browser, lost: bool) -> Result<()> {
    let devtools = browser.page.cdp();
    let network = devtools.network();
    network.enable().await?;
    let conditions = NetworkConditions {
        offline: lost,
        latency: 0,
        download_throughput: -1,
        upload_throughput: -1,
        connection_type: None,
    };
    network.emulate_network_conditions(conditions).await?;
    Ok(())
}
