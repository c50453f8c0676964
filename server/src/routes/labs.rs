//! `POST /api/v1/labs/{id}/verify`: is this plan right, before a run is spent on it?

use axum::extract::State;
use ringlab_labs::api::{VerifyReport, VerifyRequest};

use crate::accounts::Visitor;
use crate::app::App;
use crate::extract::{Json, Name};
use crate::limits::Action;
use crate::problem::{ApiResult, Problem};

pub async fn verify(
    State(app): State<App>,
    visitor: Visitor,
    Name(id): Name,
    Json(request): Json<VerifyRequest>,
) -> ApiResult<axum::Json<VerifyReport>> {
    let lab = app.lab(&id).cloned().ok_or_else(Problem::not_found)?;
    app.limiter.check(Action::VerifyPlan, &visitor.address)?;
    let report =
        app.compute(move || ringlab_labs::verify(&lab, &request)).await?.map_err(Problem::invalid)?;
    Ok(axum::Json(report))
}
