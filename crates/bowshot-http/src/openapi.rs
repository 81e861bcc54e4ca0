//! The OpenAPI 3.1 description of all routes. It is public.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// The description, written by hand.
pub(crate) const TEXT: &str = include_str!("openapi.json");

/// Answers `GET /v1/openapi.json`.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], TEXT).into_response()
}
