//! The whole HTML document: head, header, the page, footer.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::reactive::owner::Owner;
use ringlab_labs::text::Lang;

use crate::page::{Page, Shell};
use crate::{assets, pages, strings as t, strings_reference as t_ref};

/// Runs before the first paint: a remembered theme must not flash the other one.
const EARLY: &str = "(d=>{d.dataset.js='';try{const t=localStorage.getItem('ringlab.theme');if(t==='light'||t==='dark')d.dataset.theme=t}\
                     catch{}})(document.documentElement)";

/// What a page gives to its document.
pub(crate) struct Rendered {
    pub title: String,
    pub description: Option<String>,
    /// Which entry of the main navigation is current: `course`, `labs`, `interview`, `reference` or none.
    pub section: Option<&'static str>,
    pub body: AnyView,
    /// Whether the page has islands: only then is the WebAssembly module loaded.
    pub islands: bool,
}

/// Renders a whole document, synchronously; nothing is fetched.
pub fn render(shell: Shell, page: Page) -> String {
    // Islands mode: static parts are not hydrated, islands are.
    let context = Arc::new(hydration_context::SsrSharedContext::new_islands());
    let owner = Owner::new_root(Some(context));
    let html = owner.with(|| document(&shell, pages::render(&shell, page)).to_html());
    owner.unset();
    format!("<!DOCTYPE html>{html}")
}

fn document(shell: &Shell, page: Rendered) -> impl IntoView + use<> {
    let lang = shell.lang;
    let title = if page.section.is_none() && shell.path == "/" {
        format!("{} · {}", t::site(lang), t::tagline(lang))
    } else {
        format!("{} · {}", page.title, t::site(lang))
    };
    let alternate = |to: Lang| {
        let href = address(to, &shell.path);
        view! { <link rel="alternate" hreflang=to.tag() href=href /> }
    };
    view! {
        <html lang=lang.tag()>
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <title>{title}</title>
                {page.description.map(|text| view! { <meta name="description" content=text /> })}
                <meta name="color-scheme" content="light dark" />
                <script nonce=shell.nonce.clone() inner_html=EARLY></script>
                <link rel="stylesheet" href=assets::url("katex/katex.min.css") />
                <link rel="stylesheet" href=assets::url("ringlab.css") />
                <link rel="icon" type="image/svg+xml" href=assets::url("favicon.svg") />
                {alternate(Lang::Zh)}
                {alternate(Lang::En)}
                <script type="module" nonce=shell.nonce.clone() src=assets::url("site.js")></script>
                {page.islands.then(|| island_script(shell))}
            </head>
            <body data-build=shell.build.clone()>
                <a class="skip" href="#main">{t::skip(lang)}</a>
                {header(shell, page.section)}
                <p class="notice wasm-failed" role="status">{t::wasm_failed(lang)}</p>
                <main id="main" tabindex="-1">{page.body}</main>
                <footer class="site-footer">
                    <p>{t::footer_truth(lang)}</p>
                    <p>{t::licence(lang)}</p>
                </footer>
            </body>
        </html>
    }
}

fn header(shell: &Shell, section: Option<&'static str>) -> impl IntoView + use<> {
    let lang = shell.lang;
    let entry = |name: &'static str, label: &'static str| {
        let current = (section == Some(name)).then_some("page");
        view! { <a href=address(lang, &format!("/{name}")) aria-current=current>{label}</a> }
    };
    let other = lang.other();
    view! {
        <header class="site-header">
            <a class="brand" href=address(lang, "/") aria-label=t::site(lang)>
                <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
                    <circle class="brand-ring" cx="16" cy="16" r="11" />
                    <path class="brand-chunk" d="M16 5a11 11 0 0 1 9.5 5.5" />
                </svg>
                <span>{t::site(lang)}</span>
            </a>
            <nav aria-label=t::main_nav(lang)>
                {entry("course", t::course(lang))}
                {entry("labs", t::labs(lang))}
                {entry("interview", t::interview(lang))}
                {entry("reference", t_ref::reference(lang))}
            </nav>
            <div class="site-tools">
                <a class="search-link" href=address(lang, "/search") data-search-link="" aria-keyshortcuts="/">
                    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                        <circle cx="6.5" cy="6.5" r="4.5" />
                        <path d="M10 10l4.5 4.5" />
                    </svg>
                    <span>{t_ref::search(lang)}</span>
                </a>
                <a href=address(other, &shell.path) hreflang=other.tag() lang=other.tag()>{t::other_language(lang)}</a>
                <a href=address(lang, "/sign-in")>{t::account(lang)}</a>
                <button type="button" class="theme-toggle" data-theme-toggle="" aria-pressed="false">
                    <span>{t::dark(lang)}</span>
                </button>
            </div>
        </header>
    }
}

/// Loads the module named by the build; same-origin, so a strict policy needs only this script's nonce.
fn island_script(shell: &Shell) -> impl IntoView + use<> {
    let version = if shell.build.is_empty() { String::new() } else { format!("?v={}", shell.build) };
    let script = include_str!("../assets/js/islands.js")
        .replace("PREVIEW_SCRIPT", &format!("/pkg/preview.js{version}"))
        .replace("PREVIEW_WASM", &format!("/pkg/preview_bg.wasm{version}"))
        .replace("SCRIPT", &format!("/pkg/ringlab.js{version}"))
        .replace("WASM", &format!("/pkg/ringlab_bg.wasm{version}"));
    view! { <script type="module" nonce=shell.nonce.clone() inner_html=script></script> }
}

/// `/zh/course/…`: `path` begins with a slash.
pub(crate) fn address(lang: Lang, path: &str) -> String {
    format!("/{}{path}", lang.code())
}
