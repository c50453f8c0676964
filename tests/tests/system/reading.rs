//! A reader's own state in headless Chromium: a section is read, a passage highlighted, a note written and changed while offline, a quiz
//! answered; a reload and, after signing up, another browser show it all.

use anyhow::{Context, Result, ensure};
use ringlab_tests::PATIENCE;
use ringlab_tests::system::{System, wait_for};
use serde_json::{Value, json};
use thirtyfour::cdp::domains::network::NetworkConditions;
use thirtyfour::prelude::*;

use crate::chromium::{Browser, browser_wanted};

const CHAPTER: &str = "/zh/course/12-ring-allreduce";
const PASSWORD: &str = "correct horse battery";
const EMAIL: &str = "reader@example.com";
const NOTE: &str = "为什么不会覆盖？";

/// Selects the first words of the first paragraph after a heading.
const SELECT: &str = "
    let p = document.getElementById(arguments[0]);
    while (p.tagName !== 'P') p = p.nextElementSibling;
    const text = [...p.childNodes].find(n => n.nodeType === 3 && n.data.trim().length > 8);
    p.scrollIntoView({block: 'center'});
    const range = document.createRange();
    range.setStart(text, 0);
    range.setEnd(text, 8);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return range.toString();";
const PAINTED: &str = "return [...(CSS.highlights.get('note-yellow') ?? [])].map(r => r.toString())";

#[tokio::test]
async fn what_a_reader_leaves_behind_is_there_again() {
    if !browser_wanted() {
        return;
    }
    let system = System::start().await.unwrap();
    let (here, there) = (Browser::start().await.unwrap(), Browser::start().await.unwrap());
    let walked = tokio::time::timeout(6 * PATIENCE, walk(&system, &here, &there)).await;
    let mut seen = String::new();
    for browser in [&here, &there] {
        let look = "return [location.href, document.querySelector('.reader-panel')?.innerText, document.querySelector('.reader-dock')?.innerText].join('\\n')";
        let look = browser.page.execute(look, vec![]).await;
        seen.push_str(&format!("{:?}\n", look.map(|v| v.json().clone()).ok()));
    }
    for browser in [here, there] {
        browser.page.clone().quit().await.unwrap();
    }
    walked
        .context("the walk took too long")
        .and_then(|result| result)
        .with_context(|| format!("{seen}{}", system.logs()))
        .unwrap();
}

async fn walk(system: &System, here: &Browser, there: &Browser) -> Result<()> {
    let page = &here.page;
    let chapter = format!("{}{CHAPTER}", system.url);
    page.goto(&chapter).await?;
    here.appears(".reader-toggle").await?;
    ensure!(here.count(".toc-read, .reader-resume").await? == 0, "nothing was read yet");

    // A section that is looked at for some seconds counts as read, and the contents say so.
    page.execute("document.getElementById('in-place').scrollIntoView()", vec![]).await?;
    here.appears(".toc-side a[href='#in-place'] .toc-read").await.context("the section is not read")?;
    here.appears(".toc-side .toc-progress").await?;

    // Highlight by keyboard: Tab goes from the selection to its toolbar.
    let passage = select(here, "in-place").await?;
    here.appears(".reader-tools:not([hidden])").await.context("no toolbar")?;
    page.action_chain().send_keys(Key::Tab + "").perform().await?;
    page.action_chain().send_keys(Key::Enter + "").perform().await?;
    painted(here, &[passage.trim()]).await.context("not painted")?;
    // Escape closes it, and nothing is made.
    select(here, "time").await?;
    here.appears(".reader-tools:not([hidden])").await?;
    page.action_chain().send_keys(Key::Escape + "").perform().await?;
    here.appears(".reader-tools[hidden]").await.context("Escape does not close")?;

    // A note on another passage.
    let second = select(here, "time").await?;
    here.appears(".reader-tools:not([hidden])").await?;
    press(here, ".reader-tools:not([hidden]) [data-act=note]").await?;
    here.one("#reader-text").await?.send_keys(NOTE).await?;
    press(here, ".note-form [type=submit]").await?;
    here.appears(".reader-panel .note-text").await?;
    all_saved(here).await?;

    // Lost: what is written is kept, is said to be here, and is sent when the network is back.
    offline(here, true).await?;
    press(here, ".note:has(.note-text) [data-act=edit]").await?;
    here.one("#reader-text").await?.send_keys(" 断网时补充。").await?;
    press(here, ".note-form [type=submit]").await?;
    here.appears(".reader-status.trouble").await.context("no word of the loss")?;
    here.appears(".note-state.pending").await?;
    offline(here, false).await?;
    page.execute("dispatchEvent(new Event('online'))", vec![]).await?;
    all_saved(here).await?;

    // Deleted and undone.
    press(here, ".note:not(:has(.note-text)) [data-act=delete]").await?;
    press(here, "[data-act=undo]").await?;
    all_saved(here).await?;
    painted(here, &[passage.trim(), second.trim()]).await.context("not undone")?;
    press(here, ".reader-panel [data-act=close]").await?;

    // A quiz.
    let quiz = "form.quiz:has(input[type=radio])";
    here.one(quiz).await?.scroll_into_view().await?;
    here.appears(&format!("leptos-island[data-hydrated] {quiz}")).await?;
    here.one(&format!("{quiz} input[type=radio]")).await?.send_keys(" ").await?;
    press(here, &format!("{quiz} [type=submit]")).await?;
    here.appears(&format!("{quiz} .verdict")).await?;
    let answered = || async {
        let state = reading(here).await?;
        Ok((state["quizzes"][0]["right"].is_boolean()).then_some(()))
    };
    wait_for("the quiz on the server", answered).await?;

    // The place was stored; the page that is opened again offers it, and stays where it is.
    page.execute("document.getElementById('pipelining').scrollIntoView()", vec![]).await?;
    let placed =
        || async { Ok((reading(here).await?["place"]["section"] == json!("pipelining")).then_some(())) };
    wait_for("the place on the server", placed).await?;
    page.goto(format!("{}/zh/course", system.url)).await?;
    here.appears(".reading-on a").await?;
    here.appears(".reading-progress").await?;
    page.goto(&chapter).await?;
    here.appears(".reader-resume [data-act=continue]").await?;
    painted(here, &[passage.trim(), second.trim()]).await.context("after the reload")?;
    here.appears(".toc-side a[href='#in-place'] .toc-read").await?;
    ensure!(page.execute("return scrollY", vec![]).await?.json() == &json!(0), "the page moved by itself");
    press(here, ".reader-resume [data-act=continue]").await?;
    wait_for("the page at the place", || async {
        let top = "return Math.abs(document.getElementById('pipelining').getBoundingClientRect().top)";
        Ok(page.execute(top, vec![]).await?.json().as_f64().filter(|top| *top < 900.0))
    })
    .await?;

    // The guest signs up, and another browser signs in: the same state there.
    page.goto(format!("{}/zh/sign-in?next=/zh/notes", system.url)).await?;
    here.fill("#sign-up-name", "读者").await?;
    here.fill("#sign-up-email", EMAIL).await?;
    here.fill("#sign-up-password", PASSWORD).await?;
    press(here, "#sign-up button[type=submit]").await?;
    here.appears(".notes-page .note-text").await.context("the notes of the guest")?;
    ensure!(here.count(".notes-page .note").await? == 2, "two notes");

    there.page.goto(format!("{}/zh/sign-in?next={CHAPTER}", system.url)).await?;
    there.fill("#sign-in-email", EMAIL).await?;
    there.fill("#sign-in-password", PASSWORD).await?;
    press(there, "#sign-in button[type=submit]").await?;
    painted(there, &[passage.trim(), second.trim()]).await.context("in another browser")?;
    there.appears(".toc-side a[href='#in-place'] .toc-read").await?;
    there.one(quiz).await?.scroll_into_view().await?;
    there.appears(&format!("{quiz} .verdict")).await.context("the answer in another browser")?;

    // Signed out, the browser keeps none of it for whoever comes next.
    page.goto(format!("{}/zh/sign-in", system.url)).await?;
    press(here, "#sign-out").await?;
    here.appears("#sign-in").await?;
    let kept =
        "return Object.keys(localStorage).filter(k => /^ringlab\\.(quiz|reading|draft)/.test(k)).length";
    ensure!(page.execute(kept, vec![]).await?.json() == &json!(0), "something is left behind");
    page.goto(&chapter).await?;
    here.appears(".reader-toggle").await?;
    ensure!(reading(here).await?["notes"] == json!([]), "notes of somebody who signed out");
    Ok(())
}

async fn select(browser: &Browser, heading: &str) -> Result<String> {
    let text = browser.page.execute(SELECT, vec![json!(heading)]).await?;
    Ok(text.json().as_str().context("nothing to select")?.to_owned())
}

async fn painted(browser: &Browser, passages: &[&str]) -> Result<()> {
    let mut wanted: Vec<String> = passages.iter().map(|p| (*p).to_owned()).collect();
    wanted.sort();
    wait_for("painted passages", || async {
        let painted = browser.page.execute(PAINTED, vec![]).await?;
        let mut painted: Vec<String> = serde_json::from_value(painted.json().clone())?;
        painted.sort();
        Ok((painted == wanted).then_some(()))
    })
    .await
}

/// The chapter as the server has it for this browser.
async fn reading(browser: &Browser) -> Result<Value> {
    let ask = "const done = arguments[0]; fetch('/api/v1/reading/12-ring-allreduce').then(r => r.json()).then(done)";
    Ok(browser.page.execute_async(ask, vec![]).await?.json().clone())
}

async fn all_saved(browser: &Browser) -> Result<()> {
    wait_for("everything on the server", || async {
        let kept = "return Object.keys(localStorage).filter(k => k.startsWith('ringlab.reading/')).length";
        let kept = browser.page.execute(kept, vec![]).await?;
        let waiting = browser.count(".note-state.pending, .reader-status.trouble:not([hidden])").await?;
        Ok((kept.json() == &json!(0) && waiting == 0).then_some(()))
    })
    .await
}

async fn press(browser: &Browser, css: &str) -> Result<()> {
    // A list that is drawn anew takes its buttons away and brings others.
    wait_for(css, || async {
        let button = browser.page.find(By::Css(css)).await?;
        button.scroll_into_view().await?;
        button.send_keys(Key::Enter + "").await?;
        Ok(Some(()))
    })
    .await
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
