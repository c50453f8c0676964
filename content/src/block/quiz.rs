//! `quiz`: a question with its answer and why.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::Spanned;

use super::Block;
use crate::ids::is_id;
use crate::types::{Quiz, QuizKind, QuizOption};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    id: Spanned<String>,
    #[serde(rename = "type")]
    kind: Spanned<String>,
    prompt: Spanned<String>,
    explanation: Spanned<String>,
    #[serde(default)]
    option: Vec<Choice>,
    answer: Option<Spanned<f64>>,
    tolerance: Option<Spanned<f64>>,
    unit: Option<Spanned<String>>,
    #[serde(default)]
    items: Vec<Spanned<String>>,
    #[serde(default)]
    pairs: Vec<(Spanned<String>, Spanned<String>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    text: Spanned<String>,
    #[serde(default)]
    correct: bool,
    why: Spanned<String>,
}

impl Block<'_, '_> {
    pub(super) fn quiz(&mut self) -> Option<Quiz> {
        let body: Body = self.toml("quiz")?;
        let id = body.id.get_ref().clone();
        if !is_id(&id) {
            self.problem_at(
                &body.id,
                format!("quiz id `{id}`: use lower-case letters, digits and single hyphens"),
            );
        } else if !self.state.ids.insert(format!("quiz-{id}")) {
            self.problem_at(
                &body.id,
                format!("quiz id `{id}` is used twice in this chapter; give each its own"),
            );
        }
        self.foreign_fields(&body);
        let prompt = self.blocks(&body.prompt);
        let (kind, detail) = match body.kind.get_ref().as_str() {
            "single" | "multiple" => self.choices(&body)?,
            "numeric" => self.numeric(&body)?,
            "order" => self.order(&body)?,
            "matching" => self.matching(&body)?,
            other => {
                self.problem_at(
                    &body.kind,
                    format!("`{other}` is no type of quiz; use single, multiple, numeric, order or matching"),
                );
                return None;
            }
        };
        let explanation = self.blocks(&body.explanation);
        self.outline(format!("quiz {id}"), format!("{} {detail}", body.kind.get_ref()));
        Some(Quiz { id, prompt, kind, explanation })
    }

    /// Fields that another type of quiz has.
    fn foreign_fields(&mut self, body: &Body) {
        let kind = body.kind.get_ref().as_str();
        let choice = matches!(kind, "single" | "multiple");
        let wrong = [
            ("[[option]]", !body.option.is_empty() && !choice),
            ("answer", body.answer.is_some() && kind != "numeric"),
            ("tolerance", body.tolerance.is_some() && kind != "numeric"),
            ("unit", body.unit.is_some() && kind != "numeric"),
            ("items", !body.items.is_empty() && kind != "order"),
            ("pairs", !body.pairs.is_empty() && kind != "matching"),
        ];
        for (field, _) in wrong.into_iter().filter(|(_, wrong)| *wrong) {
            self.problem_at(
                &body.kind,
                format!("a quiz of type `{kind}` has no `{field}`; delete it or change the type"),
            );
        }
    }

    fn choices(&mut self, body: &Body) -> Option<(QuizKind, String)> {
        let single = body.kind.get_ref() == "single";
        let correct = body.option.iter().filter(|option| option.correct).count();
        if body.option.len() < 2 {
            self.problem(
                "give the quiz at least two [[option]] tables, each with `text`, `correct` and `why`",
            );
        }
        if single && correct != 1 {
            self.problem(format!("a `single` quiz has one option with `correct = true`, not {correct}; mend it or make it `multiple`"));
        } else if correct == 0 {
            self.problem("no option has `correct = true`; mark the right ones");
        }
        let detail: Vec<&str> =
            body.option.iter().map(|option| if option.correct { "right" } else { "wrong" }).collect();
        self.distinct("option", body.option.iter().map(|option| &option.text));
        let mut options = Vec::new();
        for option in &body.option {
            let (html, why) = (self.line(&option.text), self.blocks(&option.why));
            options.push(QuizOption { html, correct: option.correct, why });
        }
        let kind = if single { QuizKind::Single { options } } else { QuizKind::Multiple { options } };
        Some((kind, detail.join(" ")))
    }

    fn numeric(&mut self, body: &Body) -> Option<(QuizKind, String)> {
        let Some(answer) = &body.answer else {
            self.problem(
                "a `numeric` quiz needs `answer`, and `tolerance` unless the answer is exact (0.01 is 1 %)",
            );
            return None;
        };
        let tolerance = body.tolerance.as_ref().map_or(0.0, |tolerance| *tolerance.get_ref());
        let value = *answer.get_ref();
        if !value.is_finite() {
            self.problem_at(answer, "the answer must be a finite number");
        }
        if let Some(at) = &body.tolerance {
            if !(0.0..1.0).contains(&tolerance) {
                self.problem_at(at, "the tolerance is relative, from 0 (exact) to below 1; 0.01 is 1 %");
            } else if value == 0.0 && tolerance > 0.0 {
                self.problem_at(
                    at,
                    "a tolerance relative to 0 allows nothing; ask for another figure, or leave it out",
                );
            }
        }
        let unit = body.unit.as_ref().map(|unit| unit.get_ref().clone()).unwrap_or_default();
        Some((QuizKind::Numeric { answer: value, tolerance, unit }, format!("{value} ± {tolerance}")))
    }

    fn order(&mut self, body: &Body) -> Option<(QuizKind, String)> {
        if body.items.len() < 3 {
            self.problem("an `order` quiz needs at least three `items`, in the right order");
        }
        self.distinct("item", body.items.iter());
        let items: Vec<String> = body.items.iter().map(|item| self.line(item)).collect();
        let detail = format!("{} items", items.len());
        Some((QuizKind::Order { items }, detail))
    }

    fn matching(&mut self, body: &Body) -> Option<(QuizKind, String)> {
        if body.pairs.len() < 2 {
            self.problem("a `matching` quiz needs at least two `pairs = [[\"left\", \"right\"], …]`");
        }
        self.distinct("left side", body.pairs.iter().map(|(left, _)| left));
        self.distinct("right side", body.pairs.iter().map(|(_, right)| right));
        let pairs: Vec<(String, String)> =
            body.pairs.iter().map(|(left, right)| (self.line(left), self.line(right))).collect();
        let detail = format!("{} pairs", pairs.len());
        Some((QuizKind::Matching { pairs }, detail))
    }

    /// Two equal texts could not be told apart.
    fn distinct<'t>(&mut self, what: &str, texts: impl Iterator<Item = &'t Spanned<String>>) {
        let mut seen = BTreeSet::new();
        for text in texts {
            if !seen.insert(text.get_ref().trim()) {
                self.problem_at(text, format!("this {what} stands twice; make them differ"));
            }
        }
    }
}
