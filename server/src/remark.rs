//! `ringlab-server remark`: marks computed again from stored results and answers, by the labs as they stand now. Shows what would
//! change; with `--apply` it stores it, beside the older marks.

use std::io::Write;

use ringlab_labs::job::Marks;

use crate::app::App;
use crate::clock::UnixMs;

/// Returns how many jobs get other marks.
pub async fn run(app: &App, apply: bool, mut out: impl Write) -> anyhow::Result<u64> {
    let (mut seen, mut different) = (0u64, 0u64);
    for id in app.store.ids_of_done_jobs().await? {
        let Some(record) = app.store.job(&id).await? else { continue };
        let Some(result) = record.result.clone() else { continue };
        seen += 1;
        let (before, answers) = (app.store.marks(&id).await?, app.store.answers(&id).await?);
        let Some(after) = app.marks(&record, result, answers).await else {
            writeln!(out, "{id} {}: cannot be marked, see the log", record.lab)?;
            continue;
        };
        if before.as_ref() == Some(&after) {
            continue;
        }
        different += 1;
        writeln!(out, "{id} {}: {} -> {}", record.lab, points(before.as_ref()), points(Some(&after)))?;
        if apply {
            app.store.add_marks(&id, &after, UnixMs::now()).await?;
        }
    }
    let done = if apply { "stored" } else { "not stored; run again with --apply" };
    writeln!(out, "{seen} results, {different} with other marks ({done})")?;
    Ok(different)
}

fn points(marks: Option<&Marks>) -> String {
    marks.map_or_else(|| "no marks".into(), |m| format!("{} of {} ({})", m.total, m.max, m.lab_version))
}
