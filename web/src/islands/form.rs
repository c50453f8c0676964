//! A form made from a lab's fields: what was typed, as text by field name, and errors at their fields.

use std::collections::BTreeMap;

use leptos::prelude::*;
use ringlab_labs::api::FieldError;
use ringlab_labs::catalogue::{Field, FieldKind};
use ringlab_labs::job::Fields;
use ringlab_labs::text::Lang;
use serde_json::Value;

use crate::format;
use crate::strings as t;

/// Upper limits from here on only guard against nonsense: no help to a reader.
const WORTH_SAYING: i64 = 10_000;

/// What stands in the inputs.
pub type Typed = BTreeMap<String, String>;

/// What a fresh form holds.
pub fn defaults(fields: &[Field]) -> Typed {
    let text = |field: &Field| match &field.kind {
        FieldKind::Integer { default, .. } => default.map(|n| n.to_string()).unwrap_or_default(),
        FieldKind::Number { default, .. } => default.map(|n| format::decimal(n, 6)).unwrap_or_default(),
        FieldKind::Choice { default, .. } => default.clone(),
        FieldKind::Text { .. } => String::new(),
    };
    fields.iter().map(|field| (field.name.clone(), text(field))).collect()
}

/// Typed text as the API wants it. An empty input is left out, so that the server says what is missing; a text that is no number stays
/// text, so that it can say so.
pub fn to_fields(fields: &[Field], typed: &Typed) -> Fields {
    let value = |field: &Field| {
        let text = typed.get(&field.name)?.trim();
        if text.is_empty() {
            return None;
        }
        let number = match field.kind {
            FieldKind::Integer { .. } => text.parse::<i64>().ok().map(Value::from),
            FieldKind::Number { .. } => text.parse::<f64>().ok().filter(|x| x.is_finite()).map(Value::from),
            FieldKind::Choice { .. } | FieldKind::Text { .. } => None,
        };
        Some((field.name.clone(), number.unwrap_or_else(|| text.into())))
    };
    fields.iter().filter_map(value).collect()
}

/// Stored values back into inputs: known fields only.
pub fn from_fields(fields: &[Field], stored: &Fields) -> Typed {
    let mut typed = defaults(fields);
    for (name, value) in stored {
        if let Some(slot) = typed.get_mut(name) {
            *slot = match value {
                Value::String(s) => s.clone(),
                other => other.to_string(),
            };
        }
    }
    typed
}

/// The inputs of one section (`params`, `prediction`, `answers`), each with its label, help, unit and errors.
#[component]
pub fn FieldList(
    lang: Lang,
    section: &'static str,
    fields: Vec<Field>,
    typed: RwSignal<Typed>,
    errors: RwSignal<Vec<FieldError>>,
) -> impl IntoView {
    fields.into_iter().map(|field| field_view(lang, section, field, typed, errors)).collect_view()
}

fn field_view(
    lang: Lang,
    section: &'static str,
    field: Field,
    typed: RwSignal<Typed>,
    errors: RwSignal<Vec<FieldError>>,
) -> AnyView {
    let Field { name, label, help, kind } = field;
    let path = format!("{section}.{name}");
    let id = format!("{section}-{name}");
    let (help_id, error_id) = (format!("{id}-help"), format!("{id}-error"));
    let described = format!("{help_id} {error_id}");
    let message = Memo::new({
        let path = path.clone();
        move |_| {
            errors.with(|all| all.iter().find(|e| e.field == path).map(|e| e.message.get(lang).to_owned()))
        }
    });
    let value = {
        let name = name.clone();
        move || typed.with(|all| all.get(&name).cloned().unwrap_or_default())
    };
    let set = move |text: String| {
        typed.update(|all| {
            all.insert(name.clone(), text);
        });
        errors.update(|all| all.retain(|e| e.field != path));
    };
    let invalid = move || if message.get().is_some() { "true" } else { "false" };
    let (input, unit, limits) = match kind {
        FieldKind::Integer { min, max, unit, .. } => (
            number_input(&id, described, "numeric", value, set, invalid),
            unit,
            (max < WORTH_SAYING).then(|| format!("{min} – {max}")),
        ),
        FieldKind::Number { unit, .. } => {
            (number_input(&id, described, "decimal", value, set, invalid), unit, None)
        }
        FieldKind::Choice { options, .. } => {
            let options: Vec<_> = options
                .into_iter()
                .map(|option| {
                    let chosen = {
                        let (value, own) = (value.clone(), option.value.clone());
                        move || value() == own
                    };
                    view! {
                        <option value=option.value selected=chosen>
                            {option.label.get(lang).to_owned()}
                        </option>
                    }
                })
                .collect();
            let select = view! {
                <select
                    id=id.clone()
                    aria-describedby=described
                    aria-invalid=invalid
                    on:change=move |e| set(event_target_value(&e))
                >
                    {options}
                </select>
            };
            (select.into_any(), String::new(), None)
        }
        FieldKind::Text { max_chars } => {
            let area = view! {
                <textarea
                    id=id.clone()
                    rows="3"
                    maxlength=max_chars.to_string()
                    aria-describedby=described
                    aria-invalid=invalid
                    prop:value=value
                    on:input=move |e| set(event_target_value(&e))
                ></textarea>
            };
            (area.into_any(), String::new(), None)
        }
    };
    let help = help.map(|h| h.get(lang).to_owned()).unwrap_or_default();
    view! {
        <div class="field">
            <label for=id>{label.get(lang).to_owned()}</label>
            <div class="field-input">
                {input} <span class="unit">{unit}</span> {limits.map(|l| view! { <span class="limits">{l}</span> })}
            </div>
            <p class="help" id=help_id>
                {help}
            </p>
            <p class="field-error" id=error_id aria-live="polite">
                {message}
            </p>
        </div>
    }
    .into_any()
}

fn number_input(
    id: &str,
    described: String,
    mode: &'static str,
    value: impl Fn() -> String + Clone + Send + Sync + 'static,
    set: impl Fn(String) + 'static,
    invalid: impl Fn() -> &'static str + Send + Sync + 'static,
) -> AnyView {
    // A text input with a numeric keyboard: a wheel over a number input changes what was typed.
    view! {
        <input
            id=id.to_owned()
            type="text"
            inputmode=mode
            autocomplete="off"
            aria-describedby=described
            aria-invalid=invalid
            value=untrack(&value)
            prop:value=value
            on:input=move |e| set(event_target_value(&e))
        />
    }
    .into_any()
}

/// Errors that belong to no field on display, as sentences.
pub fn elsewhere(lang: Lang, errors: &[FieldError], shown: &[&str]) -> Vec<String> {
    errors
        .iter()
        .filter(|e| !shown.iter().any(|prefix| e.field.starts_with(prefix)))
        .map(|e| format!("{}: {}", e.field, e.message.get(lang)))
        .collect()
}

/// The sentence over a form whose fields were refused.
pub fn refusal(lang: Lang) -> String {
    t::fix_fields(lang).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringlab_labs::text::Text;

    fn fields() -> Vec<Field> {
        let field =
            |name: &str, kind| Field {
                name: name.into(), label: Text::new("标", "label"), help: None, kind
            };
        vec![
            field("ranks", FieldKind::Integer { min: 2, max: 8, default: Some(4), unit: String::new() }),
            field(
                "ratio",
                FieldKind::Number { min: 0.0, max: 2.0, default: Some(1.75), unit: String::new() },
            ),
            field("why", FieldKind::Text { max_chars: 100 }),
        ]
    }

    #[test]
    fn a_fresh_form_holds_the_defaults() {
        let typed = defaults(&fields());
        assert_eq!(typed["ranks"], "4");
        assert_eq!(typed["ratio"], "1.75");
        assert_eq!(typed["why"], "");
    }

    #[test]
    fn numbers_become_numbers_and_the_rest_stays_text() {
        let typed = Typed::from([
            ("ranks".into(), " 8 ".into()),
            ("ratio".into(), "much".into()),
            ("why".into(), "7".into()),
        ]);
        let sent = to_fields(&fields(), &typed);
        assert_eq!(sent["ranks"], 8);
        assert_eq!(sent["ratio"], "much");
        assert_eq!(sent["why"], "7");
    }

    #[test]
    fn empty_inputs_are_left_out() {
        assert!(to_fields(&fields(), &Typed::from([("ranks".into(), "  ".into())])).is_empty());
    }

    #[test]
    fn stored_values_come_back_and_unknown_ones_do_not() {
        let stored = Fields::from([("ranks".into(), 2.into()), ("gone".into(), 1.into())]);
        let typed = from_fields(&fields(), &stored);
        assert_eq!(typed["ranks"], "2");
        assert!(!typed.contains_key("gone"));
    }
}
