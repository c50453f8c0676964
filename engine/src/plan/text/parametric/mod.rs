//! The standard plans as a person would write them: the text learners start from.

mod chain;
mod direct;
mod exchange;
mod ring;

use super::print::step_text;
use crate::plan::{Algorithm, GenerateError, Plan, generate};
use crate::text::Lang;
use crate::types::{ChannelId, Collective, Rank};

/// The plan of [`generate`] as a commented text with loops; it parses to exactly that plan. Comments are in `lang`. The language has no
/// loop over powers of two: tree and halving-doubling are written out by rank, which for many ranks exceeds the limits of a text.
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
        (_, Algorithm::Chain) => chain::body(collective),
        (_, Algorithm::Pairwise) => exchange::pairwise(collective),
        (_, Algorithm::Exchange) => exchange::body(collective),
        (_, Algorithm::Tree | Algorithm::HalvingDoubling) => &written_out(&plan),
    };
    let root = match collective.root() {
        Some(root) => format!(" root {root}"),
        None => String::new(),
    };
    // Where the number of chunks is that of the ranks, the text holds for any.
    let by_rank = plan.chunks > 1 && matches!(algorithm, Algorithm::Ring | Algorithm::TwoShot);
    let chunks = if by_rank { "n".into() } else { plan.chunks.to_string() };
    let scratch: String = plan.scratch.iter().map(|s| format!("scratch {} {}\n", s.name, s.chunks)).collect();
    let (name, kind) = (&plan.name, collective.name());
    let header = format!(
        "plan {name} v1\ncollective {kind}{root}\nranks {ranks}\nchannels {channels}\nchunks {chunks}\n{scratch}\n"
    );
    Ok(header + &in_language(body, lang))
}

/// A block per rank; of the channels, the even ones and the odd ones are alike.
fn written_out(plan: &Plan) -> String {
    let mut out = String::new();
    let steps = |rank, channel| {
        let steps = plan.program(rank, ChannelId(channel)).steps.iter();
        steps.map(|step| step_text(plan, step)).collect::<Vec<_>>()
    };
    let lines = |out: &mut String, indent: &str, lines: &[String]| {
        lines.iter().for_each(|line| out.push_str(&format!("{indent}{line}\n")));
    };
    for rank in (0..plan.ranks).map(Rank) {
        let even = steps(rank, 0);
        let odd = if plan.channels > 1 { steps(rank, 1) } else { even.clone() };
        out.push_str(&format!("rank {rank}:\n"));
        if even == odd {
            lines(&mut out, "  ", &even);
        } else {
            out.push_str("  if c % 2 == 0:\n");
            lines(&mut out, "    ", &even);
            out.push_str("  # 另一棵树 | the other tree\n  else:\n");
            lines(&mut out, "    ", &odd);
        }
    }
    out
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
