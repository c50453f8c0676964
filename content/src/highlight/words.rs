//! Lexers of one page: the words of CUDA C++, TOML, and the plan language.

use super::{Class, Spans};

/// Qualifiers and built-in variables of CUDA C++ that do not start with two underscores; those that do are recognised by their form.
const CUDA_WORDS: [&str; 12] = [
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "dim3",
    "float4",
    "uint4",
    "int4",
    "half",
    "nv_bfloat16",
    "clock64",
];

/// Words of the plan language (`engine/src/plan/LANGUAGE.md`); a test holds them against its own texts.
const PLAN_WORDS: [&str; 20] = [
    "plan",
    "collective",
    "ranks",
    "channels",
    "chunks",
    "scratch",
    "every",
    "rank",
    "channel",
    "let",
    "for",
    "in",
    "if",
    "else",
    "from",
    "to",
    "with",
    "into",
    "of",
    "root",
];

const PLAN_STEPS: [&str; 10] = [
    "send",
    "recv",
    "recv_reduce_copy",
    "recv_reduce_send",
    "recv_reduce_copy_send",
    "recv_copy_send",
    "copy",
    "reduce",
    "signal",
    "wait",
];

const PLAN_BUFFERS: [&str; 2] = ["input", "output"];

/// A stretch of C++ without strings or comments: CUDA's own words get their class, the rest keeps `class`.
pub(super) fn cuda(text: &str, class: Option<Class>, out: &mut Spans) {
    let is_cuda = |word: &str| CUDA_WORDS.contains(&word) || (word.starts_with("__") && word.len() > 4);
    each_piece(text, |piece, is_word| {
        out.push(piece, if is_word && is_cuda(piece) { Some(Class::Cuda) } else { class })
    });
}

pub(super) fn plan(code: &str, out: &mut Spans) {
    for line in code.split_inclusive('\n') {
        let (code, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        each_piece(code, |piece, is_word| {
            let class = match piece {
                _ if !is_word => None,
                _ if PLAN_WORDS.contains(&piece) => Some(Class::Keyword),
                _ if PLAN_STEPS.contains(&piece) => Some(Class::Function),
                _ if PLAN_BUFFERS.contains(&piece) => Some(Class::Type),
                _ if piece.starts_with(|c: char| c.is_ascii_digit()) => Some(Class::Number),
                _ => None,
            };
            out.push(piece, class);
        });
        out.push(comment, Some(Class::Comment));
    }
}

pub(super) fn toml(code: &str, out: &mut Spans) {
    let mut rest = code;
    let mut line_start = true;
    while let Some(c) = rest.chars().next() {
        let (length, class) = match c {
            '#' => (rest.find('\n').unwrap_or(rest.len()), Some(Class::Comment)),
            '"' | '\'' => (string_length(rest, c), Some(Class::String)),
            '[' if line_start => (rest.find('\n').unwrap_or(rest.len()), Some(Class::Keyword)),
            c if is_word(c) => {
                let length = rest.find(|c| !is_word(c) && c != '-' && c != '.').unwrap_or(rest.len());
                (length, toml_word(&rest[..length], line_start))
            }
            c => (c.len_utf8(), None),
        };
        let (piece, tail) = rest.split_at(length);
        line_start = piece.ends_with('\n') || (line_start && piece.trim().is_empty());
        out.push(piece, class);
        rest = tail;
    }
}

fn toml_word(word: &str, key: bool) -> Option<Class> {
    match word {
        _ if key => Some(Class::Attribute),
        "true" | "false" => Some(Class::Constant),
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => Some(Class::Number),
        _ => None,
    }
}

/// Bytes of the string at the start of `text`, quotes included; an unclosed one ends with its line, or with the text if it is multi-line.
fn string_length(text: &str, quote: char) -> usize {
    let long = quote.to_string().repeat(3);
    if text.starts_with(&long) {
        return text[3..].find(&long).map_or(text.len(), |end| end + 6);
    }
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return i,
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return i + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Calls `piece(text, is a word)` for each maximal run of word characters and of others.
fn each_piece(text: &str, mut piece: impl FnMut(&str, bool)) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = is_word(first);
        let length = rest.find(|c| is_word(c) != word).unwrap_or(rest.len());
        piece(&rest[..length], word);
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use ringlab_engine::plan::text::parametric;
    use ringlab_engine::plan::{Algorithm, text};
    use ringlab_engine::text::Lang;
    use ringlab_engine::types::{Collective, Rank};

    use super::*;

    #[test]
    fn every_statement_of_the_plan_language_starts_with_a_word_known_here() {
        let mut lines = 0;
        let all = Algorithm::ALL.into_iter().flat_map(|a| Collective::all(Rank(1)).map(|c| (a, c)));
        for (algorithm, collective) in all.filter(|(algorithm, collective)| algorithm.supports(*collective)) {
            let Ok(code) = parametric(algorithm, collective, 4, 1, Lang::Zh) else {
                panic!("{algorithm} has no text for {collective:?}")
            };
            assert!(text::parse(&code).is_ok(), "{code}");
            for line in code
                .lines()
                .map(|line| line.split('#').next().unwrap_or("").trim())
                .filter(|line| !line.is_empty())
            {
                let first = line.split([' ', ':']).next().unwrap();
                assert!(PLAN_WORDS.contains(&first) || PLAN_STEPS.contains(&first), "`{first}` of {line}");
                lines += 1;
            }
        }
        assert!(lines > 20);
    }
}
