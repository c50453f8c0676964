//! From matches to marks, with the reasons.

use std::ops::Range;

use super::matching::{Match, Matcher, Window};
use super::pattern::Pattern;
use super::reading::Reading;
use super::rubric::{Claim, Point, Rubric, Statement};
use super::shape::{Blocked, Prompts};
use super::text::Text;
use crate::report::{Grade, Label, PointGrade, Quote, Reason, Remark, RemarkKind, Verdict};

/// A question with a fatal error earns no more than this.
const FATAL_CAP: u32 = 2;
/// A list of keywords earns no more than this.
const KEYWORD_CAP: u32 = 1;
/// Below this a person should look.
const SURE: f32 = 0.6;

/// Grades an answer.
pub fn grade(rubric: &Rubric, prompts: &Prompts, answer: &Reading<'_>) -> Grade {
    run(rubric, &rubric.points, true, prompts, answer)
}

/// Grades the answer to a follow-up, counted from 0. `None` when the question has no such follow-up.
pub fn grade_follow_up(
    rubric: &Rubric,
    follow_up: usize,
    prompts: &Prompts,
    answer: &Reading<'_>,
) -> Option<Grade> {
    Some(run(rubric, rubric.follow_ups.get(follow_up)?, false, prompts, answer))
}

fn run(
    rubric: &Rubric,
    points: &[Point],
    with_fatal: bool,
    prompts: &Prompts,
    answer: &Reading<'_>,
) -> Grade {
    let text = &answer.text;
    let echo = |sentence: &Range<usize>| prompts.echoed(text, sentence).then_some(Blocked::Echo);
    let blocked: Vec<Option<Blocked>> = text
        .sentences
        .iter()
        .zip(&answer.blocked)
        .map(|(sentence, blocked)| blocked.or_else(|| echo(sentence)))
        .collect();
    let matcher = Matcher::new(answer, rubric);
    let reader = Reader { matcher: &matcher, blocked: &blocked, answer: answer.answer };

    let mut grades: Vec<PointGrade> = points.iter().map(|point| reader.point(point)).collect();
    let mut fatal = Vec::new();
    if with_fatal {
        for error in &rubric.fatal {
            let Some(quote) = reader.states(&error.statement) else { continue };
            fatal.push(Remark {
                kind: RemarkKind::Fatal,
                label: error.statement.label.clone(),
                quote: Some(quote),
            });
            for point in &error.zero {
                grades[*point].awarded = 0;
            }
        }
    }
    let mut remarks = reader.remarks(text);
    let earned: u32 = grades.iter().map(|point| point.awarded).sum();
    let mut total = earned;
    if !fatal.is_empty() {
        total = total.min(FATAL_CAP);
    }
    if reader.share(text, Blocked::Keywords) > 0.6 {
        total = total.min(KEYWORD_CAP);
    }
    if answer.names_only && total > KEYWORD_CAP {
        total = KEYWORD_CAP;
        remarks.push(remark(RemarkKind::Keywords, None));
    }
    if earned == 0 && fatal.is_empty() && remarks.is_empty() && text.weight(0..text.tokens.len()) > 40 {
        remarks.push(remark(RemarkKind::OffTopic, None));
    }
    let confidence = reader.confidence(text, &grades, &fatal);
    Grade {
        version: rubric.version.clone(),
        total,
        max: points.iter().map(|point| point.max).sum(),
        points: grades,
        fatal,
        remarks,
        other_question: None,
        confidence,
        person: confidence < SURE,
    }
}

fn remark(kind: RemarkKind, quote: Option<Quote>) -> Remark {
    let (zh, en) = match kind {
        RemarkKind::Fatal => ("根本性错误", "a basic error"),
        RemarkKind::Keywords => {
            ("只列关键词、没有论断，不计分", "a list of keywords without a claim earns nothing")
        }
        RemarkKind::Echo => ("复述题目，不计分", "repeating the question earns nothing"),
        RemarkKind::Instruction => ("写给评分者的话，已忽略", "words to the grader were ignored"),
        RemarkKind::OffTopic => {
            ("没有找到与本题要点有关的论断", "no claim that belongs to this question was found")
        }
        RemarkKind::OtherQuestion => ("这是另一题的答案", "this answers another question"),
        RemarkKind::Contradiction => ("前后矛盾", "contradicts itself"),
    };
    Remark { kind, label: Label { zh: zh.to_owned(), en: en.to_owned() }, quote }
}

struct Reader<'a> {
    matcher: &'a Matcher<'a>,
    blocked: &'a [Option<Blocked>],
    answer: &'a str,
}

impl<'a> Reader<'a> {
    fn point(&self, point: &'a Point) -> PointGrade {
        let mut reasons: Vec<Reason> = point.claims.iter().map(|claim| self.claim(claim)).collect();
        let sum: f32 = reasons.iter().map(|reason| reason.marks).sum();
        let mut awarded = (sum.floor() as u32).min(point.max);
        for contradiction in &point.contradictions {
            let Some(quote) = self.states(contradiction) else { continue };
            awarded = 0;
            for reason in reasons.iter_mut().filter(|reason| reason.marks > 0.0) {
                reason.verdict = Verdict::Cancelled;
                reason.marks = 0.0;
            }
            let label = contradiction.label.clone();
            reasons.push(Reason {
                claim: "contradiction".to_owned(),
                label,
                verdict: Verdict::Cancelled,
                marks: 0.0,
                quotes: vec![quote],
            });
        }
        PointGrade { label: point.label.clone(), max: point.max, awarded, reasons }
    }

    fn claim(&self, claim: &'a Claim) -> Reason {
        let reason = |verdict, marks, quotes| Reason {
            claim: claim.id.clone(),
            label: claim.label.clone(),
            verdict,
            marks,
            quotes,
        };
        // Whoever says the opposite anywhere does not hold the claim.
        if let Some(found) = self.first(&claim.unless, &[], claim.window, true) {
            return reason(Verdict::Cancelled, 0.0, vec![self.quote(&found.span)]);
        }
        if !claim.items.is_empty() {
            let named: Vec<Quote> = claim
                .items
                .iter()
                .filter_map(|item| self.first(std::slice::from_ref(item), &[], claim.window, false))
                .map(|found| self.quote(&found.span))
                .collect();
            let marks = claim.scale.get(named.len()).copied().unwrap_or(0.0);
            let verdict = match marks {
                m if m <= 0.0 => Verdict::Missing,
                m if m < claim.marks => Verdict::Partial,
                _ => Verdict::Full,
            };
            return reason(verdict, marks, named);
        }
        for (patterns, verdict, marks) in
            [(&claim.when, Verdict::Full, claim.marks), (&claim.part, Verdict::Partial, claim.marks / 2.0)]
        {
            if let Some(found) = self.first(patterns, &[], claim.window, false) {
                return reason(verdict, marks, vec![self.quote(&found.span)]);
            }
        }
        reason(Verdict::Missing, 0.0, Vec::new())
    }

    /// Whether an error is stated in a window that does not excuse it: a "may" in another sentence excuses nothing.
    fn states(&self, statement: &'a Statement) -> Option<Quote> {
        let found = self.first(&statement.when, &statement.unless, statement.window, true)?;
        Some(self.quote(&found.span))
    }

    /// The first statement of one of these patterns in a window without any of the others; `surely` where it takes marks away.
    fn first(
        &self,
        when: &'a [Pattern],
        unless: &'a [Pattern],
        window: Window,
        surely: bool,
    ) -> Option<Match> {
        let windows = self.matcher.windows(window);
        for pattern in when.iter().filter(|pattern| self.matcher.possible(pattern)) {
            for window in &windows {
                let Some(found) = self.stated(pattern, window, surely) else { continue };
                if !unless.iter().any(|pattern| self.stated(pattern, window, true).is_some()) {
                    return Some(found);
                }
            }
        }
        None
    }

    fn stated(&self, pattern: &'a Pattern, window: &Range<usize>, surely: bool) -> Option<Match> {
        let mut found = self.matcher.matches(pattern, window).into_iter();
        found.find(|found| self.matcher.stated(found, surely) && self.counts(&found.span))
    }

    fn counts(&self, span: &Range<usize>) -> bool {
        let sentences = &self.matcher.reading.text.sentences;
        let first = Text::index_in(sentences, span.start);
        let last = Text::index_in(sentences, span.end.saturating_sub(1).max(span.start));
        (first..=last).any(|i| self.blocked.get(i).copied().flatten().is_none())
    }

    /// The clause or clauses around a match.
    fn quote(&self, span: &Range<usize>) -> Quote {
        let text = &self.matcher.reading.text;
        let start = text.clause_of(span.start).start;
        let end = text.clause_of(span.end.saturating_sub(1).max(span.start)).end;
        let bytes = text.bytes(&(start..end));
        Quote {
            start: bytes.start,
            end: bytes.end,
            text: self.answer.get(bytes).unwrap_or_default().to_owned(),
        }
    }

    fn remarks(&self, text: &Text) -> Vec<Remark> {
        let kinds = text.sentences.iter().zip(self.blocked).filter_map(|(sentence, blocked)| {
            let kind = match (*blocked)? {
                Blocked::Keywords => RemarkKind::Keywords,
                Blocked::Echo => RemarkKind::Echo,
                Blocked::Instruction => RemarkKind::Instruction,
            };
            Some(remark(kind, Some(self.quote(sentence))))
        });
        kinds.collect()
    }

    /// Part of the answer's weight in sentences set aside for this reason.
    fn share(&self, text: &Text, reason: Blocked) -> f32 {
        let all = text.weight(0..text.tokens.len());
        let aside: usize = text
            .sentences
            .iter()
            .zip(self.blocked)
            .filter(|(_, blocked)| **blocked == Some(reason))
            .map(|(sentence, _)| text.weight(sentence.clone()))
            .sum();
        if all == 0 { 0.0 } else { aside as f32 / all as f32 }
    }

    /// Low where much was said, little understood and little earned; where marks hang on halves that rounding took; and where an accusation
    /// took marks. These are the answers on which it errs twice as often as on the others (`ringlab-grade --report` says by how much); an
    /// accusation as such, or a claim taken back, is as sure as anything else.
    fn confidence(&self, text: &Text, grades: &[PointGrade], fatal: &[Remark]) -> f32 {
        if text.is_empty() {
            return 0.99;
        }
        let quotes = || {
            let earned = grades.iter().flat_map(|point| &point.reasons).flat_map(|reason| &reason.quotes);
            earned.chain(fatal.iter().filter_map(|remark| remark.quote.as_ref()))
        };
        let (mut all, mut known) = (0, 0);
        for (sentence, blocked) in text.sentences.iter().zip(self.blocked) {
            all += text.weight(sentence.clone());
            known += match blocked {
                Some(_) => text.weight(sentence.clone()),
                None => self.understood(text, sentence, &quotes),
            };
        }
        let unknown = 1.0 - known as f32 / all.max(1) as f32;
        let earned: u32 = grades.iter().map(|point| point.awarded).sum();
        let max: u32 = grades.iter().map(|point| point.max).sum();
        let lost = 1.0 - earned as f32 / max.max(1) as f32;
        let long = (all as f32 / 80.0).min(1.0);
        let mut confidence = 0.95 - unknown * lost * long * if fatal.is_empty() { 0.9 } else { 0.2 };
        let halves = grades.iter().filter(|point| {
            let sum: f32 = point.reasons.iter().map(|reason| reason.marks).sum();
            point.awarded < point.max && sum.fract() > 0.0
        });
        confidence -= 0.12 * halves.count().min(2) as f32;
        confidence -= match earned {
            _ if fatal.is_empty() => 0.0,
            0 | 1 => 0.05,
            2 | 3 => 0.15,
            _ => 0.36,
        };
        (confidence.max(0.1) * 100.0).round() / 100.0
    }

    /// Weight of a sentence's clauses that a quote is taken from.
    fn understood<'q, I: Iterator<Item = &'q Quote>>(
        &self,
        text: &Text,
        sentence: &Range<usize>,
        quotes: &impl Fn() -> I,
    ) -> usize {
        let mut weight = 0;
        let mut at = sentence.start;
        while at < sentence.end {
            let clause = at..text.clause_of(at).end.min(sentence.end);
            let bytes = text.bytes(&clause);
            if quotes().any(|quote| quote.start < bytes.end && bytes.start < quote.end) {
                weight += text.weight(clause.clone());
            }
            at = clause.end.max(at + 1);
        }
        weight
    }
}
