//! Pages of accounts and interview sessions. The handlers only check the address: what these pages show is the visitor's own, changes by
//! the second, and comes from the API, which also decides who may see it.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use ringlab_labs::text::Lang;
use ringlab_web::page::{InterviewPage, Page};

use super::pages::{Place, page};
use crate::app::App;
use crate::extract::{JobId, Name};
use crate::problem::{ApiResult, Problem};

pub fn add(mut router: Router<App>, lang: Lang) -> Router<App> {
    let fixed = [
        ("interview", InterviewPage::Front),
        ("sign-in", InterviewPage::Account),
        ("practice", InterviewPage::Practice),
        ("assessments", InterviewPage::Assessments),
        ("review", InterviewPage::Review),
    ];
    let code = lang.code();
    for (path, shown) in fixed {
        let handler = async move |State(app): State<App>, place: Place| respond(&app, place, shown);
        router = router.route(&format!("/{code}/{path}"), get(handler));
    }
    router
        .route(&format!("/{code}/practice/{{name}}"), get(practice))
        .route(&format!("/{code}/invitations/{{name}}"), get(invitation))
        .route(&format!("/{code}/sittings/{{id}}"), get(sitting))
        .route(&format!("/{code}/sittings/{{id}}/report"), get(report))
        .route(&format!("/{code}/review/sittings/{{id}}"), get(review))
}

fn respond(app: &App, place: Place, shown: InterviewPage) -> Response {
    page(app, place, StatusCode::OK, Page::Interview(shown))
}

async fn practice(State(app): State<App>, place: Place, Name(number): Name) -> ApiResult<Response> {
    let number = number.parse().map_err(|_| Problem::not_found())?;
    let texts = app.site.questions.texts(number).ok_or_else(Problem::not_found)?;
    let shown =
        InterviewPage::PracticeQuestion { question: texts.card.clone(), prompt: texts.prompt.clone() };
    Ok(respond(&app, place, shown))
}

async fn invitation(State(app): State<App>, place: Place, Name(code): Name) -> Response {
    respond(&app, place, InterviewPage::Invitation { code })
}

async fn sitting(State(app): State<App>, place: Place, JobId(id): JobId) -> Response {
    respond(&app, place, InterviewPage::Sitting { id })
}

async fn report(State(app): State<App>, place: Place, JobId(id): JobId) -> Response {
    respond(&app, place, InterviewPage::Report { id })
}

async fn review(State(app): State<App>, place: Place, JobId(id): JobId) -> Response {
    respond(&app, place, InterviewPage::ReviewSitting { id })
}
