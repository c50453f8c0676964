//! What trying to break the engine came to.

use serde_json::Value;

use super::Run;

pub fn table(runs: &[&Run]) -> Result<String, String> {
    let mut lines = String::new();
    for run in runs {
        let (device, driver) = (run.text("/hardware/device")?, run.text("/hardware/driver")?);
        let commit = run.json["commit"].as_str().unwrap_or("of no known commit");
        for (kind, said) in [
            ("random", random as fn(&Run, &Value) -> Result<String, String>),
            ("sanitizers", sanitizers),
            ("kills", kills),
        ] {
            let found = &run.json[kind];
            if !found.is_object() {
                continue;
            }
            let said = said(run, found)?;
            let said = if found["held"] == true { said } else { format!("**failed:** {said}") };
            let day = crate::report::date(run.count(found, "/finished_unix")?);
            let command = command(run, kind, found);
            lines.push_str(&format!(
                "| {said} | {device}, driver {driver}, engine {commit}, {day} | `{command}` |\n"
            ));
        }
    }
    if lines.is_empty() {
        return Ok(String::new());
    }
    Ok(format!("\n| tried | on | command |\n| --- | --- | --- |\n{lines}\n"))
}

/// The flags that make the same again.
fn command(run: &Run, kind: &str, found: &Value) -> String {
    let backend = run.json["hardware"]["backend"].as_str().unwrap_or("cuda");
    let counts = match kind {
        "random" => format!(
            " --operations {} --processes {} --seed {}",
            found["operations"], found["processes"], found["first_seed"]
        ),
        "kills" => format!(" --kills {} --families {}", found["kills"], found["families"]),
        _ => String::new(),
    };
    format!("ringlab-bench robust --backend {backend} --only {kind}{counts}")
}

fn random(run: &Run, found: &Value) -> Result<String, String> {
    Ok(format!(
        "{} random operations in {} processes at a time, {:.1} million elements compared, {} processes failed",
        run.count(found, "/operations")?,
        run.count(found, "/processes")?,
        run.count(found, "/elements")? as f64 / 1e6,
        found["failed"].as_array().map_or(0, Vec::len),
    ))
}

fn sanitizers(run: &Run, found: &Value) -> Result<String, String> {
    let tools = found["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(format!(
        "compute-sanitizer ({}): {} of {} runs clean",
        tools.collect::<Vec<_>>().join(", "),
        run.count(found, "/clean")?,
        run.count(found, "/runs")?,
    ))
}

fn kills(run: &Run, found: &Value) -> Result<String, String> {
    Ok(format!(
        "{} ranks killed; {} errors of survivors, median {} ms, longest {} ms; a new communicator and exact results after each",
        run.count(found, "/kills")?,
        run.count(found, "/errors_of_survivors")?,
        run.count(found, "/median_ms")?,
        run.count(found, "/longest_ms")?,
    ))
}
