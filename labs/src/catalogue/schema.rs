//! `lab.toml`, as labs/catalogue/README.md describes it.

use super::markdown;
use super::reader::{Errors, Reader};
use super::{CheckSpec, ChoiceOption, Field, FieldKind, Hint, LabView};
use crate::job::{Backend, Limits};
use crate::text::Text;

const MIB: i64 = 1 << 20;

/// The lab without its instructions and its version, which come from other files.
pub(super) fn read(file: &str, table: toml::Table, errors: &Errors) -> Option<LabView> {
    let mut top = Reader::new(file, table, errors);
    let id = top.string("id");
    let chapter = top.integer("chapter", 1..=36);
    let minutes = top.integer("minutes", 1..=600);
    let title = top.text("title");
    let summary = top.text("summary");
    let takes_plan = top.boolean("takes_plan");
    let backends = backends(&mut top);
    let limits = top.table("limits").and_then(limits);
    let params = all(top.tables("params"), field);
    let prediction = all(top.tables("prediction"), field);
    let answers = all(top.tables("answers"), field);
    let checks = all(top.tables("checks"), check);
    if checks.as_ref().is_some_and(Vec::is_empty) {
        top.error("checks", "a lab without a check proves nothing: add one");
    }
    let hints = all(top.tables("hints"), hint);
    top.finish();
    let checks = checks?;
    unique(file, "checks", checks.iter().map(|check| check.id.as_str()), errors);
    let max_marks = checks.iter().map(|check| check.marks).sum();
    Some(LabView {
        id: id?,
        version: String::new(),
        chapter: chapter? as u32,
        title: title?,
        summary: summary?,
        body: Text::new("", ""),
        minutes: minutes? as u32,
        backends: backends?,
        params: unique_fields(file, "params", params?, errors),
        prediction: unique_fields(file, "prediction", prediction?, errors),
        answers: unique_fields(file, "answers", answers?, errors),
        takes_plan: takes_plan?,
        limits: limits?,
        checks,
        hints: hints?,
        max_marks,
    })
}

fn backends(top: &mut Reader) -> Option<Vec<Backend>> {
    let mut backends = Vec::new();
    for name in top.strings("backends")? {
        match name.parse::<Backend>() {
            Ok(backend) => backends.push(backend),
            Err(unknown) => top.error("backends", unknown.to_string()),
        }
    }
    if backends.is_empty() {
        top.error("backends", "names no backend: the lab could never run");
    }
    Some(backends)
}

fn limits(mut table: Reader) -> Option<Limits> {
    let wall_ms = table.integer("wall_ms", 1_000..=3_600_000);
    let memory_mib = table.integer("memory_mib", 64..=(1 << 20));
    let output_kib = table.integer("output_kib", 16..=(1 << 20));
    let collective_ms = table.integer("collective_ms", 100..=600_000);
    if let (Some(wall), Some(collective)) = (wall_ms, collective_ms)
        && collective > wall
    {
        table.error("collective_ms", format!("{collective} is longer than the whole job may take ({wall})"));
    }
    table.finish();
    Some(Limits {
        wall_ms: wall_ms? as u64,
        memory_bytes: (memory_mib? * MIB) as u64,
        output_bytes: (output_kib? * 1024) as u64,
        collective_ms: collective_ms? as u64,
    })
}

fn check(mut table: Reader) -> Option<CheckSpec> {
    let id = table.string("id");
    let title = table.text("title");
    let marks = table.number("marks", 0.0..=100.0);
    let has_tolerance = table.has("tolerance");
    let tolerance = if has_tolerance { table.number("tolerance", 0.0..=1.0) } else { None };
    table.finish();
    Some(CheckSpec { id: id?, title: title?, marks: marks?, tolerance })
}

fn hint(mut table: Reader) -> Option<Hint> {
    let text = table.text("text");
    let price = table.number("price", 0.0..=100.0);
    let html =
        |source: &str| markdown::render(source).map_err(|error| table.error("text", error.to_string())).ok();
    let body = text.and_then(|text| Some(Text { zh: html(&text.zh)?, en: html(&text.en)? }));
    table.finish();
    Some(Hint { body: body?, price: price? })
}

/// Reads every item before giving up on any, so that each of them reports its errors.
fn all<'a, T>(items: Vec<Reader<'a>>, read: impl Fn(Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = items.into_iter().map(read).collect();
    read.into_iter().collect()
}

fn field(mut table: Reader) -> Option<Field> {
    let name = table.string("name");
    let label = table.text("label");
    let help = if table.has("help") { table.text("help") } else { None };
    let kind = kind(&mut table);
    if kind.is_some() {
        // What a field may hold hangs on its type: without one, no key can be called unknown.
        table.finish();
    }
    Some(Field { name: name?, label: label?, help, kind: kind? })
}

fn kind(table: &mut Reader) -> Option<FieldKind> {
    match table.string("type")?.as_str() {
        "integer" => {
            let (min, max) =
                (table.integer("min", i64::MIN..=i64::MAX), table.integer("max", i64::MIN..=i64::MAX));
            let (min, max) = ordered(table, min, max)?;
            let default =
                if table.has("default") { Some(table.integer("default", min..=max)?) } else { None };
            Some(FieldKind::Integer { min, max, default, unit: unit(table) })
        }
        "number" => {
            let (min, max) =
                (table.number("min", f64::MIN..=f64::MAX), table.number("max", f64::MIN..=f64::MAX));
            let (min, max) = ordered(table, min, max)?;
            let default = if table.has("default") { Some(table.number("default", min..=max)?) } else { None };
            Some(FieldKind::Number { min, max, default, unit: unit(table) })
        }
        "choice" => {
            let (options, default) = (all(table.tables("options"), option), table.string("default"));
            let (options, default) = (options?, default?);
            if options.iter().all(|option| option.value != default) {
                table.error("default", format!("`{default}` is not among the options"));
            }
            Some(FieldKind::Choice { options, default })
        }
        "text" => Some(FieldKind::Text { max_chars: table.integer("max_chars", 1..=100_000)? as u32 }),
        other => {
            table.error("type", format!("unknown type `{other}`; known: integer, number, choice, text"));
            None
        }
    }
}

fn ordered<T: PartialOrd + std::fmt::Display>(
    table: &Reader,
    min: Option<T>,
    max: Option<T>,
) -> Option<(T, T)> {
    let (min, max) = (min?, max?);
    if min > max {
        table.error("max", format!("{max} is below min ({min})"));
        return None;
    }
    Some((min, max))
}

fn unit(table: &mut Reader) -> String {
    if table.has("unit") { table.string("unit").unwrap_or_default() } else { String::new() }
}

fn option(mut table: Reader) -> Option<ChoiceOption> {
    let value = table.string("value");
    let label = table.text("label");
    table.finish();
    Some(ChoiceOption { value: value?, label: label? })
}

fn unique_fields(file: &str, key: &str, fields: Vec<Field>, errors: &Errors) -> Vec<Field> {
    unique(file, key, fields.iter().map(|field| field.name.as_str()), errors);
    fields
}

fn unique<'a>(file: &str, key: &str, names: impl Iterator<Item = &'a str>, errors: &Errors) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            errors.push(file, key, format!("`{name}` stands twice; names must differ"));
        }
    }
}
