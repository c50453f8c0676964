//! What awaits a candidate, and the button that starts the clock.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{InvitationView, SittingView, Start, Usable};
use ringlab_labs::text::Lang;

use super::account::{field, message};
use super::client;
use super::remote::{Remote, post};
use crate::format;
use crate::strings_interview as ti;

#[island]
pub fn InvitationPanel(lang: Lang, code: String) -> impl IntoView {
    let remote = Remote::<InvitationView>::load(format!("/api/v1/invitations/by-code/{code}"));
    let code = StoredValue::new(code);
    remote.view(lang, ti::no_invitation(lang), move |view| panel(lang, code, view))
}

fn panel(lang: Lang, code: StoredValue<String>, view: InvitationView) -> AnyView {
    let below = if let Some(sitting) = &view.sitting {
        view! {
            <p class="actions">
                <a class="button primary" href=format!("/{}/sittings/{sitting}", lang.code())>
                    {ti::go_on(lang)}
                </a>
            </p>
        }
        .into_any()
    } else {
        match view.usable {
            Usable::Yes => start_form(lang, code),
            Usable::Expired => refusal(ti::invitation_expired(lang)),
            Usable::Revoked => refusal(ti::invitation_revoked(lang)),
            Usable::Closed => refusal(ti::invitation_closed(lang)),
            Usable::Taken => refusal(ti::invitation_taken(lang)),
        }
    };
    let usable = view.usable == Usable::Yes;
    view! {
        <div class="invitation">
            <h2 class="invitation-title">{view.title}</h2>
            <p class="amount">{ti::amount(lang, view.questions, view.seconds)}</p>
            <p class="meta">
                {ti::invited_as(lang)} " " <strong>{view.label}</strong>
                {usable.then(|| format!(" · {} {}", ti::valid_until(lang), format::when_ms(view.expires_ms)))}
            </p>
            {usable.then(|| awaits(lang))}
            {below}
        </div>
    }
    .into_any()
}

fn awaits(lang: Lang) -> AnyView {
    let points = [
        ti::awaits_clock(lang),
        ti::awaits_order(lang),
        ti::awaits_saving(lang),
        ti::awaits_markdown(lang),
        ti::awaits_record(lang),
        ti::awaits_grading(lang),
    ];
    view! {
        <h3>{ti::what_awaits(lang)}</h3>
        <ul class="awaits">{points.map(|text| view! { <li>{text}</li> }).collect_view()}</ul>
    }
    .into_any()
}

fn refusal(text: &'static str) -> AnyView {
    view! { <p class="notice">{text}</p> }.into_any()
}

fn start_form(lang: Lang, code: StoredValue<String>) -> AnyView {
    let name = RwSignal::new(String::new());
    let failed = RwSignal::new(None);
    let starting = RwSignal::new(false);
    let start = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        if starting.get_untracked() {
            return;
        }
        starting.set(true);
        failed.set(None);
        let body = Start { name: name.get_untracked() };
        spawn_local(async move {
            let path = format!("/api/v1/invitations/by-code/{}/start", code.get_value());
            match post::<SittingView>(&path, &body).await {
                Ok(sitting) => client::go(&format!("/{}/sittings/{}", lang.code(), sitting.id)),
                Err(failure) => {
                    starting.set(false);
                    failed.set(Some(failure));
                }
            }
        });
    };
    view! {
        <form class="card-form" id="start" on:submit=start>
            {field(lang, "start-name", ti::name_on_report(lang), "text", "name", name, failed, "name")}
            <p class="help">{ti::name_hint(lang)}</p>
            {message(lang, failed)}
            <button type="submit" class="button primary" prop:disabled=move || starting.get()>
                {move || if starting.get() { ti::starting(lang) } else { ti::start(lang) }}
            </button>
        </form>
    }
    .into_any()
}
