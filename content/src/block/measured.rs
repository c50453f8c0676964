//! `measured`: figures from a stored run of ours, with the machine and the date. No measured figure is typed by hand.

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::{Block, origin};
use crate::html::{escape, push};
use crate::markdown::{inline, known};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    file: Spanned<String>,
    caption: Spanned<String>,
    rows: Option<Spanned<String>>,
    #[serde(default)]
    columns: Vec<[Spanned<String>; 3]>,
    sentence: Option<Spanned<String>>,
    #[serde(default)]
    figures: Vec<[Spanned<String>; 2]>,
}

const FORMATS: [&str; 5] = ["bytes", "us", "gbps", "count", "text"];

/// Larger files are traces or raw samples, which do not belong on a page.
const MAX_FILE: u64 = 8 << 20;
const MAX_ROWS: usize = 64;

impl Block<'_, '_> {
    pub(super) fn measured(&mut self) -> Option<String> {
        let body: Body = self.toml("measured")?;
        let file = body.file.get_ref().clone();
        self.outline(format!("measured {file}"), detail(&body));
        let data = self.measurement(&body.file)?;
        let origin = self.origin(&data, &body.file)?;
        let caption = self.line(&body.caption);
        let shown = match (&body.rows, &body.sentence) {
            (Some(rows), None) if body.figures.is_empty() => {
                self.measured_table(rows, &body.columns, &data)?
            }
            (None, Some(sentence)) if body.columns.is_empty() => {
                self.measured_sentence(sentence, &body.figures, &data)?
            }
            _ => {
                self.problem("give either `rows` and `columns` for a table, or `sentence` and `figures` for figures in words");
                return None;
            }
        };
        Some(format!(
            "<figure class=\"measured\">{shown}<figcaption>{caption} <span class=\"origin\">{origin}</span></figcaption></figure>\n"
        ))
    }

    fn measurement(&mut self, file: &Spanned<String>) -> Option<Value> {
        let name = file.get_ref();
        let plain = name.ends_with(".json")
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !plain || name.starts_with('.') {
            self.problem_at(file, format!("`{name}` is no file of labs/measurements: letters, digits, `-`, `_`, `.`, ending in .json"));
            return None;
        }
        let path = self.env.root.join("labs/measurements").join(name);
        let text = std::fs::metadata(&path).and_then(|meta| match meta.len() {
            0..=MAX_FILE => std::fs::read_to_string(&path),
            size => Err(std::io::Error::other(format!("{size} bytes are more than the {MAX_FILE} allowed"))),
        });
        match text.map(|text| serde_json::from_str(&text)) {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                self.problem_at(file, format!("labs/measurements/{name} is no JSON: {error}"));
                None
            }
            Err(error) => {
                self.problem_at(
                    file,
                    format!("labs/measurements/{name} cannot be read: {error}; measure and store it first"),
                );
                None
            }
        }
    }

    /// Hardware, driver, commit, date, command: every one must be in the file.
    fn origin(&mut self, data: &Value, file: &Spanned<String>) -> Option<String> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let (hardware, driver) = (origin::hardware(data), origin::driver(data));
        let (date, command) = (origin::date(data), origin::command(data));
        let mut missing = Vec::new();
        if hardware.is_none() {
            missing.push("hardware".to_owned());
        }
        if driver.is_none() && !origin::no_gpu(data) {
            missing.push("driver (null on a machine without a GPU)".to_owned());
        }
        let told =
            [("commit", text("commit").is_some()), ("date", date.is_some()), ("command", command.is_some())];
        missing.extend(told.iter().filter(|(_, told)| !told).map(|(key, _)| (*key).to_owned()));
        if !missing.is_empty() {
            let message = format!(
                "labs/measurements/{} lacks {} at its top level; a figure without its origin is not shown",
                file.get_ref(),
                missing.join(", ")
            );
            self.problem_at(file, message);
            return None;
        }
        let (measured, on) = (self.env.pick("实测：", "Measured: "), self.env.pick("驱动", "driver"));
        let mut out = format!("{measured}{}", escape(&hardware.unwrap_or_default()));
        if let Some(driver) = driver {
            push(&mut out, format_args!(", {on} {}", escape(&driver)));
        }
        let commit: String = text("commit").unwrap_or("").chars().take(12).collect();
        push(
            &mut out,
            format_args!(
                ", <code>{}</code>, <time>{}</time>, <code>{}</code>",
                escape(&commit),
                escape(&date.unwrap_or_default()),
                escape(&command.unwrap_or_default())
            ),
        );
        Some(out)
    }

    fn measured_table(
        &mut self,
        rows: &Spanned<String>,
        columns: &[[Spanned<String>; 3]],
        data: &Value,
    ) -> Option<String> {
        let pointer = rows.get_ref();
        let Some(array) = data.pointer(pointer).and_then(Value::as_array) else {
            self.problem_at(rows, format!("`{pointer}` leads to no array in the file; {}", keys(data)));
            return None;
        };
        if array.is_empty() || array.len() > MAX_ROWS || columns.is_empty() {
            self.problem_at(
                rows,
                format!(
                    "a table shows 1 to {MAX_ROWS} rows and at least one column; `{pointer}` has {} rows",
                    array.len()
                ),
            );
            return None;
        }
        let label = self.env.pick("实测数据", "Measured figures");
        let mut out = format!(
            "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table><thead><tr>"
        );
        for [_, heading, format] in columns {
            let class = if format.get_ref() == "text" { "" } else { " class=\"right\"" };
            let heading = self.line(heading);
            push(&mut out, format_args!("<th scope=\"col\"{class}>{heading}</th>"));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in array {
            out.push_str("<tr>");
            for [pointer, _, format] in columns {
                let class = if format.get_ref() == "text" { "" } else { " class=\"right\"" };
                let value = self.figure_of(row, pointer, format, false)?;
                push(&mut out, format_args!("<td{class}>{}</td>", escape(&value)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        Some(out)
    }

    fn measured_sentence(
        &mut self,
        sentence: &Spanned<String>,
        figures: &[[Spanned<String>; 2]],
        data: &Value,
    ) -> Option<String> {
        let text = self.body.toml_string(sentence);
        let holes = text.text.matches("{}").count();
        if holes == 0 || holes != figures.len() {
            self.problem_at(
                sentence,
                format!("the sentence has {holes} `{{}}` for {} figures; give one for each", figures.len()),
            );
            return None;
        }
        let mut values = Vec::new();
        for [pointer, format] in figures {
            values.push(self.figure_of(data, pointer, format, true)?);
        }
        let html = inline(self.env, self.state, &text);
        // A formula holding `{}` would shift the figures.
        if html.matches("{}").count() != holes {
            self.problem_at(sentence, "write `{}` outside formulas and code, and \\{\\} within them");
            return None;
        }
        let mut parts = html.split("{}");
        let mut out = format!("<p>{}", parts.next().unwrap_or(""));
        for (value, part) in values.iter().zip(parts) {
            push(&mut out, format_args!("<span class=\"figure-value\">{}</span>{part}", escape(value)));
        }
        out.push_str("</p>");
        Some(out)
    }

    /// The figure at `pointer` in `data`, formatted.
    fn figure_of(
        &mut self,
        data: &Value,
        pointer: &Spanned<String>,
        format: &Spanned<String>,
        unit: bool,
    ) -> Option<String> {
        let Some(value) = data.pointer(pointer.get_ref()) else {
            self.problem_at(pointer, format!("`{}` leads to nothing; {}", pointer.get_ref(), keys(data)));
            return None;
        };
        match formatted(value, format.get_ref(), unit) {
            Ok(text) => Some(text),
            Err(message) => {
                self.problem_at(format, format!("`{}` is {value}, {message}", pointer.get_ref()));
                None
            }
        }
    }
}

/// What both languages must share.
fn detail(body: &Body) -> String {
    let rows = body.rows.as_ref().map_or("", |rows| rows.get_ref());
    let columns =
        body.columns.iter().map(|[pointer, _, format]| format!("{}:{}", pointer.get_ref(), format.get_ref()));
    let figures =
        body.figures.iter().map(|[pointer, format]| format!("{}:{}", pointer.get_ref(), format.get_ref()));
    std::iter::once(rows.to_owned()).chain(columns).chain(figures).collect::<Vec<_>>().join(" ")
}

/// What a wrong pointer could have meant.
fn keys(data: &Value) -> String {
    match data {
        Value::Object(map) => {
            // serde_json keeps a map sorted or as written, whichever some other crate of the build asked for.
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            known("keys", keys)
        }
        Value::Array(items) => format!("it is an array of {} items", items.len()),
        other => format!("it is {other}"),
    }
}

/// `unit`: whether to name it (in a sentence); a table's heading does that for microseconds and GB/s.
fn formatted(value: &Value, format: &str, unit: bool) -> Result<String, String> {
    let number = value.as_f64();
    match (format, number) {
        ("text", _) => match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(flag) => Ok(flag.to_string()),
            _ => Err("which is not one figure; point at a string or number".to_owned()),
        },
        ("bytes", Some(_)) => {
            value.as_u64().map(bytes).ok_or_else(|| "which is no whole number of bytes".to_owned())
        }
        ("count", Some(_)) => match (value.as_u64(), value.as_i64()) {
            (Some(count), _) => Ok(grouped(count)),
            (None, Some(count)) => Ok(format!("-{}", grouped(count.unsigned_abs()))),
            _ => Err("which is no whole number".to_owned()),
        },
        ("us", Some(number)) => Ok(decimal(number) + if unit { " µs" } else { "" }),
        ("gbps", Some(number)) => Ok(decimal(number) + if unit { " GB/s" } else { "" }),
        ("bytes" | "count" | "us" | "gbps", None) => {
            Err("which is no number; use the format text".to_owned())
        }
        _ => Err(format!("and `{format}` is no format; use {}", FORMATS.join(", "))),
    }
}

/// Binary units when they divide the figure, else grouped bytes: 1 MiB, 1,000,000 B.
fn bytes(value: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if value != 0 && value.is_multiple_of(1 << shift) {
            return format!("{} {unit}", grouped(value >> shift));
        }
    }
    format!("{} B", grouped(value))
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three significant digits below 100, one decimal below 1,000, whole and grouped above.
fn decimal(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        size if size < 1e15 && value > 0.0 => grouped(value.round() as u64),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        let show = |value: Value, format: &str| formatted(&value, format, true).unwrap();
        assert_eq!(show(json!(1_048_576), "bytes"), "1 MiB");
        assert_eq!(show(json!(1_000_000), "bytes"), "1,000,000 B");
        assert_eq!(show(json!(0), "bytes"), "0 B");
        assert_eq!(show(json!(4.754), "us"), "4.75 µs");
        assert_eq!(show(json!(13_126.4), "us"), "13,126 µs");
        assert_eq!(show(json!(290.04), "gbps"), "290.0 GB/s");
        assert_eq!(show(json!(-1_234), "count"), "-1,234");
        assert_eq!(show(json!("sum"), "text"), "sum");
        assert!(formatted(&json!(1.5), "bytes", false).is_err());
        assert!(formatted(&json!([1]), "text", false).is_err());
        assert!(formatted(&json!(1), "GB", false).unwrap_err().contains("no format"));
    }
}
