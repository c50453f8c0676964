//! Holding what somebody filled in against the fields of a form.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::FieldError;
use crate::catalogue::{Field, FieldKind};
use crate::job::Fields;
use crate::text::Text;

/// Valid values of one form, with defaults filled in: one for each field, of the field's own type.
#[derive(Debug, Clone, PartialEq)]
pub struct Values(BTreeMap<String, Filled>);

#[derive(Debug, Clone, PartialEq)]
enum Filled {
    Integer(i64),
    Number(f64),
    Text(String),
}

impl Values {
    /// `None` when the form has no such field of this type.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.0.get(name)? {
            Filled::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        match self.0.get(name)? {
            Filled::Integer(value) => Some(*value as f64),
            Filled::Number(value) => Some(*value),
            Filled::Text(_) => None,
        }
    }

    /// The value of a choice, or text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Filled::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// Checks every field; `section` (`params`, `prediction`, `answers`) goes before the names in the errors.
///
/// # Errors
/// One for each field that is unknown, missing without a default, of another type, out of range or not among the choices.
pub fn validate(section: &str, fields: &[Field], given: &Fields) -> Result<Values, Vec<FieldError>> {
    let mut errors: Vec<FieldError> = given
        .keys()
        .filter(|name| fields.iter().all(|field| field.name != **name))
        .map(|name| unknown(section, name, fields))
        .collect();
    let mut values = BTreeMap::new();
    for field in fields {
        match fill(&field.kind, given.get(&field.name)) {
            Ok(value) => {
                values.insert(field.name.clone(), value);
            }
            Err(message) => {
                errors.push(FieldError { field: format!("{section}.{}", field.name), message, line: None })
            }
        }
    }
    if errors.is_empty() { Ok(Values(values)) } else { Err(errors) }
}

fn unknown(section: &str, name: &str, fields: &[Field]) -> FieldError {
    let name = clip(name);
    let message = if fields.is_empty() {
        Text::new(
            format!("这里没有字段 `{name}`，这个实验在此处什么也不收：请去掉它。"),
            format!("there is no field `{name}`; this lab takes nothing here: leave it out"),
        )
    } else {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        Text::new(
            format!("这里没有字段 `{name}`，可填的是：{}。", known.join("、")),
            format!("there is no field `{name}`; the fields are: {}", known.join(", ")),
        )
    };
    FieldError { field: format!("{section}.{name}"), message, line: None }
}

fn fill(kind: &FieldKind, given: Option<&Value>) -> Result<Filled, Text> {
    match given {
        None | Some(Value::Null) => default(kind).ok_or_else(|| {
            let wanted = wanted(kind);
            Text::new(
                format!("还没有填：应为 {}。", wanted.zh),
                format!("is missing: it must be {}", wanted.en),
            )
        }),
        Some(value) => read(kind, value).ok_or_else(|| {
            let (wanted, got) = (wanted(kind), clip(&value.to_string()));
            Text::new(
                format!("应为 {}，收到的是 {got}。", wanted.zh),
                format!("must be {}, got {got}", wanted.en),
            )
        }),
    }
}

fn default(kind: &FieldKind) -> Option<Filled> {
    match kind {
        FieldKind::Integer { default, .. } => default.map(Filled::Integer),
        FieldKind::Number { default, .. } => default.map(Filled::Number),
        FieldKind::Choice { default, .. } => Some(Filled::Text(default.clone())),
        FieldKind::Text { .. } => None,
    }
}

fn read(kind: &FieldKind, value: &Value) -> Option<Filled> {
    match kind {
        FieldKind::Integer { min, max, .. } => {
            let value = value.as_i64().or_else(|| whole(value.as_f64()?))?;
            (*min..=*max).contains(&value).then_some(Filled::Integer(value))
        }
        FieldKind::Number { min, max, .. } => {
            let value = value.as_f64()?;
            (*min..=*max).contains(&value).then_some(Filled::Number(value))
        }
        FieldKind::Choice { options, .. } => {
            let value = value.as_str()?;
            options.iter().any(|option| option.value == value).then(|| Filled::Text(value.to_owned()))
        }
        FieldKind::Text { max_chars } => {
            let value = value.as_str()?;
            let fits = !value.trim().is_empty() && value.chars().count() <= *max_chars as usize;
            fits.then(|| Filled::Text(value.to_owned()))
        }
    }
}

/// `4.0` is a whole number too: some writers of JSON put it so. Beyond 2^53 a double no longer tells neighbours apart.
fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
}

/// What a field takes, to stand after "must be".
fn wanted(kind: &FieldKind) -> Text {
    let with = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    match kind {
        FieldKind::Integer { min, max, unit, .. } => Text::new(
            format!("{min} 到 {max}{} 的整数", with(unit)),
            format!("a whole number from {min} to {max}{}", with(unit)),
        ),
        FieldKind::Number { min, max, unit, .. } => Text::new(
            format!("{min} 到 {max}{} 的数", with(unit)),
            format!("a number from {min} to {max}{}", with(unit)),
        ),
        FieldKind::Choice { options, .. } => {
            let values: Vec<&str> = options.iter().map(|option| option.value.as_str()).collect();
            Text::new(format!("下列之一：{}", values.join("、")), format!("one of: {}", values.join(", ")))
        }
        FieldKind::Text { max_chars } => Text::new(
            format!("不超过 {max_chars} 个字符的非空文字"),
            format!("text of at most {max_chars} characters, not blank"),
        ),
    }
}

/// The beginning of what somebody sent, fit to stand in a message.
fn clip(text: &str) -> String {
    const MOST: usize = 48;
    let mut kept: String = text.chars().take(MOST).collect();
    if text.chars().nth(MOST).is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ChoiceOption;
    use proptest::prelude::*;
    use serde_json::json;

    fn form() -> Vec<Field> {
        let label = Text::new("标签", "label");
        let field = |name: &str, kind| Field { name: name.into(), label: label.clone(), help: None, kind };
        vec![
            field("ranks", FieldKind::Integer { min: 2, max: 8, default: Some(4), unit: String::new() }),
            field("algbw", FieldKind::Number { min: 0.0, max: 1e6, default: None, unit: "GB/s".into() }),
            field(
                "backend",
                FieldKind::Choice {
                    options: vec![
                        ChoiceOption { value: "cpu".into(), label: label.clone() },
                        ChoiceOption { value: "cuda".into(), label: label.clone() },
                    ],
                    default: "cpu".into(),
                },
            ),
        ]
    }

    fn given(value: Value) -> Fields {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn defaults_fill_what_is_left_out() {
        let values = validate("params", &form(), &given(json!({ "algbw": 3, "ranks": 5.0 }))).unwrap();
        assert_eq!(values.integer("ranks"), Some(5));
        assert_eq!(values.number("algbw"), Some(3.0));
        assert_eq!(values.text("backend"), Some("cpu"));
        assert_eq!(values.integer("backend"), None);
    }

    #[test]
    fn every_error_is_told_at_once_with_its_figures() {
        let errors = validate("params", &form(), &given(json!({ "ranks": 9, "backend": "tpu", "rank": 1 })))
            .unwrap_err();
        let told: Vec<(&str, &str)> =
            errors.iter().map(|e| (e.field.as_str(), e.message.en.as_str())).collect();
        assert_eq!(
            told,
            [
                ("params.rank", "there is no field `rank`; the fields are: ranks, algbw, backend"),
                ("params.ranks", "must be a whole number from 2 to 8, got 9"),
                ("params.algbw", "is missing: it must be a number from 0 to 1000000 GB/s"),
                ("params.backend", "must be one of: cpu, cuda, got \"tpu\""),
            ]
        );
        assert_eq!(errors[1].message.zh, "应为 2 到 8 的整数，收到的是 9。");
    }

    proptest! {
        #[test]
        fn a_whole_number_is_taken_exactly_when_it_is_in_range(ranks in any::<i64>()) {
            let outcome = validate("params", &form(), &given(json!({ "algbw": 0.5, "ranks": ranks })));
            prop_assert_eq!(outcome.is_ok(), (2..=8).contains(&ranks));
        }
    }
}
