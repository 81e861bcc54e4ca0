//! HTTP status and JSON body of errors. Clients see message and hint; of internal errors only a reference, under
//! which the log has the causes.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bowshot_api::{Error, ErrorKind, QueryId};
use serde_json::{Value, json};

/// Accepted authentication schemes.
const CHALLENGE: HeaderValue =
    HeaderValue::from_static("Basic realm=\"bowshot\", charset=\"UTF-8\", Bearer realm=\"bowshot\"");

/// The status of an error kind. Errors that the caller can fix are below 500.
fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Syntax | ErrorKind::Invalid | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::LimitReached => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        // Non-standard, but common for cancelled requests.
        ErrorKind::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::CONFLICT),
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Shorthand for request handlers.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a request was not answered as its client wished.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<Error>,
    status: StatusCode,
    query: Option<QueryId>,
    position: Option<usize>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: status(error.kind()), error: Box::new(error), query: None, position: None }
    }
}

impl Failure {
    /// An error whose status belongs to HTTP itself and to no kind.
    pub(crate) fn with_status(error: Error, status: StatusCode) -> Self {
        Self { status, ..Self::from(error) }
    }

    pub(crate) fn into_error(self) -> Error {
        *self.error
    }

    /// Names the query that failed.
    pub(crate) fn with_query(self, query: QueryId) -> Self {
        Self { query: Some(query), ..self }
    }

    /// Adds the offset of the statement in the request, so that positions refer to the request's text.
    pub(crate) fn placed(self, statement: &str, characters_before: usize) -> Self {
        let place = self.error.position().and_then(|place| place.within(statement));
        let position = place.map(|at| at + characters_before);
        Self { position, ..self }
    }

    pub(crate) fn object(&self) -> Value {
        let message = match self.error.kind() {
            ErrorKind::Internal => {
                let reference = self.query.unwrap_or_else(QueryId::random);
                tracing::error!(%reference, error = %self.error.chain(), "internal error");
                format!("internal error (reference {reference})")
            }
            ErrorKind::Corrupt => {
                tracing::error!(error = %self.error.chain(), "stored data cannot be read");
                self.error.message().to_owned()
            }
            _ => self.error.message().to_owned(),
        };
        let mut object = json!({
            "kind": self.error.kind().name(),
            "sqlstate": self.error.sqlstate(),
            "message": message,
            "hint": self.error.hint(),
        });
        if let Some(reason) = self.error.reason() {
            object["reason"] = json!(reason.name());
        }
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

pub(crate) fn answer(error: Error) -> Response {
    Failure::from(error).into_response()
}

/// A value as the answer to a request.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_status() {
        let statuses: Vec<u16> = ErrorKind::ALL.iter().map(|kind| status(*kind).as_u16()).collect();
        assert_eq!(statuses, [400, 400, 404, 409, 401, 403, 400, 409, 429, 504, 499, 503, 500, 500]);
    }

    #[test]
    fn internal_errors_keep_their_internals() {
        let object = Failure::from(Error::internal("slot 7 is empty")).object();
        let message = object["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("internal error (reference "), "{message}");
    }
}
