//! How the kinds of errors look in HTTP: one status each, and one JSON shape for all.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bowshot_api::{Error, ErrorKind};
use serde_json::json;

/// The status that answers an error of this kind.
pub fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Syntax | ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::LimitReached => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        // What several servers answer when the request was given up; no standard status says it.
        ErrorKind::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::CONFLICT),
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The name of the kind in JSON.
fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Syntax => "syntax",
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not_found",
        ErrorKind::AlreadyExists => "already_exists",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::Denied => "denied",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Conflict => "conflict",
        ErrorKind::LimitReached => "limit_reached",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Internal => "internal",
    }
}

/// An error as the answer to a request.
pub(crate) fn answer(error: &Error) -> Response {
    answer_with(status(error.kind()), error)
}

/// As [`answer`], for the statuses that belong to HTTP itself and to no kind.
pub(crate) fn answer_with(status: StatusCode, error: &Error) -> Response {
    let body = json!({
        "error": { "kind": name(error.kind()), "message": error.message(), "hint": error.hint() }
    });
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
