//! Documents in, hits out.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use jieba_rs::Jieba;
use tantivy::collector::{Count, TopDocs};
use tantivy::schema::{
    Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::snippet::SnippetGenerator;
use tantivy::tokenizer::{Language, Stemmer, TextAnalyzer};
use tantivy::{DocAddress, IndexReader, Searcher, TantivyDocument, TantivyError};

use crate::query::Reader;
use crate::words::{Characters, Words};
use crate::{Document, Hit, Kind, Piece, Query, Results, Synonyms};

/// Bytes of text around what was found.
const SNIPPET: usize = 260;
/// Characters of a text that is shown from its start.
const LEAD: usize = 90;
const WORDS: &str = "words";
const CHARACTERS: &str = "characters";
/// tantivy's least; the documents take a few megabytes.
const MEMORY: usize = 15_000_000;

#[derive(Debug)]
pub struct SearchError(TantivyError);

impl std::fmt::Display for SearchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the search index: {}", self.0)
    }
}

impl std::error::Error for SearchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<TantivyError> for SearchError {
    fn from(error: TantivyError) -> SearchError {
        SearchError(error)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub kind: Field,
    pub href: Field,
    pub lang: Field,
    pub title: Field,
    pub context: Field,
    pub text: Field,
    pub title_characters: Field,
    pub characters: Field,
}

/// An index in memory. Immutable: share it behind an `Arc`.
pub struct Index {
    reader: IndexReader,
    fields: Fields,
    words: TextAnalyzer,
    characters: TextAnalyzer,
    /// For a name in lower case, the other names of the thing.
    synonyms: HashMap<String, Vec<String>>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("documents", &self.reader.searcher().num_docs()).finish_non_exhaustive()
    }
}

impl Index {
    /// `synonyms`: groups of names; their Chinese ones also become words of the dictionary.
    ///
    /// # Errors
    /// tantivy cannot build it: out of memory, or no thread to be had.
    pub fn build(
        documents: impl IntoIterator<Item = Document>,
        synonyms: &[Synonyms],
    ) -> Result<Index, SearchError> {
        let mut jieba = Jieba::new();
        for name in synonyms.iter().flatten().filter(|name| name.chars().all(crate::words::is_han)) {
            jieba.add_word(name, None, None);
        }
        let words = TextAnalyzer::builder(Words { jieba: Arc::new(jieba) })
            .filter(Stemmer::new(Language::English))
            .build();
        let characters = TextAnalyzer::builder(Characters).build();
        let (schema, fields) = schema();
        let index = tantivy::Index::create_in_ram(schema);
        index.tokenizers().register(WORDS, words.clone());
        index.tokenizers().register(CHARACTERS, characters.clone());
        let mut writer = index.writer_with_num_threads(1, MEMORY)?;
        for document in documents {
            let mut stored = TantivyDocument::new();
            stored.add_text(fields.kind, document.kind.name());
            stored.add_text(fields.href, document.href);
            stored.add_text(fields.lang, document.lang);
            stored.add_text(fields.title_characters, &document.title);
            stored.add_text(fields.title, document.title);
            stored.add_text(fields.context, document.context);
            stored.add_text(fields.characters, &document.text);
            stored.add_text(fields.text, document.text);
            writer.add_document(stored)?;
        }
        writer.commit()?;
        writer.wait_merging_threads()?;
        let reader = index.reader()?;
        Ok(Index { reader, fields, words, characters, synonyms: by_name(synonyms) })
    }

    /// # Errors
    /// tantivy cannot read its own index.
    pub fn search(&self, query: &Query<'_>) -> Result<Results, SearchError> {
        let others = |name: &str| self.synonyms.get(name).cloned().unwrap_or_default();
        let mut reader = Reader {
            fields: self.fields,
            words: self.words.clone(),
            characters: self.characters.clone(),
            synonyms: &others,
        };
        let Some(read) = reader.read(query.text, query.kind) else { return Ok(Results::default()) };
        let searcher = self.reader.searcher();
        let (mut total, mut partial, mut asked) = (searcher.search(&*read.all, &Count)?, false, read.all);
        if total == 0 {
            total = searcher.search(&*read.any, &Count)?;
            (partial, asked) = (total > 0, read.any);
        }
        if total == 0 || query.limit == 0 {
            return Ok(Results { total, partial, hits: Vec::new() });
        }
        let top = TopDocs::with_limit(query.limit).and_offset(query.offset).order_by_score();
        let found: Vec<(f32, DocAddress)> = searcher.search(&*asked, &top)?;
        let marker = Marker::new(&searcher, &*asked, self.fields)?;
        let hits = found.into_iter().map(|(_, at)| self.hit(&searcher, &marker, at));
        Ok(Results { total, partial, hits: hits.collect::<Result<_, SearchError>>()? })
    }

    fn hit(&self, searcher: &Searcher, marker: &Marker, at: DocAddress) -> Result<Hit, SearchError> {
        let document: TantivyDocument = searcher.doc(at)?;
        let text = |field: Field| document.get_first(field).and_then(|v| v.as_str()).unwrap_or_default();
        Ok(Hit {
            kind: Kind::from_name(text(self.fields.kind)).unwrap_or(Kind::Chapter),
            href: text(self.fields.href).to_owned(),
            title: marker.title(text(self.fields.title)),
            context: text(self.fields.context).to_owned(),
            snippet: marker.snippet(text(self.fields.text)),
            lang: text(self.fields.lang).to_owned(),
        })
    }
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let indexed = |tokenizer: &str, record: IndexRecordOption| {
        let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let words = indexed(WORDS, IndexRecordOption::WithFreqs);
    let characters = indexed(CHARACTERS, IndexRecordOption::WithFreqsAndPositions);
    let fields = Fields {
        kind: builder.add_text_field("kind", STRING | STORED),
        href: builder.add_text_field("href", STORED),
        lang: builder.add_text_field("lang", STORED),
        title: builder.add_text_field("title", words.clone().set_stored()),
        context: builder.add_text_field("context", words.clone().set_stored()),
        text: builder.add_text_field("text", words.set_stored()),
        title_characters: builder.add_text_field("title_characters", characters.clone()),
        characters: builder.add_text_field("characters", characters),
    };
    (builder.build(), fields)
}

fn by_name(groups: &[Synonyms]) -> HashMap<String, Vec<String>> {
    let mut out: HashMap<String, Vec<String>> = HashMap::new();
    for group in groups {
        for name in group {
            let key = name.to_lowercase();
            let others = group.iter().map(|n| n.to_lowercase()).filter(|n| *n != key);
            let known = out.entry(key.clone()).or_default();
            for other in others {
                if !known.contains(&other) {
                    known.push(other);
                }
            }
        }
    }
    out
}

/// Marks what was looked for, in a title and in the best part of a text.
struct Marker {
    title: SnippetGenerator,
    text: SnippetGenerator,
}

impl Marker {
    fn new(
        searcher: &Searcher,
        query: &dyn tantivy::query::Query,
        fields: Fields,
    ) -> Result<Marker, SearchError> {
        let mut title = SnippetGenerator::create(searcher, query, fields.title)?;
        title.set_max_num_chars(usize::MAX);
        let mut text = SnippetGenerator::create(searcher, query, fields.text)?;
        text.set_max_num_chars(SNIPPET);
        Ok(Marker { title, text })
    }

    fn title(&self, title: &str) -> Vec<Piece> {
        let snippet = self.title.snippet(title);
        if snippet.fragment() == title {
            pieces(title, snippet.highlighted())
        } else {
            vec![Piece { text: title.to_owned(), found: false }]
        }
    }

    fn snippet(&self, text: &str) -> Vec<Piece> {
        let snippet = self.text.snippet(text);
        if snippet.is_empty() {
            let end = text.char_indices().nth(LEAD).map_or(text.len(), |(at, _)| at);
            let cut = if end < text.len() { "…" } else { "" };
            return vec![Piece { text: format!("{}{cut}", &text[..end]), found: false }];
        }
        let range = snippet.fragment_range();
        let mut out = pieces(snippet.fragment(), snippet.highlighted());
        if range.start > 0 {
            out.insert(0, Piece { text: "…".into(), found: false });
        }
        if range.end < text.trim_end().len() {
            out.push(Piece { text: "…".into(), found: false });
        }
        out
    }
}

fn pieces(text: &str, found: &[Range<usize>]) -> Vec<Piece> {
    let mut marks: Vec<Range<usize>> = tantivy::snippet::collapse_overlapped_ranges(found);
    marks.retain(|range| text.get(range.clone()).is_some());
    let mut out = Vec::new();
    let mut at = 0;
    let mut push = |range: Range<usize>, found: bool| {
        if !range.is_empty() {
            out.push(Piece { text: text[range].to_owned(), found });
        }
    };
    for range in marks {
        push(at..range.start.max(at), false);
        push(range.start.max(at)..range.end, true);
        at = range.end.max(at);
    }
    push(at..text.len(), false);
    out
}

#[cfg(test)]
mod tests;
