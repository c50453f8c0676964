//! The override file: a table that decides some operations itself.
//!
//! ```text
//! # collective  ranks  bytes     algorithm  protocol  channels
//! all_reduce    2..4   0..256K   one_shot   Simple    4
//! all_reduce    *      256K..    ring       *         *
//! ```
//!
//! One rule a line, fields between blanks, `#` starts a comment. `*` is anything on the left and "as the tuner likes" on the right.
//! Ranks: `4`, or `2..8` with both ends included. Bytes, of the larger buffer: from the first to below the second, either may be
//! missing; K, M and G are powers of 1024. The first rule that matches decides.

use std::str::FromStr;

use serde::Serialize;

use super::Protocol;
use crate::plan::{Algorithm, MAX_CHANNELS};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// In the file, from 1.
    pub line: usize,
    /// [`crate::types::Collective::name`]; `None` for all.
    pub collective: Option<String>,
    /// Both included.
    pub ranks: Option<(u32, u32)>,
    /// The second not included.
    pub bytes: (u64, Option<u64>),
    pub algorithm: Option<Algorithm>,
    pub protocol: Option<Protocol>,
    pub channels: Option<u32>,
}

impl Rule {
    fn matches(&self, collective: &str, ranks: u32, bytes: u64) -> bool {
        self.collective.as_ref().is_none_or(|name| name == collective)
            && self.ranks.is_none_or(|(low, high)| (low..=high).contains(&ranks))
            && bytes >= self.bytes.0
            && self.bytes.1.is_none_or(|end| bytes < end)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// Where they come from, for messages.
    pub source: String,
    pub list: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}:{line}: {problem}")]
pub struct RuleError {
    pub source_name: String,
    pub line: usize,
    pub problem: String,
}

impl Rules {
    /// Reads a table; `source` names it in messages. `collectives` are the names there are.
    ///
    /// # Errors
    /// The first line that cannot be read, with what was expected.
    pub fn parse(text: &str, source: &str, collectives: &[&str]) -> Result<Rules, RuleError> {
        let mut list = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            let fields: Vec<&str> = content.split_whitespace().collect();
            if fields.is_empty() {
                continue;
            }
            let rule = rule(at + 1, &fields, collectives);
            list.push(rule.map_err(|problem| RuleError {
                source_name: source.into(),
                line: at + 1,
                problem,
            })?);
        }
        Ok(Rules { source: source.into(), list })
    }

    /// The rule that decides an operation.
    pub fn find(&self, collective: &str, ranks: u32, bytes: u64) -> Option<&Rule> {
        self.list.iter().find(|rule| rule.matches(collective, ranks, bytes))
    }
}

fn rule(line: usize, fields: &[&str], collectives: &[&str]) -> Result<Rule, String> {
    let &[collective, ranks, bytes, algorithm, protocol, channels] = fields else {
        return Err(format!(
            "{} fields; a rule has six: collective ranks bytes algorithm protocol channels",
            fields.len()
        ));
    };
    if collective != "*" && !collectives.contains(&collective) {
        return Err(format!("unknown collective `{collective}`; known: {}, *", collectives.join(", ")));
    }
    let rule = Rule {
        line,
        collective: (collective != "*").then(|| collective.into()),
        ranks: any(ranks, read_ranks)?,
        bytes: any(bytes, read_bytes)?.unwrap_or((0, None)),
        algorithm: any(algorithm, |name| Algorithm::from_str(name).map_err(|err| err.to_string()))?,
        protocol: any(protocol, |name| Protocol::from_str(name).map_err(|err| err.to_string()))?,
        channels: any(channels, |n| match n.parse::<u32>() {
            Ok(n) if (1..=MAX_CHANNELS).contains(&n) => Ok(n),
            _ => Err(format!("`{n}` channels; give 1 to {MAX_CHANNELS} or *")),
        })?,
    };
    if rule.algorithm.is_none() && rule.protocol.is_none() && rule.channels.is_none() {
        return Err("the rule decides nothing: give an algorithm, a protocol or a number of channels".into());
    }
    Ok(rule)
}

fn any<T>(field: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if field == "*" { Ok(None) } else { read(field).map(Some) }
}

fn read_ranks(field: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("`{field}` is no number of ranks; write 4, 2..8 or *");
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (low, high) = match field.split_once("..") {
        Some((low, high)) => (number(low)?, number(high)?),
        None => (number(field)?, number(field)?),
    };
    if low == 0 || low > high { Err(wrong()) } else { Ok((low, high)) }
}

fn read_bytes(field: &str) -> Result<(u64, Option<u64>), String> {
    let wrong = || format!("`{field}` is no range of bytes; write 0..64K, 1M.. or *");
    let size = |text: &str| {
        let (number, unit) = match text.char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 1u64 << 10),
            Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
            Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
            _ => (text, 1),
        };
        number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)
    };
    let (from, to) = field.split_once("..").ok_or_else(wrong)?;
    let from = if from.is_empty() { 0 } else { size(from)? };
    let to = if to.is_empty() { None } else { Some(size(to)?) };
    if to.is_some_and(|to| to <= from) { Err(wrong()) } else { Ok((from, to)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COLLECTIVES: [&str; 2] = ["all_reduce", "broadcast"];

    fn rules(text: &str) -> Result<Rules, RuleError> {
        Rules::parse(text, "table", &COLLECTIVES)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules =
            rules("# head\nall_reduce 2..4 0..256K one_shot Simple 4 # small\n\n* * 256K.. ring * *\n")
                .unwrap();
        let line = |ranks, bytes| rules.find("all_reduce", ranks, bytes).map(|rule| rule.line);
        assert_eq!([line(2, 0), line(4, (256 << 10) - 1), line(4, 256 << 10)], [Some(2), Some(2), Some(4)]);
        assert_eq!(line(5, 1), None);
        assert_eq!(rules.find("broadcast", 9, 1 << 40).unwrap().algorithm, Some(Algorithm::Ring));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let refused = |text: &str| rules(text).unwrap_err().to_string();
        assert_eq!(
            refused("\nall_reduce 2 * ring *"),
            "table:2: 5 fields; a rule has six: collective ranks bytes algorithm protocol channels"
        );
        assert!(
            refused("all_to_none * * ring * *")
                .contains("unknown collective `all_to_none`; known: all_reduce")
        );
        assert!(refused("* 4..2 * ring * *").contains("`4..2`"));
        assert!(refused("* * 4K..4K ring * *").contains("`4K..4K`"));
        assert!(refused("* * * bogus * *").contains("unknown algorithm `bogus`"));
        assert!(refused("* * * ring * 99").contains("1 to 64"));
        assert!(refused("* * * * * *").contains("decides nothing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(\\PC{0,40}\n){0,4}") {
            let _ = rules(&text);
        }

        #[test]
        fn near_rules_are_read_or_refused_with_their_line(
            fields in prop::collection::vec(prop::sample::select(vec!["*", "2..4", "..", "0..1K", "1K..", "ring", "LL", "all_reduce", "9", "#"]), 0..8),
        ) {
            match rules(&fields.join(" ")) {
                Ok(rules) => prop_assert!(rules.list.len() <= 1),
                Err(err) => prop_assert_eq!(err.line, 1),
            }
        }
    }
}
