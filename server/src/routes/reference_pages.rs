//! Glossary, environment variables, formulas, source map: what one looks up.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use ringlab_labs::text::Lang;
use ringlab_web::page::{Page, ReferencePage, TermCard};

use super::pages::{Place, page};
use crate::app::App;

pub fn add(router: Router<App>, lang: Lang) -> Router<App> {
    let at = |path: &str| format!("/{}/reference{path}", lang.code());
    router
        .route(&at(""), get(front))
        .route(&at("/glossary"), get(glossary))
        .route(&at("/environment"), get(environment))
        .route(&at("/formulas"), get(formulas))
        .route(&at("/source-map"), get(source_map))
}

async fn front(State(app): State<App>, place: Place) -> Response {
    let reference = app.site.library.reference(place.lang());
    let shown = ReferencePage::Front {
        terms: app.site.library.terms().count(),
        variables: reference.environment.iter().map(|group| group.entries.len()).sum(),
        formulas: reference.formulas.iter().map(|group| group.entries.len()).sum(),
        places: reference.source_map.iter().map(|group| group.entries.len()).sum(),
    };
    respond(&app, place, shown)
}

async fn glossary(State(app): State<App>, place: Place) -> Response {
    let lang = place.lang();
    let card = |term: &ringlab_content::Term| TermCard {
        id: term.id.clone(),
        name: term.name(lang).to_owned(),
        other: term.name(lang.other()).to_owned(),
        definition: term.definition(lang).to_owned(),
        chapter: term.chapter,
    };
    let terms = app.site.library.terms().map(card).collect();
    respond(&app, place, ReferencePage::Glossary { terms })
}

async fn environment(State(app): State<App>, place: Place) -> Response {
    let groups = app.site.library.reference(place.lang()).environment.clone();
    respond(&app, place, ReferencePage::Environment { groups })
}

async fn formulas(State(app): State<App>, place: Place) -> Response {
    let groups = app.site.library.reference(place.lang()).formulas.clone();
    respond(&app, place, ReferencePage::Formulas { groups })
}

async fn source_map(State(app): State<App>, place: Place) -> Response {
    let groups = app.site.library.reference(place.lang()).source_map.clone();
    respond(&app, place, ReferencePage::SourceMap { groups })
}

fn respond(app: &App, place: Place, shown: ReferencePage) -> Response {
    let titles = app.site.library.titles().to_vec();
    page(
        app,
        place,
        StatusCode::OK,
        Page::Reference { shown, chapters: titles.iter().map(|t| (t.number, t.folder())).collect() },
    )
}
