//! Parts of a finished run: marks, figures, files, what was submitted.

use leptos::prelude::*;
use ringlab_labs::api::JobView;
use ringlab_labs::catalogue::{Field, FieldKind, LabView};
use ringlab_labs::job::{Artifact, Check, Fields, Marks, Table, Verdict};
use ringlab_labs::text::Lang;
use serde_json::Value;

use crate::format;
use crate::strings as t;

/// Every check with what was expected, what came and why it counts.
#[component]
pub fn ChecksTable(lang: Lang, marks: Marks) -> impl IntoView {
    let total = format!("{} / {}", format::decimal(marks.total, 2), format::decimal(marks.max, 2));
    let rows: Vec<_> = marks.checks.into_iter().map(|check| check_row(lang, check)).collect();
    view! {
        <section class="run-checks">
            <div class="marks-head">
                <h2>{t::checks(lang)}</h2>
                <p class="total">
                    <span class="eyebrow">{t::total_marks(lang)}</span>
                    " "
                    <strong>{total}</strong>
                </p>
            </div>
            <ul class="checks">{rows}</ul>
        </section>
    }
    .into_any()
}

fn check_row(lang: Lang, check: Check) -> AnyView {
    let (class, word, sign) = match check.verdict {
        Verdict::Pass => ("pass", t::pass(lang), "✓"),
        Verdict::Fail => ("fail", t::fail(lang), "✗"),
        Verdict::Pending => ("pending", t::pending(lang), "…"),
    };
    let points = format!("{} / {}", format::decimal(check.marks, 2), format::decimal(check.max, 2));
    let tolerance = (!check.tolerance.is_empty()).then(|| {
        view! {
            <div>
                <dt>{t::tolerance(lang)}</dt>
                <dd>{check.tolerance}</dd>
            </div>
        }
    });
    view! {
        <li class=format!("result-check {class}")>
            <p class="check-title">
                <span class="sign" aria-hidden="true">
                    {sign}
                </span>
                <span>
                    <strong>{check.title.get(lang).to_owned()}</strong>
                    " "
                    <span class="check-word">{word}</span>
                </span>
                <span class="points">{points}</span>
            </p>
            <dl>
                <div>
                    <dt>{t::expected(lang)}</dt>
                    <dd>{check.expected}</dd>
                </div>
                <div>
                    <dt>{t::got(lang)}</dt>
                    <dd>{check.got}</dd>
                </div>
                {tolerance}
            </dl>
            <p class="why">{check.why.get(lang).to_owned()}</p>
        </li>
    }
    .into_any()
}

/// The run's tables, each with where its figures come from.
#[component]
pub fn Figures(lang: Lang, tables: Vec<Table>) -> impl IntoView {
    (!tables.is_empty()).then(|| {
        let tables: Vec<_> = tables.into_iter().map(|table| figure_table(lang, table)).collect();
        view! {
            <section class="run-tables">
                <h2>{t::tables(lang)}</h2>
                {tables}
            </section>
        }
    })
}

fn figure_table(lang: Lang, table: Table) -> AnyView {
    let title = table.title.get(lang).to_owned();
    let head: Vec<_> =
        table.columns.iter().map(|c| view! { <th scope="col">{c.get(lang).to_owned()}</th> }).collect();
    let rows: Vec<_> = table
        .rows
        .into_iter()
        .map(|row| {
            let cells: Vec<_> = row.into_iter().map(|cell| view! { <td>{cell}</td> }).collect();
            view! { <tr>{cells}</tr> }
        })
        .collect();
    view! {
        <figure class="table-figure">
            <figcaption>
                {title.clone()} " " <span class="origin">{table.source.get(lang).to_owned()}</span>
            </figcaption>
            <div class="scroll" role="region" tabindex="0" aria-label=title>
                <table>
                    <thead>
                        <tr>{head}</tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </figure>
    }
    .into_any()
}

/// Files to take away.
#[component]
pub fn Artifacts(lang: Lang, job: String, artifacts: Vec<Artifact>, traced: bool) -> impl IntoView {
    let base = format!("/api/v1/jobs/{job}");
    let rows: Vec<_> = artifacts
        .into_iter()
        .map(|a| {
            view! {
                <li>
                    <a href=format!("{base}/artifacts/{}", a.name) download=a.name.clone()>
                        {a.name.clone()}
                    </a>
                    " "
                    <span class="muted">{format::bytes(a.bytes)}</span>
                </li>
            }
        })
        .collect();
    let perfetto = traced.then(|| {
        view! {
            <p class="actions">
                <a class="button" href=format!("{base}/perfetto") download="trace.perfetto.json">
                    {t::perfetto(lang)}
                </a>
                <span class="help">{t::perfetto_hint(lang)}</span>
            </p>
        }
    });
    view! {
        <section class="run-files">
            <h2>{t::artifacts(lang)}</h2>
            <ul>{rows}</ul>
            {perfetto}
        </section>
    }
    .into_any()
}

/// What was submitted, in the form's own words.
#[component]
pub fn SubmissionList(lang: Lang, lab: LabView, job: JobView) -> impl IntoView {
    let mut rows = rows_of(lang, &lab.params, &job.submission.params);
    rows.extend(rows_of(lang, &lab.prediction, &job.submission.prediction));
    if let Some(answers) = &job.answers {
        rows.extend(rows_of(lang, &lab.answers, answers));
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(label, value)| {
            view! {
                <div>
                    <dt>{label}</dt>
                    <dd>{value}</dd>
                </div>
            }
        })
        .collect();
    let plan = job.plan.map(|plan| {
        view! {
            <details>
                <summary>{t::plan_title(lang)}</summary>
                <pre class="plan-text" tabindex="0">
                    <code>{plan}</code>
                </pre>
            </details>
        }
    });
    view! {
        <section class="run-submission">
            <h2>{t::your_submission(lang)}</h2>
            <dl class="facts">
                {rows}
                <div>
                    <dt>{t::your_seed(lang)}</dt>
                    <dd>
                        <code>{job.seed.to_string()}</code>
                    </dd>
                </div>
            </dl>
            {plan}
        </section>
    }
    .into_any()
}

/// Label and value of each field that was filled in.
pub fn rows_of(lang: Lang, fields: &[Field], values: &Fields) -> Vec<(String, String)> {
    let row = |field: &Field| {
        let value = values.get(&field.name)?;
        Some((field.label.get(lang).to_owned(), shown(lang, field, value)))
    };
    fields.iter().filter_map(row).collect()
}

fn shown(lang: Lang, field: &Field, value: &Value) -> String {
    let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match &field.kind {
        FieldKind::Choice { options, .. } => {
            options.iter().find(|o| o.value == plain).map_or(plain, |o| o.label.get(lang).to_owned())
        }
        FieldKind::Integer { unit, .. } | FieldKind::Number { unit, .. } if !unit.is_empty() => {
            format!("{plain} {unit}")
        }
        _ => plain,
    }
}
