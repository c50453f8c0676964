//! Runs one lab job through a real server and runner and writes what came back as a measurement (`labs/measurements/README.md`):
//! `record-lab SUBMISSION.json OUT.json`, with `RINGLAB_BIN` and `RINGLAB_ROOT` where the programs were carried elsewhere.

use std::fs;

use anyhow::{Context, Result, bail};
use ringlab_labs::api::JobState;
use ringlab_labs::job::Submission;
use ringlab_tests::system::System;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(submission), Some(out)) = (args.next(), args.next()) else {
        bail!("usage: record-lab SUBMISSION.json OUT.json")
    };
    let text = fs::read_to_string(&submission).with_context(|| format!("cannot read {submission}"))?;
    let submission: Submission =
        serde_json::from_str(&text).with_context(|| format!("{submission} is not a submission"))?;
    let backend =
        submission.params.get("backend").and_then(|value| value.as_str()).unwrap_or("cpu").to_owned();

    let mut system = System::start().await?;
    system.add_runner_with("recorder", &backend)?;
    system.runner_ready("recorder").await?;
    let client = system.client()?;
    let job = client.submit(&submission).await?;
    let done = client.finished(&job.id).await.with_context(|| system.logs())?;
    if !matches!(done.state, JobState::Done) {
        bail!("the job ended as {:?}\n{}", done.state, system.logs());
    }
    let result = done.result.as_ref().context("a finished job has a result")?;
    let gpu = result.hardware.gpus.first().filter(|_| backend == "cuda");
    let record = json!({
        "what": format!("lab {} through server and runner ({backend})", submission.lab),
        "date": done.finished.as_deref().unwrap_or_default().chars().take(10).collect::<String>(),
        "hardware": gpu.map_or_else(|| result.hardware.cpu.clone(), |gpu| gpu.name.clone()),
        "driver": gpu.map(|gpu| gpu.driver.clone()),
        "command": "record-lab SUBMISSION.json OUT.json (tests/src/bin/record-lab.rs); the submission is below",
        "commit": std::env::var("RINGLAB_COMMIT").ok().or_else(|| option_env!("RINGLAB_COMMIT").map(str::to_owned)),
        "submission": submission,
        "attempt": done.attempt,
        "result": result,
        "marks": done.marks,
    });
    fs::write(&out, serde_json::to_string_pretty(&record)? + "\n")
        .with_context(|| format!("cannot write {out}"))?;
    println!(
        "{out}: {} tasks, marks {:?}",
        result.tasks.len(),
        done.marks.as_ref().map(|marks| (marks.total, marks.max))
    );
    Ok(())
}
