//! The span of a request, for traces: those of SQL alone, since health and metrics are asked for all the time.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use bowshot_api::{TRACEPARENT, call_span};
use tracing::Instrument;

/// Answers within the span; its name is the path as it is routed, without names and ids.
pub(crate) async fn traced(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if !path.starts_with("/v1/") {
        return next.run(request).await;
    }
    let parent = request.headers().get(TRACEPARENT).and_then(|name| name.to_str().ok());
    let span = call_span("http", path, parent);
    next.run(request).instrument(span).await
}
