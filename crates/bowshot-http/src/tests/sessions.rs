//! Sessions that clients make, and queries by their ids.

use super::{Running, choices};
use bowshot_api::{Limits, QueryId};
use serde_json::json;
use std::time::Duration;

const ADA: (&str, &str) = ("authorization", "Basic YWRhOnB3");
const EVE: (&str, &str) = ("authorization", "Basic ZXZlOnB3");
const SQL: (&str, &str) = ("content-type", "text/plain");

#[tokio::test]
async fn a_transaction_spans_requests_of_a_session() {
    let running = Running::start().await;
    let body = br#"{"options": {"time_zone": "UTC"}}"#;
    let reply = running.ask("POST", "/v1/sessions", &[("content-type", "application/json")], body).await;
    assert_eq!(reply.status, 201);
    assert_eq!(reply.json()["idle_timeout_seconds"], json!(1800));
    let token = reply.json()["session"].as_str().unwrap().to_owned();
    let session = ("x-bowshot-session", token.as_str());
    for sql in ["begin", "insert", "rows 1", "commit"] {
        assert_eq!(
            running.ask("POST", "/v1/sql", &[SQL, session], sql.as_bytes()).await.status,
            200,
            "{sql}"
        );
    }
    assert_eq!(running.server.effects(), ["time_zone = Some(String(\"UTC\"))", "begin", "insert", "commit"]);
    running.server.until(|counts| counts.sessions == 1 && counts.prepared == 0).await;
    let path = format!("/v1/sessions/{token}");
    assert_eq!(running.ask("DELETE", &path, &[], b"").await.status, 204);
    running.server.until(|counts| counts.sessions == 0).await;
    assert_eq!(running.ask("DELETE", &path, &[], b"").await.status, 404);
    let expected = "404 not_found: session not found: it was closed or has expired";
    assert_eq!(running.ask("POST", "/v1/sql", &[SQL, session], b"rows 1").await.error(), expected);
    for token in ["", "x", "00000000-0000-0000-0000-000000000000"] {
        let session = ("x-bowshot-session", token);
        assert_eq!(running.ask("POST", "/v1/sql", &[SQL, session], b"rows 1").await.error(), expected);
    }
    running.stop().await;
}

#[tokio::test]
async fn sessions_belong_to_who_made_them() {
    let running = Running::open(Limits::default(), true, choices()).await;
    let reply = running.ask("POST", "/v1/sessions", &[ADA], b"").await;
    let token = reply.json()["session"].as_str().unwrap().to_owned();
    let session = ("x-bowshot-session", token.as_str());
    assert_eq!(running.ask("POST", "/v1/sql", &[SQL, session, EVE], b"rows 1").await.status, 404);
    assert_eq!(running.ask("DELETE", &format!("/v1/sessions/{token}"), &[EVE], b"").await.status, 404);
    assert_eq!(running.ask("POST", "/v1/sql", &[SQL, session], b"rows 1").await.status, 401);
    assert_eq!(running.ask("POST", "/v1/sql", &[SQL, session, ADA], b"rows 1").await.status, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_session_is_not_made_with_options_that_there_are_not() {
    let running = Running::start().await;
    let json = ("content-type", "application/json");
    for (body, expected) in [
        (&br#"{"options": {"colour": 1}}"#[..], "400 invalid: unknown option `colour`"),
        (b"[", "400 invalid: the body has no options: EOF while parsing a list at line 1 column 1"),
        (
            br#"{"option": {}}"#,
            "400 invalid: the body has no options: unknown field `option`, expected `options` at line 1 column 9",
        ),
    ] {
        assert_eq!(running.ask("POST", "/v1/sessions", &[json], body).await.error(), expected);
    }
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn queries_are_cancelled_by_their_ids() {
    let running = Running::start().await;
    let started = running.ask("POST", "/v1/queries", &[SQL], b"rows 1").await.json();
    let path = format!("/v1/queries/{}", started["query_id"].as_str().expect("an id"));
    let reply = running.ask("DELETE", &path, &[], b"").await;
    assert_eq!(reply.json(), json!({"query_id": started["query_id"], "state": "cancelled"}));
    assert_eq!(running.ask("GET", &path, &[], b"").await.json()["state"], "cancelled");
    assert_eq!(running.ask("GET", &format!("{path}/rows"), &[], b"").await.status, 499);
    let unknown = format!("/v1/queries/{}", QueryId::random());
    assert_eq!(running.ask("GET", &unknown, &[], b"").await.status, 404);
    assert_eq!(running.ask("GET", "/v1/queries/1", &[], b"").await.error(), "400 invalid: invalid query id");
    running.stop().await;
}

#[tokio::test]
async fn a_session_that_works_is_not_idle() {
    let limits = Limits { session_timeout: Duration::from_millis(1), ..Limits::default() };
    let running = Running::open(limits, false, choices()).await;
    for sql in ["hang", "wait"] {
        let waiting =
            super::send(running.address, &super::request("POST", "/v1/sql", &[SQL], sql.as_bytes())).await;
        let mut found = running.server.found.subscribe();
        let before = *found.borrow();
        tokio::time::timeout(super::PATIENCE, found.wait_for(|found| *found > before + 1))
            .await
            .unwrap()
            .unwrap();
        drop(waiting);
    }
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}
