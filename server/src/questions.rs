//! The question bank as the server holds it: rubrics that grade, and texts rendered once.

use std::collections::BTreeMap;
use std::path::Path;

use ringlab_content::bank::{Bank, Question, QuestionHtml};
use ringlab_content::report::Grade;
use ringlab_content::{ContentErrors, Library};
use ringlab_interview::api::{ChapterLink, FollowUp, ModelAnswer, QuestionCard};
use ringlab_interview::bank;
use ringlab_labs::text::{Lang, Text};

#[derive(Debug)]
pub struct Questions {
    bank: Bank,
    texts: BTreeMap<u32, QuestionTexts>,
}

/// What is shown of a question. The HTML is `ringlab_content`'s and trusted.
#[derive(Debug, Clone)]
pub struct QuestionTexts {
    pub card: QuestionCard,
    pub prompt: Text,
    pub model: ModelAnswer,
}

impl Questions {
    /// # Errors
    /// All that is wrong in the bank, each with its file and line.
    pub fn load(root: &Path, library: &Library) -> Result<Questions, ContentErrors> {
        let bank = Bank::load(root)?;
        let mut html = bank.html(root, library)?;
        let texts = bank.questions().filter_map(|question| {
            let html = html.remove(&question.number)?;
            Some((question.number, texts(question, html, library)))
        });
        Ok(Questions { texts: texts.collect(), bank })
    }

    /// Grades an answer to a question. `None` when there is no such question.
    pub fn grade(&self, number: u32, answer: &str) -> Option<Grade> {
        self.bank.read(answer).grade(number)
    }

    /// Grades an answer to follow-up `n`, from 1. `None` when there is no such follow-up.
    pub fn grade_follow_up(&self, number: u32, n: usize, answer: &str) -> Option<Grade> {
        self.bank.read(answer).grade_follow_up(number, n)
    }

    /// As it is written, for whoever reads Markdown.
    pub fn source(&self, number: u32) -> Option<&Question> {
        self.bank.question(number)
    }

    pub fn texts(&self, number: u32) -> Option<&QuestionTexts> {
        self.texts.get(&number)
    }

    /// Those whose model answers lead to a chapter, by number.
    pub fn about(&self, chapter: u32) -> Vec<QuestionCard> {
        let leads = |texts: &&QuestionTexts| texts.model.chapters.iter().any(|link| link.number == chapter);
        self.texts.values().filter(leads).map(|texts| texts.card.clone()).collect()
    }

    /// All that are written, by number.
    pub fn cards(&self) -> impl Iterator<Item = &QuestionCard> {
        self.texts.values().map(|texts| &texts.card)
    }
}

fn texts(question: &Question, html: QuestionHtml, library: &Library) -> QuestionTexts {
    let number = question.number;
    let card = QuestionCard {
        number,
        title: html.title,
        level: bank::level(number),
        topic: bank::topic(number),
        gate: bank::GATES.contains(&number),
    };
    let follow_ups = html.follow_ups.into_iter().map(|(prompt, answer)| FollowUp { prompt, answer });
    let model = ModelAnswer {
        core: html.core,
        deep: html.deep,
        follow_ups: follow_ups.collect(),
        chapters: question.rubric.chapters.iter().filter_map(|n| chapter(*n, library)).collect(),
    };
    QuestionTexts { card, prompt: html.prompt, model }
}

/// `None` for a number that the course's index does not have.
fn chapter(number: u32, library: &Library) -> Option<ChapterLink> {
    let title = library.titles().iter().find(|title| title.number == number)?;
    let folder = title.folder();
    let written = library.readable(Lang::Zh, &folder).is_some();
    Some(ChapterLink {
        number,
        title: Text::new(&title.zh, &title.en),
        path: written.then(|| format!("/course/{folder}")),
    })
}
