//! The console: static files of a web page that uses the public routes. Their source is in `clients/console`; `cargo
//! xtask console --check` verifies that they are built from it. The page needs no credentials and contains no data;
//! its policy restricts it to this server and its own code.

use crate::Context;
use crate::status::{answer, json_response};
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::header::{ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bowshot_api::{Credentials, Error};
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Content security policy.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Name, type and content of each file.
const FILES: &[(&str, &str, &[u8])] = &[
    ("index.html", "text/html; charset=utf-8", include_bytes!("../../../clients/console/dist/index.html")),
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../clients/console/dist/console.js"),
    ),
    ("console.css", "text/css; charset=utf-8", include_bytes!("../../../clients/console/dist/console.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../../../clients/console/dist/icon.svg")),
    ("NOTICE", "text/plain; charset=utf-8", include_bytes!("../../../clients/console/dist/NOTICE")),
];

/// Answers `GET /console`.
pub(crate) async fn page(headers: HeaderMap) -> Response {
    serve_file("index.html", &headers)
}

/// Answers `GET /console/access`: whether the server takes callers without credentials, so that the page asks for some before
/// it is refused.
pub(crate) async fn access(State(context): State<Context>) -> Response {
    let anonymous = context.server.authenticate(&Credentials::Anonymous).await.is_ok();
    json_response(StatusCode::OK, &json!({ "anonymous": anonymous }))
}

/// Answers `GET /console/{name}`.
pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve_file(&name, &headers)
}

fn serve_file(name: &str, headers: &HeaderMap) -> Response {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let Some((_, media, content)) = found else {
        return answer(
            Error::not_found("the file does not exist in the console").with_hint("`/console` is its page"),
        );
    };
    let tag = tag(content);
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { (*content).into_response() };
    let answered = response.headers_mut();
    answered.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    answered.insert(CONTENT_SECURITY_POLICY, POLICY);
    answered.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answered.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    answered.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // Asked for again each time, so that a new server never gets an old page.
    answered.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        answered.insert(ETAG, tag);
    }
    response
}

fn tag(content: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}
