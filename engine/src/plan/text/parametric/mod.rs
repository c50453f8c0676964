//! The standard plans as a person would write them: the text learners start from.

mod direct;
mod ring;

use crate::plan::{Algorithm, GenerateError, generate};
use crate::text::Lang;
use crate::types::Collective;

/// The plan of [`generate`] as a commented text with loops; it parses to exactly that plan. Comments are in `lang`.
pub fn parametric(
    algorithm: Algorithm,
    collective: Collective,
    ranks: u32,
    channels: u32,
    lang: Lang,
) -> Result<String, GenerateError> {
    // The generator is the one place that decides what exists.
    let plan = generate(algorithm, collective, ranks, channels)?;
    let body = match (ranks, algorithm) {
        (1, _) => COPY,
        (_, Algorithm::Ring) => ring::body(collective),
        (_, Algorithm::OneShot) => direct::one_shot(collective),
        (_, Algorithm::TwoShot) => direct::two_shot(collective),
    };
    let root = match collective.root() {
        Some(root) => format!(" root {root}"),
        None => String::new(),
    };
    let chunks = if plan.chunks > 1 { "n".into() } else { plan.chunks.to_string() };
    let scratch: String = plan.scratch.iter().map(|s| format!("scratch {} {}\n", s.name, s.chunks)).collect();
    let (name, kind) = (&plan.name, collective.name());
    let header = format!(
        "plan {name} v1\ncollective {kind}{root}\nranks {ranks}\nchannels {channels}\nchunks {chunks}\n{scratch}\n"
    );
    Ok(header + &in_language(body, lang))
}

/// Comment lines carry both languages as `# zh | en`; keeps the one asked for.
fn in_language(body: &str, lang: Lang) -> String {
    let mut out = String::new();
    for line in body.trim_start_matches('\n').lines() {
        match line.split_once("# ").map(|(indent, comment)| (indent, comment.split_once(" | "))) {
            Some((indent, Some((zh, en)))) => {
                let comment = if lang == Lang::Zh { zh } else { en };
                out.push_str(&format!("{indent}# {comment}"));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

const COPY: &str = r"
every rank:
  # 只有一个 rank：结果就是自己的输入 | a rank alone: the result is its own input
  copy input[0] into output[0]
";
