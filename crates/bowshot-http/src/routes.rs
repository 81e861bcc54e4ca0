//! Which path answers what.

use crate::health::{health, ready};
use crate::metrics::metrics;
use crate::{Context, status};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bowshot_api::Error;

pub(crate) fn router(context: Context) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(context)
}

async fn index(State(context): State<Context>) -> Response {
    let about = context.server.about();
    let text = format!(
        "{} {}\n\n/health   200 while the process lives\n/ready    200 while queries are taken\n\
         /metrics  counters and gauges for Prometheus\n\nQueries go to the Arrow Flight SQL address of this server.\n",
        about.name, about.version
    );
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

async fn unknown_path(uri: Uri) -> Response {
    let shown: String = uri.path().chars().take(200).collect();
    status::answer(
        &Error::not_found(format!("nothing is served at `{shown}`"))
            .with_hint("`/` lists the paths that are served"),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    status::answer_with(
        StatusCode::METHOD_NOT_ALLOWED,
        &Error::unsupported(format!("`{method}` is not answered at `{}`", uri.path())).with_hint("use GET"),
    )
}
