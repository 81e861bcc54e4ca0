//! Results that are kept: `POST /v1/queries` starts a statement and answers at once, and its rows can be read in any part, as
//! often as wanted, until the result has been left alone for `limits.result_timeout`. So a client scrolls through a result of
//! any length and is sent only what it shows.

use crate::answer::{self, Answered, Section};
use crate::caller::Caller;
use crate::form::Wish;
use crate::order::{Options, Order};
use crate::output;
use crate::queries::read;
use crate::rooms::Room;
use crate::sql::{text, unread};
use crate::status::{Failure, Result, good};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::Delivery;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Which rows of a result to give, and in which form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    offset: Option<u64>,
    limit: Option<u64>,
    format: Option<String>,
}

/// Answers `POST /v1/queries`.
pub(crate) async fn start(
    State(context): State<crate::Context>,
    caller: Caller,
    request: Request,
) -> Result<Response> {
    let headers = request.headers().clone();
    let Order { sql, parameters, options } = Order::read(request, context.server.limits()).await?;
    let room = Room::enter_for(caller, &headers, options, &sql).await?;
    let told = match text(&room, &sql, parameters, Delivery::Spool).await? {
        Answered::Rows(answer) => json!({
            "query_id": answer.query.to_string(),
            "columns": output::columns(&answer.layout.schema(&answer.schema)),
            "rows_affected": null,
        }),
        Answered::Effect { query, affected, .. } => json!({
            "query_id": query.map(|query| query.to_string()),
            "columns": null,
            "rows_affected": affected,
        }),
    };
    Ok(good(StatusCode::ACCEPTED, &told))
}

/// Answers `GET /v1/queries/{id}/rows`. What is not there yet is waited for.
pub(crate) async fn rows(
    caller: Caller,
    Path(id): Path<String>,
    which: std::result::Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(Which { offset, limit, format }) = which.map_err(|error| unread(&error))?;
    let wish = Wish::read(&headers, format.as_deref())?;
    let query = read(&id)?;
    let room = Room::enter(caller, &headers, Options::new()).await?;
    let progress = room.server.progress(room.session.principal(), query, None, Duration::ZERO).await?;
    if let Some(error) = progress.failed {
        return Err(Failure::from(error).of_query(query));
    }
    let section = Section::new(offset.unwrap_or(0), limit);
    answer::respond(room, Answered::Rows(Box::new(progress.answer)), wish, section).await
}
