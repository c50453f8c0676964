//! Where in an answer a pattern holds, and under which negations.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use super::formula::{Known, Unit, Value, solve};
use super::pattern::Pattern;
use super::phrase::Strange;
use super::reading::{Reading, Values};
use super::rubric::Rubric;

/// Weight of words between the parts of a sequence, and between neighbours.
const FAR: usize = 40;
const NEAR: usize = 6;
/// Alternatives kept while parts are combined; an answer that repeats a word a thousand times stays cheap.
const KEPT: usize = 48;

/// A part of the answer that says what a pattern asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// Tokens.
    pub span: Range<usize>,
    /// Negators that still deny it; none for a plain statement.
    pub denied: Vec<usize>,
    /// Negators that a `!` in the pattern asked for, or that it spells itself.
    used: Vec<usize>,
    /// Some of it stands outside of conditions and questions.
    pub asserted: bool,
}

/// How far apart the parts of a pattern may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Window {
    Clause,
    #[default]
    Sentence,
    /// Two neighbouring sentences.
    Near,
    Answer,
}

pub(crate) type Concepts = BTreeMap<String, Vec<Pattern>>;

/// One answer, ready to be asked by one rubric.
#[derive(Debug)]
pub(crate) struct Matcher<'a> {
    pub reading: &'a Reading<'a>,
    concepts: &'a Concepts,
    pub(super) strange: Strange,
    values: Rc<Values>,
    memo: RefCell<HashMap<&'a str, Rc<Vec<Match>>>>,
}

impl<'a> Matcher<'a> {
    pub fn new(reading: &'a Reading<'a>, rubric: &'a Rubric) -> Matcher<'a> {
        let known = |stem: &str| rubric.vocabulary.contains(stem);
        Matcher {
            reading,
            concepts: &rubric.concepts,
            strange: Strange::new(&reading.text.tokens, &reading.index.stems, known),
            values: reading.values(&rubric.names),
            memo: RefCell::default(),
        }
    }

    pub fn windows(&self, window: Window) -> Vec<Range<usize>> {
        match window {
            Window::Clause => self.reading.text.clauses.clone(),
            Window::Sentence => self.reading.text.sentences.clone(),
            Window::Near if self.reading.text.sentences.len() > 1 => {
                self.reading.text.sentences.windows(2).map(|pair| pair[0].start..pair[1].end).collect()
            }
            Window::Near | Window::Answer => std::iter::once(0..self.reading.text.tokens.len()).collect(),
        }
    }

    /// Matches within a range of tokens, denied ones included.
    pub fn matches(&self, pattern: &'a Pattern, within: &Range<usize>) -> Vec<Match> {
        match pattern {
            Pattern::Phrase(phrase) => self.phrase(phrase, within),
            Pattern::Concept(name) => {
                let all = self.concept(name);
                all.iter()
                    .filter(|m| within.start <= m.span.start && m.span.end <= within.end)
                    .cloned()
                    .collect()
            }
            Pattern::Value(value) => self.value(value, within),
            Pattern::Adjacent(parts) => self.ordered(parts, within, NEAR),
            Pattern::Sequence(parts) => self.ordered(parts, within, FAR),
            Pattern::All(parts) => self.all(parts, within),
            Pattern::Any(parts) => {
                let mut out: Vec<Match> = parts.iter().flat_map(|part| self.matches(part, within)).collect();
                out.sort_by_key(|m| (m.span.start, m.span.end));
                out.dedup();
                out
            }
            Pattern::Denied(part) => {
                let deny = |mut m: Match| {
                    m.used.append(&mut m.denied);
                    m
                };
                self.matches(part, within).into_iter().filter(|m| !m.denied.is_empty()).map(deny).collect()
            }
            Pattern::Either(part) => {
                let either = |mut m: Match| {
                    m.used.append(&mut m.denied);
                    m.asserted = true;
                    m
                };
                self.matches(part, within).into_iter().map(either).collect()
            }
            // Only meaningful beside others; `all` treats it.
            Pattern::Absent(_) => Vec::new(),
        }
    }

    /// Whether a match is a statement. What only a verb denies (省掉, `skips`) is spoken of, which does unless one must be sure.
    pub fn stated(&self, found: &Match, surely: bool) -> bool {
        found.asserted && (found.denied.is_empty() || (!surely && self.reading.polarity.soft(&found.denied)))
    }

    fn concept(&self, name: &'a str) -> Rc<Vec<Match>> {
        if let Some(known) = self.memo.borrow().get(name) {
            return Rc::clone(known);
        }
        let mut out = Vec::new();
        for pattern in self.concepts.get(name).into_iter().flatten() {
            match pattern {
                Pattern::Phrase(phrase) => {
                    out.extend(self.phrase(phrase, &(0..self.reading.text.tokens.len())))
                }
                pattern if !self.possible(pattern) => {}
                pattern => {
                    for sentence in &self.reading.text.sentences {
                        out.extend(self.matches(pattern, sentence));
                    }
                }
            }
        }
        out.sort_by_key(|m: &Match| (m.span.start, m.span.end));
        out.dedup();
        let out = Rc::new(out);
        self.memo.borrow_mut().insert(name, Rc::clone(&out));
        out
    }

    /// Whether the parts of a pattern stand anywhere in the answer; most don't, and then no window has to be searched.
    pub fn possible(&self, pattern: &'a Pattern) -> bool {
        match pattern {
            Pattern::Phrase(phrase) => !self.beginnings(phrase).is_empty(),
            Pattern::Concept(name) => !self.concept(name).is_empty(),
            Pattern::Value(_) => !self.values.is_empty(),
            Pattern::Adjacent(parts) | Pattern::Sequence(parts) | Pattern::All(parts) => {
                parts.iter().all(|part| self.possible(part))
            }
            Pattern::Any(parts) => parts.iter().any(|part| self.possible(part)),
            Pattern::Denied(part) | Pattern::Either(part) => self.possible(part),
            Pattern::Absent(_) => true,
        }
    }

    pub(super) fn plain(&self, span: Range<usize>) -> Match {
        Match {
            denied: self.reading.polarity.denying(&span),
            used: self.reading.polarity.spelled(&span),
            asserted: !self.reading.polarity.is_supposed(span.start),
            span,
        }
    }

    fn ordered(&self, parts: &'a [Pattern], within: &Range<usize>, far: usize) -> Vec<Match> {
        let mut partial: Option<Vec<Match>> = None;
        for part in parts {
            if let Pattern::Absent(_) = part {
                continue;
            }
            let next = self.matches(part, within);
            partial = Some(match partial {
                None => next,
                Some(before) => {
                    let mut out = Vec::new();
                    for a in &before {
                        for b in next.iter().filter(|b| b.span.start >= a.span.end) {
                            if self.reading.text.weight(a.span.end..b.span.start) <= far {
                                out.push(join(a, b));
                            }
                        }
                    }
                    keep(out)
                }
            });
        }
        partial.map(|list| list.into_iter().map(settle).collect()).unwrap_or_default()
    }

    fn all(&self, parts: &'a [Pattern], within: &Range<usize>) -> Vec<Match> {
        let mut partial: Option<Vec<Match>> = None;
        for part in parts {
            if let Pattern::Absent(inner) = part {
                if self.matches(inner, within).iter().any(|m| m.denied.is_empty()) {
                    return Vec::new();
                }
                continue;
            }
            let next = self.matches(part, within);
            if next.is_empty() {
                return next;
            }
            partial = Some(match partial {
                None => next,
                Some(before) => keep(before.iter().flat_map(|a| next.iter().map(|b| join(a, b))).collect()),
            });
        }
        partial.map(|list| list.into_iter().map(settle).collect()).unwrap_or_default()
    }

    fn value(&self, value: &'a Value, within: &Range<usize>) -> Vec<Match> {
        let inside = |tokens: &Range<usize>| within.start <= tokens.start && tokens.end <= within.end;
        let here =
            self.values.iter().enumerate().filter(|(_, (_, tokens))| inside(tokens) && !tokens.is_empty());
        let plain = |tokens: &Range<usize>| self.plain(tokens.clone());
        match value {
            Value::Number(number, unit) => here
                .filter(|(_, (found, _))| found.expr.holds_number(*number, *unit))
                .map(|(_, (_, tokens))| plain(tokens))
                .collect(),
            Value::Formula(wanted) => here
                .filter(|(_, (found, _))| found.expr.holds(wanted))
                .map(|(_, (_, tokens))| plain(tokens))
                .collect(),
            Value::Relation(left, right) => {
                let mut known: Vec<Known> = Vec::new();
                for (source, (found, _)) in here {
                    collect(&found.expr, source, &mut known);
                }
                for (word, value) in [
                    ("bf16", 2.0),
                    ("fp16", 2.0),
                    ("half", 2.0),
                    ("float16", 2.0),
                    ("bfloat16", 2.0),
                    ("fp32", 4.0),
                    ("fp8", 1.0),
                ] {
                    if self.reading.text.tokens[within.clone()].iter().any(|token| token.text == word) {
                        known.push(Known { value, unit: None, source: usize::MAX });
                    }
                }
                known.truncate(24);
                let Some(sources) = solve(left, right, &known) else { return Vec::new() };
                let spans: Vec<&Range<usize>> =
                    sources.iter().filter_map(|s| self.values.get(*s)).map(|(_, t)| t).collect();
                let start = spans.iter().map(|span| span.start).min();
                let end = spans.iter().map(|span| span.end).max();
                match (start, end) {
                    // Arithmetic is not denied by a word before it: 不是 7 倍，是 1.75 倍.
                    (Some(start), Some(end)) => {
                        vec![Match { span: start..end, denied: Vec::new(), used: Vec::new(), asserted: true }]
                    }
                    _ => Vec::new(),
                }
            }
        }
    }
}

/// The numbers in an expression: its own value and its parts'.
fn collect(expr: &super::formula::Expr, source: usize, known: &mut Vec<Known>) {
    use super::formula::Expr;
    let mut push = |value: f64, unit: Option<Unit>| {
        let new = Known { value, unit, source };
        if !known.contains(&new) {
            known.push(new);
        }
    };
    match expr {
        Expr::Number(value, unit) => push(*value, *unit),
        Expr::Sum(parts) | Expr::Product(parts) => {
            if let Some(value) = expr.constant() {
                push(value, expr.unit());
            }
            parts.iter().for_each(|part| collect(part, source, known));
        }
        Expr::Minus(part) | Expr::Inverse(part) | Expr::Log(part) => collect(part, source, known),
        Expr::Power(..) | Expr::Name(_) => {
            if let Some(value) = expr.constant() {
                push(value, None);
            }
        }
    }
}

fn join(a: &Match, b: &Match) -> Match {
    let merge = |a: &[usize], b: &[usize]| {
        let mut out = a.to_vec();
        out.extend(b.iter().filter(|n| !a.contains(n)));
        out
    };
    Match {
        span: a.span.start.min(b.span.start)..a.span.end.max(b.span.end),
        denied: merge(&a.denied, &b.denied),
        used: merge(&a.used, &b.used),
        asserted: a.asserted || b.asserted,
    }
}

/// A negator that a part asked for does not deny the others: "it is not so that returning means completion" denies completion.
fn settle(mut m: Match) -> Match {
    m.denied.retain(|negator| !m.used.contains(negator));
    m
}

/// The best few: not denied, short.
fn keep(mut list: Vec<Match>) -> Vec<Match> {
    list.sort_by_key(|m| {
        (m.denied.iter().filter(|n| !m.used.contains(n)).count(), !m.asserted, m.span.len(), m.span.start)
    });
    list.dedup();
    list.truncate(KEPT);
    list
}
