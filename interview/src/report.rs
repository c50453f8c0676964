//! The report of a sitting, made from grades and what people changed in them.

use std::collections::BTreeMap;

use ringlab_content::report::Grade;
use ringlab_labs::text::Text;

use crate::api::{
    ChapterLink, GateResult, ModelAnswer, Overridden, QuestionCard, QuestionReport, Report, Share,
    SittingState, StampedEvent, Study,
};
use crate::bank::{Band, GATE_PASS, POINTS, QUESTIONS, Topic, level_title};

/// What is known of a sitting that ended and was graded.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    pub sitting: String,
    pub title: String,
    pub name: Option<String>,
    pub started_ms: i64,
    pub ended_ms: i64,
    pub state: SittingState,
    pub is_final: bool,
    pub answers: Vec<Answered>,
    pub events: Vec<StampedEvent>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub question: QuestionCard,
    pub prompt: Text,
    pub model: ModelAnswer,
    pub answer: String,
    pub seconds: u32,
    pub grade: Grade,
    /// Oldest first.
    pub overrides: Vec<Overridden>,
}

/// Marks of each point after what people changed.
pub fn points(grade: &Grade, overrides: &[Overridden]) -> Vec<u32> {
    let mut points: Vec<u32> = grade.points.iter().map(|point| point.awarded).collect();
    for change in overrides {
        // A rubric written anew may have other points than the one under which the change was made.
        if let (Some(marks), Some(point)) =
            (points.get_mut(change.point as usize), grade.points.get(change.point as usize))
        {
            *marks = change.to.min(point.max);
        }
    }
    points
}

/// Marks of the question after what people changed. The grader's caps (a fatal error, a list of keywords) hold until a person grants a
/// point: whoever raises or upholds one has read the answer and disagrees with the cap. Lowering a point never raises the total.
pub fn total(grade: &Grade, overrides: &[Overridden]) -> u32 {
    if overrides.is_empty() {
        return grade.total;
    }
    let now = points(grade, overrides);
    let sum: u32 = now.iter().sum::<u32>().min(grade.max);
    let granted = overrides.iter().any(|change| {
        let at = change.point as usize;
        now.get(at).zip(grade.points.get(at)).is_some_and(|(now, point)| *now >= point.awarded)
    });
    let capped = grade.total < grade.earned();
    if capped && !granted { sum.min(grade.total) } else { sum }
}

pub fn report(material: Material) -> Report {
    let questions: Vec<QuestionReport> = material.answers.into_iter().map(question).collect();
    let total = questions.iter().map(|q| q.total).sum();
    let max = questions.iter().map(|q| q.grade.max).sum();
    let gates = questions.iter().filter(|q| q.question.gate).map(|q| GateResult {
        question: q.question.number,
        total: q.total,
        passed: q.total >= GATE_PASS,
    });
    let levels = (1..=5).map(|level| (level_title(level), level));
    let levels = levels.filter_map(|(title, level)| share(title, &questions, |q| q.question.level == level));
    let topics = Topic::ALL.into_iter();
    let topics = topics.filter_map(|topic| share(topic.title(), &questions, |q| q.question.topic == topic));
    Report {
        gates: gates.collect(),
        levels: levels.collect(),
        topics: topics.collect(),
        study: study(&questions),
        sitting: material.sitting,
        title: material.title,
        name: material.name,
        started_ms: material.started_ms,
        ended_ms: material.ended_ms,
        state: material.state,
        is_final: material.is_final,
        total,
        max,
        scaled: scaled(total, max),
        band: Band::of(total, max),
        questions,
        events: material.events,
    }
}

/// `total` of `max` on the scale of 540, rounded down as [`Band::of`] does.
fn scaled(total: u32, max: u32) -> u32 {
    (total * QUESTIONS * POINTS).checked_div(max).unwrap_or(0)
}

fn question(answered: Answered) -> QuestionReport {
    QuestionReport {
        total: total(&answered.grade, &answered.overrides),
        question: answered.question,
        prompt: answered.prompt,
        answer: answered.answer,
        seconds: answered.seconds,
        grade: answered.grade,
        overrides: answered.overrides,
        model: answered.model,
    }
}

/// `None` where nothing was asked.
fn share(title: Text, questions: &[QuestionReport], of: impl Fn(&QuestionReport) -> bool) -> Option<Share> {
    let (total, max) =
        questions.iter().filter(|q| of(q)).fold((0, 0), |(t, m), q| (t + q.total, m + q.grade.max));
    (max > 0).then_some(Share { title, total, max })
}

/// Chapters behind the points that were lost, most points first.
fn study(questions: &[QuestionReport]) -> Vec<Study> {
    let mut chapters: BTreeMap<u32, Study> = BTreeMap::new();
    for question in questions {
        let lost = question.grade.max.saturating_sub(question.total);
        for link in question.model.chapters.iter().filter(|_| lost > 0) {
            let new = || Study { chapter: ChapterLink::clone(link), lost: 0, questions: Vec::new() };
            let chapter = chapters.entry(link.number).or_insert_with(new);
            chapter.lost += lost;
            chapter.questions.push(question.question.number);
        }
    }
    let mut chapters: Vec<Study> = chapters.into_values().collect();
    chapters.sort_by_key(|study| std::cmp::Reverse(study.lost));
    chapters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank;
    use ringlab_content::report::{Label, PointGrade};

    fn grade(awarded: &[u32], total: u32) -> Grade {
        let max = 10 / awarded.len() as u32;
        let point = |awarded: &u32| PointGrade {
            label: Label::default(),
            max,
            awarded: *awarded,
            reasons: Vec::new(),
        };
        Grade {
            version: "v".into(),
            total,
            max: 10,
            points: awarded.iter().map(point).collect(),
            fatal: Vec::new(),
            remarks: Vec::new(),
            other_question: None,
            confidence: 1.0,
            person: false,
        }
    }

    fn change(point: u32, to: u32) -> Overridden {
        Overridden { point, from: 0, to, why: "why".into(), by: "I".into(), at_ms: 0 }
    }

    fn answered(number: u32, awarded: &[u32], chapters: &[u32]) -> Answered {
        let text = || Text::new("甲", "a");
        let chapter = |number: &u32| ChapterLink { number: *number, title: text(), path: None };
        Answered {
            question: QuestionCard {
                number,
                title: text(),
                level: bank::level(number),
                topic: bank::topic(number),
                gate: bank::GATES.contains(&number),
            },
            prompt: text(),
            model: ModelAnswer {
                core: text(),
                deep: text(),
                follow_ups: Vec::new(),
                chapters: chapters.iter().map(chapter).collect(),
            },
            answer: String::new(),
            seconds: 0,
            grade: grade(awarded, awarded.iter().sum()),
            overrides: Vec::new(),
        }
    }

    #[test]
    fn the_last_change_of_a_point_counts() {
        let grade = grade(&[2, 1, 0, 2, 2], 7);
        assert_eq!(total(&grade, &[]), 7);
        assert_eq!(total(&grade, &[change(2, 2), change(0, 0)]), 7);
        assert_eq!(total(&grade, &[change(2, 2), change(2, 1)]), 8);
        assert_eq!(
            points(&grade, &[change(2, 9), change(7, 2)]),
            [2, 1, 2, 2, 2],
            "an unknown point, too many marks"
        );
    }

    #[test]
    fn a_cap_holds_until_a_person_grants_a_point() {
        let capped = grade(&[2, 1, 1, 2, 0], 2);
        assert_eq!(total(&capped, &[change(0, 1)]), 2, "lowering a point keeps the cap");
        assert_eq!(total(&capped, &[change(0, 0), change(1, 0), change(2, 0), change(3, 1)]), 1);
        assert_eq!(total(&capped, &[change(0, 2)]), 6, "upholding one lifts it");
        assert_eq!(total(&capped, &[change(4, 1)]), 7);
    }

    #[test]
    fn a_report_adds_up() {
        let mut answers = vec![
            answered(4, &[2, 2, 1, 0, 0], &[3, 5]),
            answered(9, &[2, 2, 2, 2, 2], &[3]),
            answered(12, &[2, 0, 0, 0, 1], &[5, 9]),
        ];
        answers[0].overrides = vec![change(3, 1)];
        let report = report(Material {
            sitting: "s".into(),
            title: "t".into(),
            name: None,
            started_ms: 0,
            ended_ms: 1,
            state: SittingState::Submitted,
            is_final: false,
            answers,
            events: Vec::new(),
        });
        // 6 + 10 + 3 of 30; 19 · 540 / 30 = 342.
        assert_eq!((report.total, report.max, report.scaled, report.band), (19, 30, 342, Band::Working));
        assert_eq!(report.gates, [GateResult { question: 4, total: 6, passed: true }]);
        let shares = |shares: &[Share]| shares.iter().map(|s| (s.total, s.max)).collect::<Vec<_>>();
        assert_eq!(shares(&report.levels), [(6, 10), (13, 20)]);
        assert_eq!(shares(&report.topics), [(6, 10), (13, 20)]);
        let study: Vec<_> =
            report.study.iter().map(|s| (s.chapter.number, s.lost, s.questions.clone())).collect();
        assert_eq!(study, [(5, 11, vec![4, 12]), (9, 7, vec![12]), (3, 4, vec![4])]);
    }

    #[test]
    fn a_sitting_without_questions_has_nothing_to_divide() {
        assert_eq!((scaled(0, 0), scaled(540, 540), scaled(1, 540)), (0, 540, 1));
    }
}
