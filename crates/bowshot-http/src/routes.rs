//! The routes.

use crate::cors::check_origin;
use crate::health::{health, ready};
use crate::metrics_endpoint::metrics;
use crate::openapi::openapi;
use crate::request_span::with_request_span;
use crate::status::{Failure, answer};
use crate::{
    Context, MCP_PATH, console, grpc_web, ingest, mcp, queries, session_scope, sql, stored_results, tables,
};
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, delete, get, post};
use bowshot_api::Error;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Context>)> {
    vec![
        ("/", get(index)),
        ("/health", get(health)),
        ("/ready", get(ready)),
        ("/metrics", get(metrics)),
        ("/console", get(console::page)),
        ("/console/access", get(console::access)),
        ("/console/{name}", get(console::file)),
        ("/v1/openapi.json", get(openapi)),
        ("/v1/sql", post(sql::run)),
        ("/v1/sessions", post(session_scope::open)),
        ("/v1/sessions/{token}", delete(session_scope::close)),
        ("/v1/queries", post(stored_results::start)),
        ("/v1/queries/{id}", get(queries::progress).delete(queries::cancel)),
        ("/v1/queries/{id}/rows", get(stored_results::rows)),
        ("/v1/tables", get(tables::list)),
        ("/v1/tables/{name}", get(tables::describe).put(ingest::replace).post(ingest::append)),
        ("/v1/tables/{name}/rows", get(tables::rows)),
    ]
}

pub(crate) fn router(context: Context) -> Router {
    let mut router = Router::new();
    for (path, answered) in routes() {
        router = router.route(path, answered);
    }
    router
        // Not in the description: these have protocols of their own.
        .route(MCP_PATH, post(mcp::answer))
        .route(grpc_web::PATH, post(grpc_web::call))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(with_request_span))
        .layer(from_fn_with_state(context.clone(), check_origin))
        .with_state(context)
}

/// The list of paths; browsers are redirected to the console.
async fn index(State(context): State<Context>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    if accepted.contains("text/html") {
        return ([(VARY, "accept")], Redirect::to("/console")).into_response();
    }
    let about = context.server.about();
    let text = format!(
        "{} {}\n\n/health   200 while the process lives\n/ready    200 while queries are taken\n\
         /metrics  counters and gauges for Prometheus\n/v1/sql   POST a statement, and get its rows\n\
         /console  a page to look around, for browsers\n\
         /v1/openapi.json  all that is under /v1\n",
        about.name, about.version
    );
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

pub(crate) async fn unknown_path(uri: Uri) -> Response {
    let shown: String = uri.path().chars().take(200).collect();
    answer(
        Error::not_found(format!("no route for `{shown}`")).with_hint("`/` lists the paths that are served"),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Failure {
    let shown: String = uri.path().chars().take(200).collect();
    let error = Error::unsupported(format!("`{method}` is not supported for `{shown}`"));
    let path = uri.path();
    let error = if path.starts_with("/v1/") || path == MCP_PATH || path.starts_with(grpc_web::PREFIX) {
        error.with_hint("the header `allow` has the methods that are")
    } else {
        error.with_hint("use GET")
    };
    Failure::with_status(error, StatusCode::METHOD_NOT_ALLOWED)
}
