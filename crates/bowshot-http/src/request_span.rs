//! The trace span of a request. Only SQL routes have one; health checks and metrics are too frequent.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bowshot_api::{TRACEPARENT, call_span};
use tracing::Instrument;

/// Traced routes: span names contain no table names or ids.
const TRACED: [&str; 5] = ["/v1/sql", "/v1/sessions", "/v1/queries", "/v1/tables", crate::MCP_PATH];

pub(crate) async fn with_request_span(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_of =
        |name: &&&str| path.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(name) = TRACED.iter().find(is_of) else { return next.run(request).await };
    let parent = request.headers().get(TRACEPARENT).and_then(|name| name.to_str().ok());
    let span = call_span("http", name, parent);
    next.run(request).instrument(span).await
}
