//! The span of a request, for traces: those of SQL alone, since health and metrics are asked for all the time.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bowshot_api::{TRACEPARENT, call_span};
use tracing::Instrument;

/// What may be traced: names of spans, without those of tables and without ids.
const TRACED: [&str; 4] = ["/v1/sql", "/v1/sessions", "/v1/queries", "/v1/tables"];

/// Answers within the span.
pub(crate) async fn traced(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_of =
        |name: &&&str| path.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(name) = TRACED.iter().find(is_of) else { return next.run(request).await };
    let parent = request.headers().get(TRACEPARENT).and_then(|name| name.to_str().ok());
    let span = call_span("http", name, parent);
    next.run(request).instrument(span).await
}
