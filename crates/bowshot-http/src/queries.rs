//! Progress and cancellation of running queries by id. A query is found here from its first rows until its last one
//! is read; before that, `system.queries` shows it.

use crate::caller::Caller;
use crate::status::{Failure, Result, json_response};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use bowshot_api::{CancelOutcome, Error, ErrorKind, QueryId};
use serde_json::json;
use std::time::Duration;

pub(crate) fn read(id: &str) -> Result<QueryId> {
    QueryId::parse(id).ok_or_else(|| {
        Error::invalid("invalid query id")
            .with_hint("query ids are in the header `x-bowshot-query-id`")
            .into()
    })
}

/// Answers `GET /v1/queries/{id}`.
pub(crate) async fn progress(caller: Caller, Path(id): Path<String>) -> Result<Response> {
    let query = read(&id)?;
    let server = &caller.context.server;
    let body = match server.progress(&caller.principal, query, None, Duration::ZERO).await {
        Ok(progress) => {
            let state = match (&progress.failed, progress.done) {
                (Some(_), _) => "failed",
                (None, true) => "finished",
                (None, false) => "running",
            };
            let failed = progress.failed.map(|error| Failure::from(error).with_query(query).object());
            json!({
                "query_id": query.to_string(),
                "state": state,
                "fraction": progress.fraction,
                "rows": progress.answer.rows,
                "error": failed.and_then(|mut object| object.get_mut("error").map(serde_json::Value::take)),
            })
        }
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            json!({ "query_id": query.to_string(), "state": "cancelled", "fraction": null, "rows": null, "error": null })
        }
        Err(error) => return Err(error.into()),
    };
    Ok(json_response(StatusCode::OK, &body))
}

/// Answers `DELETE /v1/queries/{id}`.
pub(crate) async fn cancel(caller: Caller, Path(id): Path<String>) -> Result<Response> {
    let query = read(&id)?;
    let state = match caller.context.server.cancel(&caller.principal, query).await? {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::NotCancellable => "finished",
    };
    Ok(json_response(StatusCode::OK, &json!({ "query_id": query.to_string(), "state": state })))
}
