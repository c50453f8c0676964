//! Setting up assessments: the list, a form for a new one, invitations with links that are shown once.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{
    AssessmentView, Invitation, NewAssessment, NewInvitations, QuestionSet, SittingState,
};
use ringlab_labs::text::Lang;

use super::account::{field, message};
use super::remote::{Failure, Remote, post};
use crate::strings_interview as ti;
use crate::strings_report as tr;

#[island]
pub fn AssessmentsPanel(lang: Lang) -> impl IntoView {
    let remote = Remote::<Vec<AssessmentView>>::load("/api/v1/assessments".into());
    // Codes come once, in the reply that made them: they outlive the list, which is loaded anew.
    let fresh = RwSignal::new(Vec::<Invitation>::new());
    remote.view(lang, tr::assessments_denied(lang), move |all| {
        let cards: Vec<_> = all.iter().map(|a| card(lang, a, remote, fresh)).collect();
        let none = all.is_empty().then(|| view! { <p class="muted">{tr::assessments_none(lang)}</p> });
        view! {
            {new_form(lang, remote)}
            {none}
            {cards}
        }
        .into_any()
    })
}

fn new_form(lang: Lang, remote: Remote<Vec<AssessmentView>>) -> AnyView {
    let title = RwSignal::new(String::new());
    let (set, last, numbers) =
        (RwSignal::new("screening".to_owned()), RwSignal::new(53u32), RwSignal::new(String::new()));
    let minutes = RwSignal::new(String::new());
    let (blind, two, at_once) = (RwSignal::new(false), RwSignal::new(false), RwSignal::new(true));
    let failed = RwSignal::new(None::<Failure>);
    let send = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let body = NewAssessment {
            title: title.get_untracked(),
            set: set_of(&set.get_untracked(), last.get_untracked(), &numbers.get_untracked()),
            seconds: seconds(&minutes.get_untracked()),
            blind: blind.get_untracked(),
            two_reviewers: two.get_untracked(),
            report_at_once: at_once.get_untracked(),
        };
        spawn_local(async move {
            match post::<AssessmentView>("/api/v1/assessments", &body).await {
                Ok(_) => remote.reload(),
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let tick = move |id: &'static str, label: &'static str, value: RwSignal<bool>| {
        view! {
            <p class="tick">
                <input
                    id=id
                    type="checkbox"
                    prop:checked=move || value.get()
                    on:change=move |e| value.set(event_target_checked(&e))
                />
                <label for=id>{label}</label>
            </p>
        }
    };
    view! {
        <details class="make">
            <summary>{tr::make(lang)}</summary>
            <form class="card-form" id="make" on:submit=send>
                {field(lang, "make-title", tr::make_title(lang), "text", "off", title, failed, "title")}
                <div class="field">
                    <label for="make-set">{tr::make_set(lang)}</label>
                    <select id="make-set" on:change=move |e| set.set(event_target_value(&e))>
                        <option value="screening">{tr::set_screening(lang)}</option>
                        <option value="senior">{tr::set_senior(lang)}</option>
                        <option value="full">{tr::set_full(lang)}</option>
                        <option value="custom">{tr::set_custom(lang)}</option>
                    </select>
                </div>
                <div class="field" hidden=move || set.with(|s| s != "senior")>
                    <label for="make-last">{tr::set_senior_last(lang)}</label>
                    <select id="make-last" on:change=move |e| last.set(event_target_value(&e).parse().unwrap_or(53))>
                        <option value="53">"53"</option>
                        <option value="54">"54"</option>
                    </select>
                </div>
                <div hidden=move || set.with(|s| s != "custom")>
                    {field(lang, "make-numbers", tr::set_numbers(lang), "text", "off", numbers, failed, "set")}
                </div>
                {field(lang, "make-minutes", tr::make_minutes(lang), "text", "off", minutes, failed, "seconds")}
                {tick("make-blind", tr::make_blind(lang), blind)}
                {tick("make-two", tr::make_two(lang), two)}
                {tick("make-at-once", tr::make_at_once(lang), at_once)}
                {message(lang, failed)}
                <button type="submit" class="button primary">
                    {tr::make_send(lang)}
                </button>
            </form>
        </details>
    }
    .into_any()
}

fn set_of(kind: &str, last: u32, numbers: &str) -> QuestionSet {
    match kind {
        "senior" => QuestionSet::Senior { last },
        "full" => QuestionSet::Full,
        "custom" => {
            let words = numbers.split(|c: char| !c.is_ascii_digit());
            QuestionSet::Custom { questions: words.filter_map(|w| w.parse().ok()).collect() }
        }
        _ => QuestionSet::Screening,
    }
}

/// Minutes, also in parts: `1.5` is a rehearsal of 90 s.
fn seconds(minutes: &str) -> Option<u32> {
    let minutes: f64 = minutes.trim().parse().ok()?;
    (minutes > 0.0).then_some((minutes * 60.0 + 0.5) as u32)
}

fn card(
    lang: Lang,
    a: &AssessmentView,
    remote: Remote<Vec<AssessmentView>>,
    fresh: RwSignal<Vec<Invitation>>,
) -> AnyView {
    let closed = a.closed_ms.is_some();
    let numbers: Vec<String> = a.questions.iter().map(|q| q.number.to_string()).collect();
    let mut facts = vec![ti::amount(lang, a.questions.len() as u32, a.seconds), numbers.join(", ")];
    let flags = [
        (a.blind, tr::make_blind(lang)),
        (a.two_reviewers, tr::make_two(lang)),
        (a.report_at_once, tr::make_at_once(lang)),
    ];
    facts.extend(flags.iter().filter(|(on, _)| *on).map(|(_, text)| (*text).to_owned()));
    let facts: Vec<_> = facts.into_iter().map(|text| view! { <li>{text}</li> }).collect();
    let id = StoredValue::new(a.id.clone());
    let failed = RwSignal::new(None::<Failure>);
    let close = move |_| {
        spawn_local(async move {
            match post::<AssessmentView>(&format!("/api/v1/assessments/{}/close", id.get_value()), &()).await
            {
                Ok(_) => remote.reload(),
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let badge = closed.then(|| view! { <span class="badge cancelled">{tr::closed(lang)}</span> });
    let tools = (!closed).then(|| {
        view! {
            {invite_form(lang, id, remote, fresh)}
            <p class="actions">
                <button type="button" class="button quiet" on:click=close>
                    {tr::close(lang)}
                </button>
            </p>
        }
    });
    view! {
        <article class="assessment" data-assessment=a.id.clone()>
            <h2>{a.title.clone()} " " {badge}</h2>
            <ul class="facts">{facts}</ul>
            {invitations(lang, a, remote, fresh, failed)}
            {message(lang, failed)}
            {tools}
        </article>
    }
    .into_any()
}

fn invite_form(
    lang: Lang,
    id: StoredValue<String>,
    remote: Remote<Vec<AssessmentView>>,
    fresh: RwSignal<Vec<Invitation>>,
) -> AnyView {
    let labels = RwSignal::new(String::new());
    let failed = RwSignal::new(None::<Failure>);
    let send = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let lines = labels.get_untracked();
        let labels = lines.lines().map(str::trim).filter(|l| !l.is_empty()).map(Into::into).collect();
        let body = NewInvitations { labels, valid_seconds: None };
        spawn_local(async move {
            let path = format!("/api/v1/assessments/{}/invitations", id.get_value());
            match post::<Vec<Invitation>>(&path, &body).await {
                Ok(made) => {
                    fresh.update(|all| all.extend(made));
                    remote.reload();
                }
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let name = id.with_value(|id| format!("invite-{id}"));
    view! {
        <details class="invite">
            <summary>{tr::invite(lang)}</summary>
            <form class="card-form" on:submit=send>
                <div class="field">
                    <label for=name.clone()>{tr::invite_labels(lang)}</label>
                    <textarea id=name rows="4" on:input=move |e| labels.set(event_target_value(&e))></textarea>
                </div>
                {message(lang, failed)}
                <button type="submit" class="button primary">
                    {tr::invite_send(lang)}
                </button>
            </form>
        </details>
    }
    .into_any()
}

fn invitations(
    lang: Lang,
    a: &AssessmentView,
    remote: Remote<Vec<AssessmentView>>,
    fresh: RwSignal<Vec<Invitation>>,
    failed: RwSignal<Option<Failure>>,
) -> AnyView {
    if a.invitations.is_empty() {
        return ().into_any();
    }
    let any_code = a.invitations.iter().any(|i| code_of(fresh, &i.id).is_some());
    let rows: Vec<_> = a.invitations.iter().map(|i| invitation(lang, i, remote, fresh, failed)).collect();
    let once = any_code.then(|| view! { <p class="notice">{tr::invite_once(lang)}</p> });
    view! {
        {once}
        <div class="scroll" role="region" tabindex="0" aria-label=tr::invitations(lang)>
            <table class="invitations">
                <thead>
                    <tr>
                        <th scope="col">{tr::invited_label(lang)}</th>
                        <th scope="col">{tr::state(lang)}</th>
                        <th scope="col">{tr::invitations(lang)}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn code_of(fresh: RwSignal<Vec<Invitation>>, id: &str) -> Option<String> {
    fresh.with_untracked(|all| all.iter().find(|i| i.id == id).and_then(|i| i.code.clone()))
}

fn invitation(
    lang: Lang,
    i: &Invitation,
    remote: Remote<Vec<AssessmentView>>,
    fresh: RwSignal<Vec<Invitation>>,
    failed: RwSignal<Option<Failure>>,
) -> AnyView {
    let (class, word) = match (i.revoked, i.state) {
        (true, _) => ("cancelled", tr::revoked(lang)),
        (_, None) => ("queued", tr::invited(lang)),
        (_, Some(SittingState::Running)) => ("running", tr::running(lang)),
        (_, Some(SittingState::Submitted)) => ("done", tr::submitted(lang)),
        (_, Some(SittingState::TimeOver)) => ("done", tr::time_over(lang)),
    };
    let id = StoredValue::new(i.id.clone());
    let revoke = move |_| {
        spawn_local(async move {
            match post::<()>(&format!("/api/v1/invitations/{}/revoke", id.get_value()), &()).await {
                Ok(()) => remote.reload(),
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let link = match (code_of(fresh, &i.id), &i.sitting) {
        (_, Some(sitting)) => view! {
            <a href=format!("/{}/review/sittings/{sitting}", lang.code())>{tr::open_review(lang)}</a>
        }
        .into_any(),
        (Some(code), None) => copyable(lang, &code),
        (None, None) => ().into_any(),
    };
    let open = !i.revoked && i.state.is_none();
    view! {
        <tr>
            <td>{i.label.clone()}</td>
            <td>
                <span class=format!("badge {class}")>{word}</span>
            </td>
            <td>
                {link}
                <button type="button" class="button quiet" hidden=!open on:click=revoke>
                    {tr::revoke(lang)}
                </button>
            </td>
        </tr>
    }
    .into_any()
}

fn copyable(lang: Lang, code: &str) -> AnyView {
    let origin = web_sys::window().and_then(|w| w.location().origin().ok()).unwrap_or_default();
    let link = format!("{origin}/{}/invitations/{code}", lang.code());
    let copied = RwSignal::new(false);
    let text = link.clone();
    let copy = move |_| {
        let text = text.clone();
        if let Some(window) = web_sys::window() {
            let done = window.navigator().clipboard().write_text(&text);
            spawn_local(async move {
                copied.set(wasm_bindgen_futures::JsFuture::from(done).await.is_ok());
            });
        }
    };
    view! {
        <a class="invitation-link" href=link.clone()>
            {link.clone()}
        </a>
        " "
        <button type="button" class="button quiet" on:click=copy>
            {move || if copied.get() { tr::copied(lang) } else { tr::copy(lang) }}
        </button>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_one_s_own_is_read_from_numbers_however_they_are_parted() {
        let expected = QuestionSet::Custom { questions: vec![1, 4, 33] };
        assert_eq!(set_of("custom", 53, "1, 4，33"), expected);
        assert_eq!(set_of("custom", 53, " 1 4\n33 "), expected);
        assert_eq!(set_of("senior", 54, ""), QuestionSet::Senior { last: 54 });
    }

    #[test]
    fn minutes_may_be_parts_of_one() {
        assert_eq!(seconds("45"), Some(2_700));
        assert_eq!(seconds("1.5"), Some(90));
        for empty in ["", "0", "-3", "abc"] {
            assert_eq!(seconds(empty), None, "{empty}");
        }
    }
}
