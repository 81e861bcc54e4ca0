//! Which web pages may use the server. A browser sends requests of any page to any address that it reaches, this machine's own
//! too, and a server without users would do what they say. So a request that names a page's origin is refused unless the
//! operator has listed it, and what is only open to this machine is asked for under a name of this machine, which a page cannot
//! make its own by changing what its name resolves to. The server's own page, the console, comes from where it asks.

use crate::status::Failure;
use crate::{Context, grpc_web};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION,
    HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bowshot_api::{Error, ErrorKind, Result};
use std::net::IpAddr;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
/// What pages send: for SQL, and for gRPC-Web, whose clients name themselves and their deadline, and the headers that choose a
/// database in Flight SQL.
const HEADERS: &str = "authorization, content-type, accept, x-bowshot-session, x-grpc-web, x-user-agent, grpc-timeout, \
                       database, catalog, schema, tenant, pool";
/// Begins the headers that set options in calls of Flight SQL.
const OPTION_PREFIX: &str = "bowshot-";
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-bowshot-query-id, x-bowshot-rows-affected, x-bowshot-session, grpc-status, grpc-message, grpc-status-details-bin",
);
/// How long a browser may believe the answer to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Refuses what other pages ask for, and tells browsers that the listed ones may (Fetch Standard, "CORS protocol").
pub(crate) async fn origins(State(context): State<Context>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(ORIGIN).cloned() else { return next.run(request).await };
    let is_listed = context.choices.origins.iter().any(|listed| listed.as_bytes() == origin.as_bytes());
    let path = request.uri().path();
    let is_sql = path.starts_with("/v1/") || path.starts_with(grpc_web::PREFIX);
    if !is_listed {
        let is_ours = is_own_page(&origin, request.headers());
        return if is_sql && !is_ours { refused().into_response() } else { next.run(request).await };
    }
    let is_preflight = request.method() == Method::OPTIONS;
    let allowed = allowed_headers(request.headers());
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    if is_preflight {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    } else {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    response
}

/// The headers that a page may send: those that are known, and the options among those that the browser asks for.
fn allowed_headers(asked: &HeaderMap) -> HeaderValue {
    let asked = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
    let options = asked.unwrap_or_default().split(',').map(str::trim).filter(|name| is_option(name));
    let all: Vec<&str> = std::iter::once(HEADERS).chain(options).collect();
    HeaderValue::try_from(all.join(", ")).unwrap_or(HeaderValue::from_static(HEADERS))
}

fn is_option(name: &str) -> bool {
    let option = name.strip_prefix(OPTION_PREFIX).unwrap_or_default();
    !option.is_empty() && option.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Whether a request comes from a page of this server itself, which is the console. A page can make the name that it came from
/// resolve to this server, so a name that may be anybody's counts only with credentials, which such a page does not have.
fn is_own_page(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let text = |value: &HeaderValue| value.to_str().map(str::to_ascii_lowercase).ok();
    let (Some(origin), Some(host)) = (text(origin), headers.get(HOST).and_then(text)) else { return false };
    let place = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    place == Some(host.as_str()) && (headers.contains_key(AUTHORIZATION) || is_local(&host))
}

fn refused() -> Failure {
    Error::new(ErrorKind::Denied, "web pages of this origin may not use the server")
        .with_hint("the operator lists the origins that may in `http_origins`")
        .into()
}

/// Refuses a caller without a name on this machine that reached the server under a name of another one.
pub(crate) fn check_host(headers: &HeaderMap) -> Result<()> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_local(host) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Denied, "a server without users answers this machine under its own names only")
        .with_hint("use `localhost` or the address in the URL; a proxy sets the header `host` so"))
}

/// Refuses what a browser asks for by the certificate of its user on behalf of another site's page. It shows the certificate to
/// everybody who asks for it, unasked, and names the origin of the page only in some requests.
pub(crate) fn check_page(headers: &HeaderMap, listed: &[String]) -> Result<()> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let is_listed = origin.is_some_and(|origin| listed.iter().any(|listed| listed.as_bytes() == origin));
    match site {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) if is_listed => Ok(()),
        Some(_) => {
            Err(Error::new(ErrorKind::Denied, "web pages of other sites may not use a client certificate")
                .with_hint("the operator lists the origins that may in `http_origins`"))
        }
    }
}

/// Whether a `Host` is an address, or a name that always means this machine (RFC 6761, section 6.3).
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn names_of_this_machine() {
        for (host, expected) in [
            ("localhost", true),
            ("LocalHost:8080", true),
            ("a.localhost.:1", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("10.0.0.7", true),
            ("example.org:8080", false),
            ("localhost.example.org", false),
            ("127.0.0.1.example.org", false),
            ("", false),
        ] {
            assert_eq!(is_local(host), expected, "{host}");
        }
    }
}
