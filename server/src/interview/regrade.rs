//! `ringlab-server regrade`: stored answers graded again by the rubrics as they stand now. Lists what would change; with `--apply` it
//! stores it, beside the older grades.

use std::io::Write;

use ringlab_content::report::Grade;

use super::grading;
use crate::app::App;
use crate::clock::UnixMs;

/// Returns how many answers get another grade.
pub async fn run(app: &App, apply: bool, mut out: impl Write) -> anyhow::Result<u64> {
    let (mut seen, mut different) = (0u64, 0u64);
    for sitting in app.store.graded_sittings().await? {
        let before = app.store.grades(&sitting.id).await?;
        let review = app.store.review(&sitting.id).await?;
        let Some(after) = grading::grades(app, &sitting.id).await? else {
            writeln!(out, "{}: cannot be graded, see the log", sitting.id)?;
            continue;
        };
        for (question, after) in after {
            // A question that was withdrawn keeps what it had.
            if app.site.questions.texts(question).is_none() {
                continue;
            }
            seen += 1;
            let before = before.get(&question);
            if before == Some(&after) {
                continue;
            }
            different += 1;
            let by_hand = match review.overrides.iter().filter(|(of, _)| *of == question).count() {
                0 => String::new(),
                n => format!("; {n} set by hand stay"),
            };
            writeln!(
                out,
                "{} question {question}: {} -> {}{by_hand}",
                sitting.id,
                shown(before),
                shown(Some(&after))
            )?;
            if apply {
                let now = UnixMs::now();
                app.store.add_grade(&sitting.id, question, &after, now).await?;
                let from = before.map_or(0, |grade| grade.total);
                let why = format!("rubric {}", after.version);
                app.store.log_regrade(&sitting.id, question, from, after.total, &why, now).await?;
            }
        }
    }
    let done = if apply { "stored" } else { "not stored; run again with --apply" };
    writeln!(out, "{seen} answers, {different} with another grade ({done})")?;
    Ok(different)
}

fn shown(grade: Option<&Grade>) -> String {
    grade.map_or_else(
        || "no grade".into(),
        |g| {
            let points: Vec<String> = g.points.iter().map(|point| point.awarded.to_string()).collect();
            format!("{} of {} [{}] ({})", g.total, g.max, points.join(" "), g.version)
        },
    )
}
