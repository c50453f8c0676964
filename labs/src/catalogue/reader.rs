//! Reading a TOML table key by key, so that one pass tells an author everything that is wrong, not the first thing.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::{Table, Value};

use super::load::CatalogueError;
use crate::text::Text;

/// Errors of one loading.
#[derive(Debug, Default)]
pub(super) struct Errors(RefCell<Vec<CatalogueError>>);

impl Errors {
    pub fn push(&self, file: &str, field: &str, message: impl Into<String>) {
        self.0.borrow_mut().push(CatalogueError {
            file: file.to_owned(),
            field: field.to_owned(),
            message: message.into(),
        });
    }

    pub fn take(&self) -> Vec<CatalogueError> {
        self.0.take()
    }
}

/// One table and what is left of it. Each method takes one key out and reports what is wrong with it; `None` means reported.
pub(super) struct Reader<'a> {
    file: &'a str,
    /// Path of the table inside the file; empty at the top.
    path: String,
    left: Table,
    errors: &'a Errors,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a str, table: Table, errors: &'a Errors) -> Reader<'a> {
        Reader { file, path: String::new(), left: table, errors }
    }

    fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub fn error(&self, key: &str, message: impl Into<String>) {
        self.errors.push(self.file, &self.field(key), message);
    }

    pub fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    fn required(&mut self, key: &str) -> Option<Value> {
        let value = self.left.remove(key);
        if value.is_none() {
            self.error(key, "is missing");
        }
        value
    }

    fn wrong_type(&self, key: &str, wanted: &str, got: &Value) {
        self.error(key, format!("must be {wanted}, got {} `{}`", got.type_str(), got.to_string().trim_end()));
    }

    /// Not blank.
    pub fn string(&mut self, key: &str) -> Option<String> {
        match self.required(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::String(_) => {
                self.error(key, "is blank");
                None
            }
            other => {
                self.wrong_type(key, "a string", &other);
                None
            }
        }
    }

    pub fn boolean(&mut self, key: &str) -> Option<bool> {
        match self.required(key)? {
            Value::Boolean(value) => Some(value),
            other => {
                self.wrong_type(key, "true or false", &other);
                None
            }
        }
    }

    pub fn integer(&mut self, key: &str, range: RangeInclusive<i64>) -> Option<i64> {
        match self.required(key)? {
            Value::Integer(value) => self.in_range(key, value, range),
            other => {
                self.wrong_type(key, "a whole number", &other);
                None
            }
        }
    }

    pub fn number(&mut self, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
        match self.required(key)? {
            Value::Integer(value) => self.in_range(key, value as f64, range),
            Value::Float(value) => self.in_range(key, value, range),
            other => {
                self.wrong_type(key, "a number", &other);
                None
            }
        }
    }

    fn in_range<T: PartialOrd + Display>(&self, key: &str, value: T, range: RangeInclusive<T>) -> Option<T> {
        if range.contains(&value) {
            return Some(value);
        }
        self.error(key, format!("must be from {} to {}, got {value}", range.start(), range.end()));
        None
    }

    /// `{ zh = "…", en = "…" }`
    pub fn text(&mut self, key: &str) -> Option<Text> {
        let mut table = self.table(key)?;
        let (zh, en) = (table.string("zh"), table.string("en"));
        table.finish();
        Some(Text { zh: zh?, en: en? })
    }

    pub fn table(&mut self, key: &str) -> Option<Reader<'a>> {
        match self.required(key)? {
            Value::Table(left) => {
                Some(Reader { file: self.file, path: self.field(key), left, errors: self.errors })
            }
            other => {
                self.wrong_type(key, "a table", &other);
                None
            }
        }
    }

    /// An array of tables; absent means empty. Paths count from 0: `params[0].name`.
    pub fn tables(&mut self, key: &str) -> Vec<Reader<'a>> {
        let items = match self.left.remove(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.wrong_type(key, "an array of tables", &other);
                return Vec::new();
            }
        };
        let mut readers = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let key = format!("{key}[{index}]");
            match item {
                Value::Table(left) => {
                    readers.push(Reader {
                        file: self.file,
                        path: self.field(&key),
                        left,
                        errors: self.errors,
                    });
                }
                other => self.wrong_type(&key, "a table", &other),
            }
        }
        readers
    }

    pub fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let items = match self.required(key)? {
            Value::Array(items) => items,
            other => {
                self.wrong_type(key, "an array of strings", &other);
                return None;
            }
        };
        let mut strings = Vec::new();
        for item in items {
            match item {
                Value::String(text) => strings.push(text),
                other => self.wrong_type(key, "an array of strings", &other),
            }
        }
        Some(strings)
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        for key in self.left.keys() {
            self.error(key, "is not a known key; see labs/catalogue/README.md");
        }
    }
}
