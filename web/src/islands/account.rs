//! Sign in, sign up, sign out; who the visitor is.

use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_interview::api::{AccountView, ChangePassword, Role, SignIn, SignUp};
use ringlab_labs::text::Lang;

use super::client;
use super::remote::{Failure, Remote, post};
use crate::strings_interview as ti;

#[island]
pub fn AccountPanel(lang: Lang) -> impl IntoView {
    let remote = Remote::<AccountView>::load("/api/v1/account".into());
    remote.view(lang, ti::answer_unread(lang), move |account| panel(lang, account, remote))
}

fn panel(lang: Lang, account: AccountView, remote: Remote<AccountView>) -> AnyView {
    let who = match (&account.id, &account.email) {
        (None, _) => ti::you_are_nobody(lang).to_owned(),
        (Some(_), None) => ti::you_are_guest(lang).to_owned(),
        (Some(_), Some(email)) => {
            let name = account.display_name.clone().unwrap_or_default();
            format!("{name} · {email} · {}", role(lang, account.role))
        }
    };
    let member = account.email.is_some();
    let forms = if member { member_forms(lang, remote) } else { guest_forms(lang, remote) };
    let export = account.id.is_some().then(|| {
        view! {
            <p>
                <a href="/api/v1/account/export" download="ringlab.json">
                    {ti::export_mine(lang)}
                </a>
            </p>
        }
    });
    view! {
        <div class="account">
            <p class="who">
                <strong>{ti::you_are(lang)}</strong>
                " "
                <span>{who}</span>
            </p>
            {forms}
            {export}
        </div>
    }
    .into_any()
}

fn role(lang: Lang, role: Role) -> &'static str {
    match role {
        Role::Learner => ti::role_learner(lang),
        Role::Instructor => ti::role_instructor(lang),
        Role::Admin => ti::role_admin(lang),
    }
}

fn guest_forms(lang: Lang, remote: Remote<AccountView>) -> AnyView {
    let (email, password) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (new_email, new_password, name) =
        (RwSignal::new(String::new()), RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (sign_in_failed, sign_up_failed) = (RwSignal::new(None), RwSignal::new(None));
    let sign_in = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let body = SignIn { email: email.get_untracked(), password: password.get_untracked() };
        spawn_local(async move {
            arrive(post("/api/v1/account/sign-in", &body).await, remote, sign_in_failed);
        });
    };
    let sign_up = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let body = SignUp {
            email: new_email.get_untracked(),
            password: new_password.get_untracked(),
            display_name: name.get_untracked(),
        };
        spawn_local(async move {
            arrive(post("/api/v1/account/sign-up", &body).await, remote, sign_up_failed);
        });
    };
    view! {
        <div class="two-forms">
            <form class="card-form" id="sign-in" on:submit=sign_in>
                <h2>{ti::sign_in(lang)}</h2>
                {field(lang, "sign-in-email", ti::email(lang), "email", "email", email, sign_in_failed, "email")}
                {field(lang, "sign-in-password", ti::password(lang), "password", "current-password", password, sign_in_failed, "password")}
                {message(lang, sign_in_failed)}
                <button type="submit" class="button primary">
                    {ti::sign_in(lang)}
                </button>
            </form>
            <form class="card-form" id="sign-up" on:submit=sign_up>
                <h2>{ti::sign_up(lang)}</h2>
                {field(lang, "sign-up-name", ti::display_name(lang), "text", "name", name, sign_up_failed, "display_name")}
                {field(lang, "sign-up-email", ti::email(lang), "email", "email", new_email, sign_up_failed, "email")}
                {field(lang, "sign-up-password", ti::password(lang), "password", "new-password", new_password, sign_up_failed, "password")}
                <p class="help">{ti::password_rule(lang)}</p>
                {message(lang, sign_up_failed)}
                <button type="submit" class="button">
                    {ti::sign_up(lang)}
                </button>
            </form>
        </div>
    }
    .into_any()
}

/// Where the visitor came from, else this page again as whoever they are now.
fn arrive(
    answer: Result<AccountView, Failure>,
    remote: Remote<AccountView>,
    failed: RwSignal<Option<Failure>>,
) {
    match answer {
        Ok(account) => match client::query("next").filter(|path| of_this_site(path)) {
            Some(path) => client::go(&path),
            None => remote.set(account),
        },
        Err(failure) => failed.set(Some(failure)),
    }
}

/// A path below a language: nothing that leads elsewhere (`//other.example`, `javascript:`).
fn of_this_site(path: &str) -> bool {
    Lang::ALL.iter().any(|lang| path.starts_with(&format!("/{}/", lang.code())))
}

fn member_forms(lang: Lang, remote: Remote<AccountView>) -> AnyView {
    let (old, new) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (failed, changed) = (RwSignal::new(None), RwSignal::new(false));
    let change = move |e: leptos::ev::SubmitEvent| {
        e.prevent_default();
        let body = ChangePassword { old: old.get_untracked(), new: new.get_untracked() };
        spawn_local(async move {
            match post::<()>("/api/v1/account/password", &body).await {
                Ok(()) => {
                    failed.set(None);
                    changed.set(true);
                    old.set(String::new());
                    new.set(String::new());
                }
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    let leave = move |_| {
        spawn_local(async move {
            match post::<()>("/api/v1/account/sign-out", &()).await {
                Ok(()) => {
                    // Answers and notes that this browser keeps are not for whoever signs in next.
                    ["ringlab.quiz.", "ringlab.reading/", "ringlab.draft/"]
                        .into_iter()
                        .for_each(client::forget_all);
                    remote.reload();
                }
                Err(failure) => failed.set(Some(failure)),
            }
        });
    };
    view! {
        <p class="actions">
            <button type="button" class="button" id="sign-out" on:click=leave>
                {ti::sign_out(lang)}
            </button>
        </p>
        <details>
            <summary>{ti::change_password(lang)}</summary>
            <form class="card-form" on:submit=change>
                {field(lang, "old-password", ti::old_password(lang), "password", "current-password", old, failed, "old")}
                {field(lang, "new-password", ti::new_password(lang), "password", "new-password", new, failed, "new")}
                <p class="help">{ti::password_rule(lang)}</p>
                <button type="submit" class="button">
                    {ti::change_password(lang)}
                </button>
            </form>
        </details>
        {message(lang, failed)}
        <p role="status">{move || changed.get().then(|| ti::password_changed(lang))}</p>
    }
    .into_any()
}

/// A labelled field with its own error beside it.
#[allow(clippy::too_many_arguments)] // each is one attribute
pub(super) fn field(
    lang: Lang,
    id: &'static str,
    label: &'static str,
    kind: &'static str,
    autocomplete: &'static str,
    value: RwSignal<String>,
    failed: RwSignal<Option<Failure>>,
    name: &'static str,
) -> AnyView {
    let wrong = Memo::new(move |_| {
        failed.with(|f| match f {
            Some(Failure::Refused { errors, .. }) => {
                errors.iter().find(|e| e.field == name).map(|e| e.message.get(lang).to_owned())
            }
            _ => None,
        })
    });
    view! {
        <div class="field">
            <label for=id>{label}</label>
            <input
                id=id
                type=kind
                autocomplete=autocomplete
                aria-describedby=format!("{id}-error")
                aria-invalid=move || if wrong.get().is_some() { "true" } else { "false" }
                prop:value=move || value.get()
                on:input=move |e| value.set(event_target_value(&e))
            />
            <p class="field-error" id=format!("{id}-error")>
                {wrong}
            </p>
        </div>
    }
    .into_any()
}

/// What went wrong, where it belongs to no field.
pub(super) fn message(lang: Lang, failed: RwSignal<Option<Failure>>) -> AnyView {
    let text = move || {
        failed.with(|f| match f {
            Some(Failure::Refused { text, .. }) => Some(text.clone()),
            Some(other) => Some(other.text(lang)),
            None => None,
        })
    };
    view! {
        <p class="form-error" role="alert">
            {text}
        </p>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::of_this_site;

    #[test]
    fn signing_in_never_leads_to_another_site() {
        assert!(of_this_site("/zh/practice"));
        for path in ["//evil.example", "https://evil.example", "javascript:alert(1)", "/api/v1/account", ""] {
            assert!(!of_this_site(path), "{path}");
        }
    }
}
