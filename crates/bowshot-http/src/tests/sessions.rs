//! Sessions that clients make, and queries by their ids.

use super::{Running, choices};
use bowshot_api::{Limits, QueryId};
use serde_json::json;
use std::time::Duration;

const SQL: (&str, &str) = ("content-type", "text/plain");

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
