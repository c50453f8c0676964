//! House rules that a compiler does not know: every folder explains itself, files stay small, nothing unfinished, free licences only.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::sh::{self, Sh};

/// Longest Rust or CUDA file (STYLE: rarely over 400 lines).
const MAX_LINES: usize = 500;

/// Licences under which a dependency may come in; a crate's expression must be satisfiable with these alone.
const FREE: [&str; 15] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
];

pub fn run(sh: &Sh) -> Result<()> {
    let mut problems = files(sh)?;
    problems.extend(readmes(sh)?);
    problems.extend(licences(sh)?);
    if !problems.is_empty() {
        bail!("house rules:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

fn files(sh: &Sh) -> Result<Vec<String>> {
    // Split, so that this list does not find itself.
    let unfinished = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
    ];
    let listed = sh::output(sh.command("git").args(["ls-files", "*.rs", "*.cu", "*.cuh"]))?;
    let mut problems = Vec::new();
    for name in listed.lines() {
        let path = sh.root.join(name);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let lines = text.lines().count();
        if lines > MAX_LINES {
            problems.push(format!("{name} has {lines} lines; split it by idea (at most {MAX_LINES})"));
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(mark) = unfinished.iter().find(|mark| line.contains(*mark)) {
                problems.push(format!("{name}:{} is unfinished ({mark})", number + 1));
            }
        }
    }
    Ok(problems)
}

/// Every crate and data folder of DESIGN §2 has its README.
fn readmes(sh: &Sh) -> Result<Vec<String>> {
    let mut folders =
        vec!["".to_owned(), "migrations".into(), "labs/catalogue".into(), "labs/measurements".into()];
    let listed = sh::output(sh.command("git").args(["ls-files", "*Cargo.toml"]))?;
    folders.extend(
        listed.lines().map(|file| file.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned()),
    );
    let missing = folders.iter().filter(|folder| !sh.root.join(folder).join("README.md").is_file());
    Ok(missing.map(|folder| format!("{folder}/ has no README.md")).collect())
}

fn licences(sh: &Sh) -> Result<Vec<String>> {
    let text = sh::output(sh.cargo().args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut problems = Vec::new();
    for package in packages {
        let expression = package["license"].as_str().unwrap_or_default();
        if !satisfiable(expression) {
            problems.push(format!(
                "{} {} is licensed {expression:?}, which is not among the licences this project takes in",
                package["name"].as_str().unwrap_or("?"),
                package["version"].as_str().unwrap_or("?")
            ));
        }
    }
    Ok(problems)
}

/// `A OR B` needs one free side, `A AND B` both; the old `A/B` means OR. AND binds tighter, brackets group.
fn satisfiable(expression: &str) -> bool {
    let text = expression.replace('/', " OR ");
    let text = strip_brackets(text.trim());
    if text.is_empty() {
        return false;
    }
    for (word, all) in [(" OR ", false), (" AND ", true)] {
        let parts = split_outside_brackets(text, word);
        if parts.len() > 1 {
            let mut parts = parts.into_iter();
            return if all { parts.all(satisfiable) } else { parts.any(satisfiable) };
        }
    }
    FREE.contains(&text)
}

fn strip_brackets(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return text };
    let balanced = inner.chars().try_fold(0i32, |depth, c| match c {
        '(' => Some(depth + 1),
        ')' if depth == 0 => None,
        ')' => Some(depth - 1),
        _ => Some(depth),
    });
    if balanced == Some(0) { inner.trim() } else { text }
}

fn split_outside_brackets<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && at >= from && text[at..].starts_with(word) => {
                parts.push(text[from..at].trim());
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::satisfiable;

    #[test]
    fn an_expression_needs_one_free_way_through_it() {
        for free in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(satisfiable(free), "{free}");
        }
        for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0"] {
            assert!(!satisfiable(not), "{not}");
        }
    }
}
