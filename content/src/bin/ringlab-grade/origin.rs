//! Where figures come from: what every file of labs/measurements says at its top.

use std::path::Path;

use serde_json::{Value, json};

/// Writes figures with date, commit, command and hardware. The grader uses no GPU, so that there is no driver to name.
pub fn write(path: &Path, command: &str, mut figures: Value) -> Result<(), String> {
    let commit = std::env::var("RINGLAB_COMMIT").ok();
    figures["date"] = json!(told("date", &["-u", "+%Y-%m-%d"]));
    figures["commit"] = json!(commit.or_else(|| told("git", &["rev-parse", "HEAD"])));
    figures["command"] = json!(command);
    figures["hardware"] = json!(hardware());
    figures["driver"] = Value::Null;
    std::fs::write(path, format!("{figures:#}\n"))
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// A path as a command may be shown with: one that leads out of the folder keeps its last part, as labs/measurements/README.md says.
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let outside = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start));
    match path.file_name() {
        Some(name) if outside => name.to_string_lossy().into_owned(),
        _ => text.into_owned(),
    }
}

fn hardware() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| {
        let (key, model) = line.split_once(':')?;
        (key.trim() == "model name").then(|| model.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| format!("a processor of type {}", std::env::consts::ARCH));
    match std::thread::available_parallelism() {
        Ok(cores) => format!("{model}, one core of {cores}"),
        Err(_) => format!("{model}, one core"),
    }
}

/// What a program prints, if it runs and has something to say.
fn told(program: &str, words: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
