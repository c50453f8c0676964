//! `ringlab-server judge`: one answer from standard input, graded and judged. Shows whether an endpoint can be used, before it is.

use std::io::{Read, Write};

use anyhow::{Context as _, bail};
use ringlab_content::report::Grade;
use ringlab_interview::opinion::temper;

use super::Case;
use crate::app::App;

pub async fn run(app: &App, question: u32, mut input: impl Read, mut out: impl Write) -> anyhow::Result<()> {
    let Some(judge) = &app.judge else {
        bail!("no judge is configured: give --judge-url and --judge-model before `judge`");
    };
    let mut answer = String::new();
    input.read_to_string(&mut answer).context("reading the answer from standard input")?;
    let (Some(grade), Some(source)) =
        (app.site.questions.grade(question, &answer), app.site.questions.source(question))
    else {
        bail!("there is no question {question}");
    };
    show(&mut out, "grader", &grade)?;
    let case =
        Case { prompt: &source.en.prompt, model_answer: &source.en.core, answer: &answer, grade: &grade };
    let opinion = judge.ask(&case).await.with_context(|| format!("asking {}", judge.model))?;
    let fatal = if opinion.fatal.is_empty() { "" } else { ", a basic error" };
    writeln!(out, "{}: {:?}{fatal}", judge.model, opinion.points)?;
    show(&mut out, "together", &temper(&grade, &opinion))
}

fn show(out: &mut impl Write, who: &str, grade: &Grade) -> anyhow::Result<()> {
    let points: Vec<u32> = grade.points.iter().map(|p| p.awarded).collect();
    let person = if grade.person { ", a person should look" } else { "" };
    writeln!(
        out,
        "{who}: {points:?}, {} of {}, confidence {:.2}{person}",
        grade.total, grade.max, grade.confidence
    )?;
    Ok(())
}
