//! Whoever wants more than they may, and web pages.

use super::{Running, choices};
use crate::Choices;
use crate::openapi;
use crate::routes::routes;
use bowshot_api::Limits;
use serde_json::Value;
use std::collections::BTreeSet;

const SQL: (&str, &str) = ("content-type", "text/plain");

#[tokio::test]
async fn credentials_are_wanted_where_there_are_users() {
    let running = Running::open(Limits::default(), true, choices()).await;
    for (headers, expected) in [
        (vec![SQL], 401),
        (vec![SQL, ("authorization", "Basic YWRhOnB3")], 200),
        (vec![SQL, ("authorization", "Bearer token")], 200),
        (vec![SQL, ("authorization", "Bearer other")], 401),
        (vec![SQL, ("authorization", "Basic ?")], 401),
    ] {
        let reply = running.ask("POST", "/v1/sql", &headers, b"rows 1").await;
        assert_eq!(reply.status, expected, "{headers:?}");
        let challenge = reply.header("www-authenticate");
        assert_eq!(challenge.is_some_and(|text| text.starts_with("Basic ")), expected == 401);
    }
    // No body is read for a stranger.
    let huge = [SQL, ("content-length", "4000000")];
    assert_eq!(running.ask("POST", "/v1/sql", &huge, b"").await.status, 401);
    for path in ["/v1/tables", "/v1/tables/t", "/v1/tables/t/rows", "/v1/queries/x", "/v1/queries/x/rows"] {
        assert_eq!(running.ask("GET", path, &[], b"").await.status, 401, "{path}");
    }
    for path in ["/health", "/ready", "/metrics", "/", "/console", "/console/console.js", "/v1/openapi.json"]
    {
        assert_eq!(running.ask("GET", path, &[], b"").await.status, 200, "{path}");
    }
    running.stop().await;
}

#[tokio::test]
async fn web_pages_may_not_unless_they_are_listed() {
    let listed = Choices { origins: vec!["https://good.example".to_owned()], ..choices() };
    let running = Running::open(Limits::default(), false, listed).await;
    for origin in ["https://evil.example", "null", "http://good.example", "https://good.example.evil"] {
        let reply = running.ask("POST", "/v1/sql", &[SQL, ("origin", origin)], b"insert").await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{origin}");
        assert_eq!(running.ask("OPTIONS", "/v1/sql", &[("origin", origin)], b"").await.status, 403);
    }
    assert!(running.server.effects().is_empty());
    // Its own page may, unless it came from a name that may be anybody's.
    for (host, origin, expected) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", 200),
        ("localhost:8080", "https://LocalHost:8080", 200),
        ("127.0.0.1:8080", "http://127.0.0.1:8081", 403),
        ("127.0.0.1:8080", "ftp://127.0.0.1:8080", 403),
        ("evil.example", "http://evil.example", 403),
    ] {
        let headers = [SQL, ("host", host), ("origin", origin)];
        assert_eq!(running.ask("POST", "/v1/sql", &headers, b"rows 1").await.status, expected, "{origin}");
    }
    let good = ("origin", "https://good.example");
    let reply =
        running.ask("OPTIONS", "/v1/sql", &[good, ("access-control-request-method", "POST")], b"").await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (204, Some("https://good.example"))
    );
    let reply = running.ask("POST", "/v1/sql", &[SQL, good], b"rows 1").await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, Some("https://good.example"))
    );
    assert_eq!(running.ask("GET", "/health", &[("origin", "https://evil.example")], b"").await.status, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_does_not_open_it() {
    let running = Running::start().await;
    for (host, expected) in [("localhost:1", 200), ("127.0.0.1", 200), ("evil.example", 403), ("", 403)] {
        let reply = running.ask("POST", "/v1/sql", &[SQL, ("host", host)], b"rows 1").await;
        assert_eq!(reply.status, expected, "{host}");
    }
    running.stop().await;
    let running = Running::open(Limits::default(), true, choices()).await;
    let headers = [SQL, ("host", "db.example"), ("authorization", "Bearer token")];
    assert_eq!(running.ask("POST", "/v1/sql", &headers, b"rows 1").await.status, 200);
    let own = [headers.as_slice(), &[("origin", "https://db.example")]].concat();
    assert_eq!(running.ask("POST", "/v1/sql", &own, b"rows 1").await.status, 200);
    let stranger = [SQL, ("host", "db.example"), ("origin", "https://db.example")];
    assert_eq!(running.ask("POST", "/v1/sql", &stranger, b"rows 1").await.status, 403);
    running.stop().await;
}

#[tokio::test]
async fn requests_at_once_have_a_limit() {
    let limits = Limits { max_connections_per_address: 1, ..Limits::default() };
    let running = Running::open(limits, false, choices()).await;
    let waiting = super::send(running.address, &super::request("POST", "/v1/sql", &[SQL], b"wait")).await;
    running.server.until(|counts| counts.streams == 1).await;
    assert_eq!(running.sql("rows 1", "*/*").await.error(), "429 limit_reached: too many requests at once");
    assert_eq!(running.ask("GET", "/health", &[], b"").await.status, 200);
    drop(waiting);
    running.server.until(|counts| counts.sessions == 0).await;
    while running.sql("rows 1", "*/*").await.status != 200 {}
    running.stop().await;
}

/// Paths with their methods, as the description has them.
fn described() -> BTreeSet<(String, String)> {
    let described: Value = serde_json::from_str(openapi::TEXT).expect("JSON");
    let paths = described["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").keys();
            let methods = methods.filter(|method| method.as_str() != "parameters");
            methods.map(|method| (path.clone(), method.to_ascii_uppercase())).collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn the_description_has_every_route_and_no_other() {
    let running = Running::start().await;
    let mut served = BTreeSet::new();
    for (path, _) in routes() {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let concrete = path.replace("{token}", "x").replace("{id}", "x").replace("{name}", "x");
            if running.ask(method, &concrete, &[], b"").await.status != 405 {
                served.insert((path.to_owned(), method.to_owned()));
            }
        }
    }
    assert_eq!(served, described());
    let reply = running.ask("GET", "/v1/openapi.json", &[], b"").await;
    assert_eq!(reply.json()["openapi"], "3.1.0");
    running.stop().await;
}
