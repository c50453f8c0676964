//! An answer, read once: whatever does not depend on the question. Every rubric of the bank can then be asked about it.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::index::Index;
use super::names::Names;
use super::polarity::Polarity;
use super::relations;
use super::scan::{self, Found};
use super::shape::{self, Blocked};
use super::text::Text;

/// Longer answers are read to here; nobody writes as much in an interview.
const MAX_BYTES: usize = 64 << 10;

/// Numbers and formulae with the tokens they are written in.
pub(crate) type Values = Vec<(Found, Range<usize>)>;

/// An answer as the grader reads it.
#[derive(Debug)]
pub struct Reading<'a> {
    pub(crate) answer: &'a str,
    pub(crate) text: Text,
    pub(crate) polarity: Polarity,
    pub(crate) index: Index,
    /// For each sentence, whether it is set aside in any question.
    pub(crate) blocked: Vec<Option<Blocked>>,
    /// The whole of it names things and says nothing of them.
    pub(crate) names_only: bool,
    /// What names of variables mean depends on the rubric; most rubrics share the lexicon's.
    values: RefCell<Vec<(Arc<Names>, Rc<Values>)>>,
}

impl<'a> Reading<'a> {
    pub fn new(answer: &'a str) -> Reading<'a> {
        let text = Text::new(head(answer));
        Reading {
            answer,
            polarity: Polarity::new(&text),
            index: Index::new(&text.tokens),
            blocked: shape::blocked(&text),
            names_only: relations::names_only(&text),
            values: RefCell::default(),
            text,
        }
    }

    pub(crate) fn values(&self, names: &Arc<Names>) -> Rc<Values> {
        let mut known = self.values.borrow_mut();
        if let Some((_, values)) = known.iter().find(|(other, _)| Arc::ptr_eq(other, names)) {
            return Rc::clone(values);
        }
        let found = scan::find(&self.text.normal.chars, names);
        let place = |found: Found| {
            let tokens = self.text.tokens_at(&found.chars);
            (found, tokens)
        };
        let values: Rc<Values> = Rc::new(found.into_iter().map(place).collect());
        known.push((Arc::clone(names), Rc::clone(&values)));
        values
    }
}

fn head(answer: &str) -> &str {
    let mut end = answer.len().min(MAX_BYTES);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    &answer[..end]
}
