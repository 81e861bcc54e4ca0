//! Restricts which web pages may use the server. Browsers send requests of any page to any address, so requests with
//! an `Origin` are refused unless the operator lists it. Without authentication, requests must name this machine in
//! `Host`, which prevents DNS rebinding. The console is served from the same origin.

use crate::status::Failure;
use crate::{Context, MCP_PATH, grpc_web};
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
/// Request headers of SQL, MCP and gRPC-Web clients, and those that select a database in Flight SQL.
const HEADERS: &str = "authorization, content-type, accept, x-bowshot-session, mcp-protocol-version, x-grpc-web, \
                       x-user-agent, grpc-timeout, database, catalog, schema, tenant, pool";
/// Prefix of headers that set Flight SQL options.
const OPTION_PREFIX: &str = "bowshot-";
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-bowshot-query-id, x-bowshot-rows-affected, x-bowshot-session, grpc-status, grpc-message, grpc-status-details-bin",
);
/// Cache time of a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Refuses requests of unlisted origins, and answers preflights of listed ones (Fetch Standard, "CORS protocol").
pub(crate) async fn check_origin(State(context): State<Context>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(ORIGIN).cloned() else { return next.run(request).await };
    let is_listed = context.choices.origins.iter().any(|listed| listed.as_bytes() == origin.as_bytes());
    let path = request.uri().path();
    let is_sql = path.starts_with("/v1/") || path == MCP_PATH || path.starts_with(grpc_web::PREFIX);
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

/// Allowed request headers: the known ones, and requested option headers.
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

/// Whether a request comes from the console of this server. With DNS rebinding a page's host name can resolve to this
/// server, so a host name that is not local counts only with credentials, which such a page does not have.
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

/// Refuses unauthenticated local callers that used the name of another machine.
pub(crate) fn check_host(headers: &HeaderMap) -> Result<()> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_local(host) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Denied, "a server without users answers this machine under its own names only")
        .with_hint("use `localhost` or the address in the URL; a proxy sets the header `host` so"))
}

/// Refuses requests that a browser authenticates with its user's certificate on behalf of another site. Browsers send
/// the certificate unasked, and the origin only in some requests.
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

/// Whether a `Host` is an address or a loopback name (RFC 6761, section 6.3).
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
