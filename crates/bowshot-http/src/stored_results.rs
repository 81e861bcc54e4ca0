//! Stored results: `POST /v1/queries` starts a statement and returns at once; its rows can be read in any ranges
//! until the result was unused for `limits.result_timeout`.

use crate::caller::Caller;
use crate::media_type::ResponseFormat;
use crate::output;
use crate::queries::read;
use crate::response::{self, Outcome, RowRange};
use crate::session_scope::SessionScope;
use crate::sql::{invalid_query_string, run_script};
use crate::sql_request::{SessionOptions, SqlRequest};
use crate::status::{Failure, Result, json_response};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bowshot_api::Delivery;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowsQuery {
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
    let SqlRequest { sql, parameters, options } = SqlRequest::read(request, context.server.limits()).await?;
    let scope = SessionScope::enter_for(caller, &headers, options, &sql).await?;
    let body = match run_script(&scope, &sql, parameters, Delivery::Spool).await? {
        Outcome::Rows(answer) => json!({
            "query_id": answer.query.to_string(),
            "columns": output::columns(&answer.layout.schema(&answer.schema)),
            "rows_affected": null,
        }),
        Outcome::Effect { query, affected, .. } => json!({
            "query_id": query.map(|query| query.to_string()),
            "columns": null,
            "rows_affected": affected,
        }),
    };
    Ok(json_response(StatusCode::ACCEPTED, &body))
}

/// Answers `GET /v1/queries/{id}/rows`. Waits for rows that are not there yet.
pub(crate) async fn rows(
    caller: Caller,
    Path(id): Path<String>,
    which: std::result::Result<Query<RowsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response> {
    let Query(RowsQuery { offset, limit, format }) = which.map_err(|error| invalid_query_string(&error))?;
    let format = ResponseFormat::read(&headers, format.as_deref())?;
    let query = read(&id)?;
    let scope = SessionScope::enter(caller, &headers, SessionOptions::new()).await?;
    let progress = scope.server.progress(scope.session.principal(), query, None, Duration::ZERO).await?;
    if let Some(error) = progress.failed {
        return Err(Failure::from(error).with_query(query));
    }
    let range = RowRange::new(offset.unwrap_or(0), limit);
    response::respond(scope, Outcome::Rows(Box::new(progress.answer)), format, range).await
}
