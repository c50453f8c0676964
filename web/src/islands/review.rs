//! Review: the queue, and one sitting with a form at every question.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{Confirm, Override, QuestionReport, QuestionStatistics, ReviewItem, ReviewView};
use ringlab_labs::text::Lang;

use super::remote::{Failure, Remote, post};
use crate::format;
use crate::html::{self, percent};
use crate::report_html;
use crate::strings_interview as ti;
use crate::strings_report as tr;

#[island]
pub fn ReviewQueue(lang: Lang) -> impl IntoView {
    let queue = Remote::<Vec<ReviewItem>>::load("/api/v1/review".into());
    let statistics = Remote::<Vec<QuestionStatistics>>::load("/api/v1/review/statistics".into());
    view! {
        {queue.view(lang, tr::review_denied(lang), move |items| list(lang, &items))}
        <section class="statistics">
            <h2>{tr::statistics(lang)}</h2>
            <p class="help">{tr::statistics_hint(lang)}</p>
            {statistics.view(lang, tr::review_denied(lang), move |all| statistics_table(lang, &all))}
        </section>
    }
    .into_any()
}

fn list(lang: Lang, items: &[ReviewItem]) -> AnyView {
    if items.is_empty() {
        return view! { <p class="muted">{tr::review_empty(lang)}</p> }.into_any();
    }
    let rows: Vec<_> = items
        .iter()
        .map(|item| {
            let name = item.name.clone().unwrap_or_else(|| tr::nameless(lang).into());
            let asks: Vec<String> = item.asks.iter().map(u32::to_string).collect();
            let state = if item.is_final {
                view! { <span class="badge done">{tr::is_final(lang)}</span> }.into_any()
            } else {
                view! { <span>{item.confirmed_by.join(", ")}</span> }.into_any()
            };
            view! {
                <tr>
                    <td>
                        <a href=format!("/{}/review/sittings/{}", lang.code(), item.sitting)>{name}</a>
                        <br />
                        <span class="muted">{item.title.clone()}</span>
                    </td>
                    <td>{format::when_ms(item.ended_ms)}</td>
                    <td class="number">{item.total} " / " {item.max}</td>
                    <td class="number">{percent(f64::from(item.confidence))} " %"</td>
                    <td>{asks.join(", ")}</td>
                    <td>{state}</td>
                </tr>
            }
        })
        .collect();
    let heads = [
        tr::candidate(lang),
        tr::time(lang),
        tr::points_word(lang),
        tr::confidence(lang),
        tr::asks(lang),
        tr::confirmed_by(lang),
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <div class="scroll" role="region" tabindex="0" aria-label=tr::review_title(lang)>
            <table class="review-queue">
                <thead>
                    <tr>{heads.collect_view()}</tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn statistics_table(lang: Lang, all: &[QuestionStatistics]) -> AnyView {
    if all.is_empty() {
        return view! { <p class="muted">{ti::none_yet(lang)}</p> }.into_any();
    }
    let number = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format::decimal(x, 2));
    let rows: Vec<_> = all
        .iter()
        .map(|s| {
            view! {
                <tr>
                    <th scope="row">{s.question.number} " · " {s.question.title.get(lang).to_owned()}</th>
                    <td class="number">{s.answers}</td>
                    <td class="number">{number(s.facility)}</td>
                    <td class="number">{number(s.discrimination)}</td>
                    <td class="number">
                        {s.median_seconds.map_or_else(|| "–".into(), |n| ti::duration(lang, n))}
                    </td>
                    <td class="number">{number(s.agreement)}</td>
                    <td class="number">{s.reviewed}</td>
                </tr>
            }
        })
        .collect();
    let heads = [
        tr::answers_count(lang),
        tr::facility(lang),
        tr::discrimination(lang),
        tr::median_time(lang),
        tr::agreement(lang),
        tr::reviewed(lang),
    ]
    .map(|text| view! { <th scope="col" class="number">{text}</th> });
    view! {
        <div class="scroll" role="region" tabindex="0" aria-label=tr::statistics(lang)>
            <table>
                <thead>
                    <tr>
                        <th scope="col">{tr::question_word(lang)}</th>
                        {heads.collect_view()}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

#[island]
pub fn ReviewPanel(lang: Lang, id: String) -> impl IntoView {
    let remote = Remote::<ReviewView>::load(format!("/api/v1/review/sittings/{id}"));
    let id = StoredValue::new(id);
    // Kept apart from the view, which is made anew after every change.
    let said = RwSignal::new(None::<&'static str>);
    view! {
        <p class="review-said" role="status">{said}</p>
        {remote.view(lang, tr::review_denied(lang), move |view| panel(lang, id, remote, said, &view))}
    }
    .into_any()
}

fn panel(
    lang: Lang,
    id: StoredValue<String>,
    remote: Remote<ReviewView>,
    said: RwSignal<Option<&'static str>>,
    view: &ReviewView,
) -> AnyView {
    let report = &view.report;
    let place =
        |q: &QuestionReport| view.order.iter().position(|n| *n == q.question.number).unwrap_or(usize::MAX);
    let mut questions: Vec<&QuestionReport> = report.questions.iter().collect();
    questions.sort_by_key(|q| place(q));
    let open = !report.is_final;
    let articles: Vec<_> = questions
        .into_iter()
        .map(|q| {
            let form = open.then(|| override_form(lang, id, remote, said, q));
            view! {
                <article class="report-question" id=format!("q{}", q.question.number)>
                    <div inner_html=question_html(lang, view, q)></div>
                    {form}
                </article>
            }
        })
        .collect();
    let confirmed = (!view.confirmed_by.is_empty())
        .then(|| view! { <p>{tr::confirmed_by(lang)} ": " {view.confirmed_by.join(", ")}</p> });
    let two = view.two_reviewers.then(|| view! { <p class="help">{tr::two_needed(lang)}</p> });
    let confirm = open.then(|| confirm_form(lang, id, remote));
    view! {
        <div class="report review">
            <div inner_html=report_html::summary(lang, report)></div>
            {articles}
            <section class="confirm">
                <h2>{tr::confirm_title(lang)}</h2>
                {two}
                {confirmed}
                {confirm}
            </section>
            {log_table(lang, view)}
            <div inner_html=report_html::after(lang, report)></div>
        </div>
    }
    .into_any()
}

fn question_html(lang: Lang, view: &ReviewView, q: &QuestionReport) -> String {
    let mut html = report_html::question(lang, q);
    for opinion in view.opinions.iter().filter(|opinion| opinion.question == q.question.number) {
        html.push_str(&report_html::opinion(lang, q, opinion));
    }
    html
}

fn override_form(
    lang: Lang,
    id: StoredValue<String>,
    remote: Remote<ReviewView>,
    said: RwSignal<Option<&'static str>>,
    q: &QuestionReport,
) -> AnyView {
    let number = q.question.number;
    let (point, to, why) = (RwSignal::new(0u32), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let failed = RwSignal::new(None::<Failure>);
    let choices: Vec<_> = q
        .grade
        .points
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let text = format!(
                "{} ({} / {})",
                html::label(lang, &p.label),
                html::awarded(i, p, &q.overrides),
                p.max
            );
            view! { <option value=i.to_string()>{text}</option> }
        })
        .collect();
    let send = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let Ok(to) = to.get_untracked().trim().parse() else { return };
        let body = Override { question: number, point: point.get_untracked(), to, why: why.get_untracked() };
        said.set(None);
        spawn_local(async move {
            match post::<ReviewView>(&format!("/api/v1/review/sittings/{}/overrides", id.get_value()), &body)
                .await
            {
                Ok(view) => {
                    remote.set(view);
                    said.set(Some(tr::override_done(lang)));
                }
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let field = |name: &str| format!("override-{number}-{name}");
    view! {
        <details class="override-form">
            <summary>{tr::override_title(lang)}</summary>
            <form class="card-form" on:submit=send>
                <div class="field">
                    <label for=field("point")>{tr::point(lang)}</label>
                    <select
                        id=field("point")
                        on:change=move |e| point.set(event_target_value(&e).parse().unwrap_or(0))
                    >
                        {choices}
                    </select>
                </div>
                <div class="field">
                    <label for=field("to")>{tr::override_to(lang)}</label>
                    <input
                        id=field("to")
                        type="number"
                        min="0"
                        max="10"
                        required=true
                        on:input=move |e| to.set(event_target_value(&e))
                    />
                </div>
                <div class="field">
                    <label for=field("why")>{tr::override_why(lang)}</label>
                    <textarea
                        id=field("why")
                        rows="3"
                        required=true
                        on:input=move |e| why.set(event_target_value(&e))
                    ></textarea>
                </div>
                {super::account::message(lang, failed)}
                <button type="submit" class="button">
                    {tr::override_send(lang)}
                </button>
            </form>
        </details>
    }
    .into_any()
}

fn confirm_form(lang: Lang, id: StoredValue<String>, remote: Remote<ReviewView>) -> AnyView {
    let note = RwSignal::new(String::new());
    let failed = RwSignal::new(None::<Failure>);
    let send = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let body = Confirm { note: note.get_untracked() };
        spawn_local(async move {
            match post::<ReviewView>(&format!("/api/v1/review/sittings/{}/confirm", id.get_value()), &body)
                .await
            {
                Ok(view) => remote.set(view),
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    view! {
        <form class="card-form" id="confirm" on:submit=send>
            {super::account::field(lang, "confirm-note", tr::confirm_note(lang), "text", "off", note, failed, "note")}
            {super::account::message(lang, failed)}
            <button type="submit" class="button primary">
                {tr::confirm(lang)}
            </button>
        </form>
    }
    .into_any()
}

fn log_table(lang: Lang, view: &ReviewView) -> AnyView {
    if view.log.is_empty() {
        return ().into_any();
    }
    let rows: Vec<_> = view
        .log
        .iter()
        .map(|entry| {
            view! {
                <tr>
                    <td>{format::when_ms(entry.at_ms)}</td>
                    <td>{entry.who.clone()}</td>
                    <td>{entry.what.clone()}</td>
                    <td>{entry.from.clone().unwrap_or_default()}</td>
                    <td>{entry.to.clone().unwrap_or_default()}</td>
                    <td>{entry.why.clone()}</td>
                </tr>
            }
        })
        .collect();
    let heads = [
        tr::time(lang),
        tr::log_who(lang),
        tr::what(lang),
        tr::log_from(lang),
        tr::log_to(lang),
        tr::why(lang),
    ]
    .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <section>
            <h2>{tr::log(lang)}</h2>
            <div class="scroll" role="region" tabindex="0" aria-label=tr::log(lang)>
                <table class="audit">
                    <thead>
                        <tr>{heads.collect_view()}</tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
    .into_any()
}
