//! How errors look in HTTP: one status for each kind, and one JSON shape for all.
//!
//! A client sees message and hint. Of an internal error it sees a reference only; the chain of causes is in the log under the
//! same reference.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bowshot_api::{Error, ErrorKind, QueryId};
use serde_json::{Value, json};

/// What a client may show to say who it is.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"bowshot\", charset=\"UTF-8\", Bearer realm=\"bowshot\"");

/// The status that answers an error of this kind. What the caller has to change never has a status from 500 on.
pub fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Syntax | ErrorKind::Invalid | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Denied => StatusCode::FORBIDDEN,
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

/// Shorthand for request handlers.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a request was not answered as its client wished.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Error,
    status: StatusCode,
    query: Option<QueryId>,
    position: Option<usize>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: status(error.kind()), error, query: None, position: None }
    }
}

impl Failure {
    /// An error whose status belongs to HTTP itself and to no kind.
    pub(crate) fn with_status(error: Error, status: StatusCode) -> Self {
        Self { status, ..Self::from(error) }
    }

    /// Names the query that failed.
    pub(crate) fn of_query(self, query: QueryId) -> Self {
        Self { query: Some(query), ..self }
    }

    /// Says where in the client's text the statement begins, so that the place of an error can be told.
    pub(crate) fn placed(self, statement: &str, characters_before: usize) -> Self {
        let position = place(self.error.message(), statement).map(|at| at + characters_before);
        Self { position, ..self }
    }

    /// The object that tells the error.
    pub(crate) fn object(&self) -> Value {
        let message = match self.error.kind() {
            ErrorKind::Internal => {
                let reference = self.query.unwrap_or_else(QueryId::random);
                tracing::error!(%reference, error = %chain(&self.error), "internal error");
                format!("internal error (reference {reference})")
            }
            ErrorKind::Corrupt => {
                tracing::error!(error = %chain(&self.error), "stored data cannot be read");
                self.error.message().to_owned()
            }
            _ => self.error.message().to_owned(),
        };
        let mut object =
            json!({ "kind": name(self.error.kind()), "message": message, "hint": self.error.hint() });
        if let Some(position) = self.position {
            object["position"] = json!(position);
        }
        if let Some(query) = self.query {
            object["query_id"] = json!(query.to_string());
        }
        json!({ "error": object })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = format!("{}\n", self.object());
        let mut response = (self.status, [(CONTENT_TYPE, "application/json")], body).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        response
    }
}

/// An error as the answer to a request.
pub(crate) fn answer(error: Error) -> Response {
    Failure::from(error).into_response()
}

/// A value as the answer to a request.
pub(crate) fn good(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

/// An error with all its causes, for the log.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The place that `… at line 2, column 8` names, in characters from 1 on.
fn place(message: &str, statement: &str) -> Option<usize> {
    let (_, place) = message.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(", column ")?;
    let line: usize = line.parse().ok()?;
    let digits = column.split(|c: char| !c.is_ascii_digit()).next()?;
    let column: usize = digits.parse().ok()?;
    let before: usize =
        statement.split('\n').take(line.checked_sub(1)?).map(|line| line.chars().count() + 1).sum();
    let at = before.checked_add(column)?;
    (at <= statement.chars().count() + 1).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_over_lines() {
        assert_eq!(place("syntax error: x at line 1, column 8", "SELECT FROM"), Some(8));
        assert_eq!(place("syntax error: x at line 2, column 3", "ä\nab c"), Some(5));
        assert_eq!(place("syntax error: x at line 9, column 3", "a"), None);
        assert_eq!(place("syntax error: x", "a"), None);
        assert_eq!(place("x at line 0, column 3", "a"), None);
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let object = Failure::from(Error::internal("slot 7 is empty")).object();
        let message = object["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("internal error (reference "), "{message}");
    }
}
