//! What somebody typed, as a query. Nothing typed is an error.

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::tokenizer::TextAnalyzer;

use crate::Kind;
use crate::index::Fields;

/// Longer than any question, shorter than an attack.
const CHARACTERS_MAX: usize = 200;

/// How much a find in each place counts.
const TITLE: f32 = 4.0;
const CONTEXT: f32 = 1.2;
const EXACT: f32 = 2.0;
const SLIP: f32 = 0.3;
const OTHER_NAME: f32 = 0.7;

type Boxed = Box<dyn Query>;

/// One thing to be found, by any of the ways it may be written.
struct Wanted {
    ways: Vec<(Boxed, f32)>,
}

pub(crate) struct Reader<'a> {
    pub fields: Fields,
    pub words: TextAnalyzer,
    pub characters: TextAnalyzer,
    /// For a name in lower case: its other names.
    pub synonyms: &'a dyn Fn(&str) -> Vec<String>,
}

/// A query in two strengths: all that is wanted, and any of it.
pub(crate) struct Read {
    pub all: Boxed,
    pub any: Boxed,
}

impl Reader<'_> {
    /// `None` when nothing in it can be looked for.
    pub fn read(&mut self, text: &str, kind: Option<Kind>) -> Option<Read> {
        let end = text.char_indices().nth(CHARACTERS_MAX).map_or(text.len(), |(at, _)| at);
        let text = &text[..end];
        let pieces: Vec<&str> = text.split_whitespace().collect();
        let mut wanted = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            wanted.extend(self.piece(piece, i + 1 == pieces.len()));
        }
        if wanted.is_empty() {
            return None;
        }
        // Names of several words.
        let whole = text.trim().to_lowercase();
        let mut names: Vec<Boxed> = Vec::new();
        if pieces.len() > 1 {
            for other in (self.synonyms)(&whole) {
                names.extend(self.phrase(&other, OTHER_NAME));
            }
            names.extend(self.phrase(&whole, EXACT));
        }
        let clauses = |occur: Occur, wanted: &[Wanted]| -> Boxed {
            Box::new(BooleanQuery::new(wanted.iter().map(|w| (occur, w.query())).collect()))
        };
        let all = clauses(Occur::Must, &wanted);
        let any = clauses(Occur::Should, &wanted);
        let with_names = |base: Boxed| -> Boxed {
            let names = names.iter().map(|n| (Occur::Should, n.box_clone()));
            Box::new(BooleanQuery::new([(Occur::Should, base)].into_iter().chain(names).collect()))
        };
        Some(Read { all: self.of_kind(with_names(all), kind), any: self.of_kind(with_names(any), kind) })
    }

    fn of_kind(&self, query: Boxed, kind: Option<Kind>) -> Boxed {
        let Some(kind) = kind else { return query };
        let term = Term::from_field_text(self.fields.kind, kind.name());
        let only: Boxed = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
        let only: Boxed = Box::new(ConstScoreQuery::new(only, 0.0));
        Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, only)]))
    }

    /// What one piece between spaces wants: Chinese without spaces is several words, each of which is wanted.
    fn piece(&mut self, piece: &str, last: bool) -> Vec<Wanted> {
        let mut out: Vec<Wanted> = Vec::new();
        let mut covered = 0;
        let tokens = tokens(&mut self.words, piece);
        let longest: Vec<_> = tokens
            .iter()
            .enumerate()
            // Words within a longer one are other ways to find that one, and would only make it easier to miss.
            .filter(|(i, a)| {
                !tokens.iter().enumerate().any(|(j, b)| {
                    *i != j && b.from <= a.from && a.to <= b.to && (b.to - b.from > a.to - a.from || j < *i)
                })
            })
            .map(|(_, token)| token)
            .collect();
        let count = longest.len();
        for (i, token) in longest.into_iter().enumerate() {
            if token.from < covered {
                continue;
            }
            covered = token.to;
            let written = &piece[token.from..token.to];
            let unfinished = last && i + 1 == count && token.to == piece.len();
            out.push(self.word(&token.text, written, unfinished));
        }
        if out.len() > 1 {
            // Written together, it is wanted together: as a phrase it counts more.
            let phrase = self.phrase(piece, EXACT);
            if let Some(first) = out.first_mut() {
                first.ways.extend(phrase.into_iter().map(|p| (p, 1.0)));
            }
        }
        for other in (self.synonyms)(&piece.to_lowercase()) {
            // The whole piece by its other name is enough.
            let phrase = self.phrase(&other, OTHER_NAME);
            for wanted in &mut out {
                wanted.ways.extend(phrase.iter().map(|p| (p.box_clone(), 1.0)));
            }
        }
        out
    }

    fn word(&mut self, word: &str, written: &str, unfinished: bool) -> Wanted {
        let mut ways: Vec<(Boxed, f32)> = Vec::new();
        for (field, boost) in self.places() {
            let term = Term::from_field_text(field, word);
            ways.push((Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs)), boost));
            let latin = written.is_ascii();
            if latin && word.len() >= 5 && !word.bytes().any(|b| b.is_ascii_digit()) {
                ways.push((Box::new(FuzzyTermQuery::new(term.clone(), 1, true)), boost * SLIP));
            }
            if latin && unfinished && word.len() >= 2 {
                ways.push((Box::new(FuzzyTermQuery::new_prefix(term, 0, true)), boost * SLIP));
            }
        }
        ways.extend(self.phrase(written, 0.5).into_iter().map(|p| (p, 1.0)));
        for other in (self.synonyms)(&written.to_lowercase()) {
            ways.extend(self.phrase(&other, OTHER_NAME).into_iter().map(|p| (p, 1.0)));
        }
        Wanted { ways }
    }

    fn places(&self) -> [(Field, f32); 3] {
        let f = &self.fields;
        [(f.title, TITLE), (f.context, CONTEXT), (f.text, 1.0)]
    }

    /// Character by character, so that no dictionary stands between what was written and what is found.
    fn phrase(&mut self, text: &str, boost: f32) -> Vec<Boxed> {
        let found = tokens(&mut self.characters, text);
        let fields = [(self.fields.title_characters, TITLE), (self.fields.characters, 1.0)];
        let one = |(field, weight): (Field, f32)| -> Option<Boxed> {
            let terms: Vec<Term> = found.iter().map(|t| Term::from_field_text(field, &t.text)).collect();
            let query: Boxed = match terms.len() {
                0 => return None,
                1 => Box::new(TermQuery::new(terms.into_iter().next()?, IndexRecordOption::WithFreqs)),
                _ => Box::new(PhraseQuery::new(terms)),
            };
            Some(Box::new(BoostQuery::new(query, boost * weight)))
        };
        fields.into_iter().filter_map(one).collect()
    }
}

impl Wanted {
    fn query(&self) -> Boxed {
        let way = |(query, boost): &(Boxed, f32)| -> (Occur, Boxed) {
            (Occur::Should, Box::new(BoostQuery::new(query.box_clone(), *boost)))
        };
        Box::new(BooleanQuery::new(self.ways.iter().map(way).collect()))
    }
}

struct Found {
    text: String,
    from: usize,
    to: usize,
}

fn tokens(analyzer: &mut TextAnalyzer, text: &str) -> Vec<Found> {
    let mut out = Vec::new();
    analyzer.token_stream(text).process(&mut |token| {
        out.push(Found { text: token.text.clone(), from: token.offset_from, to: token.offset_to });
    });
    out
}
