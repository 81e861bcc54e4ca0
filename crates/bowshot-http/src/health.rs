//! Liveness and readiness, for supervisors and load balancers.

use crate::Context;
use crate::status::{answer, json_response};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bowshot_api::{Error, ErrorKind, Lifecycle};
use serde_json::json;

/// 200 as long as the process can answer at all; restart it when this fails.
pub(crate) async fn health(State(context): State<Context>) -> Response {
    let about = context.server.about();
    json_response(StatusCode::OK, &json!({ "status": "alive", "name": about.name, "version": about.version }))
}

/// 200 while queries are taken; send queries elsewhere when this fails.
pub(crate) async fn ready(State(context): State<Context>) -> Response {
    let error = match context.server.lifecycle() {
        Lifecycle::Ready => return json_response(StatusCode::OK, &json!({ "status": "ready" })),
        Lifecycle::Starting => {
            Error::new(ErrorKind::Unavailable, "the server is starting").with_hint("try again in a second")
        }
        Lifecycle::Draining => {
            Error::new(ErrorKind::Unavailable, "the server is draining and takes no new queries")
                .with_hint("send queries to another server")
        }
    };
    answer(error)
}
