//! `GET /api/v1/questions`: the questions that are written.

use axum::extract::State;
use ringlab_interview::api::QuestionCard;

use crate::app::App;

pub async fn list(State(app): State<App>) -> axum::Json<Vec<QuestionCard>> {
    axum::Json(app.site.questions.cards().cloned().collect())
}
