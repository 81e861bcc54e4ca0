//! Results that are kept, and read in parts.

use super::Running;
use serde_json::{Value, json};

const SQL: (&str, &str) = ("content-type", "text/plain");

impl Running {
    async fn keep(&self, sql: &str) -> Value {
        let reply = self.ask("POST", "/v1/queries", &[SQL], sql.as_bytes()).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        reply.json()
    }

    async fn part(&self, id: &Value, part: &str) -> Value {
        let path = format!("/v1/queries/{}/rows{part}", id.as_str().expect("an id"));
        let reply = self.ask("GET", &path, &[], b"").await;
        assert_eq!((reply.status, reply.is_whole), (200, true), "{reply:?}");
        assert_eq!(reply.header("x-bowshot-query-id"), id.as_str());
        reply.json()["rows"].clone()
    }
}

#[tokio::test]
async fn a_kept_result_is_read_in_any_part() {
    let running = Running::start().await;
    let started = running.keep("insert; rows 2500").await;
    assert_eq!(started["columns"], json!([{"name": "n", "type": "Int64", "nullable": false}]));
    assert_eq!(running.server.effects(), ["(begin)", "insert", "(Commit)"]);
    let id = &started["query_id"];
    // Over the borders of batches of a thousand, backwards, at the end, beyond it.
    assert_eq!(running.part(id, "?offset=998&limit=4").await, json!([[998], [999], [1000], [1001]]));
    assert_eq!(running.part(id, "?limit=2").await, json!([[0], [1]]));
    assert_eq!(running.part(id, "?offset=2499&limit=9").await, json!([[2499]]));
    assert_eq!(running.part(id, "?offset=2500").await, json!([]));
    assert_eq!(running.part(id, "?offset=18446744073709551615&limit=1").await, json!([]));
    assert_eq!(running.part(id, "?limit=0").await, json!([]));
    assert_eq!(running.part(id, "").await.as_array().map(Vec::len), Some(2500));
    assert_eq!(running.part(id, "?offset=2400").await.as_array().map(Vec::len), Some(100));
    let path = format!("/v1/queries/{}/rows?offset=7&limit=2&format=csv", id.as_str().unwrap());
    assert_eq!(running.ask("GET", &path, &[], b"").await.text(), "n\r\n7\r\n8\r\n");
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0 && counts.prepared == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn a_part_asks_for_no_more_than_it_gives() {
    let running = Running::start().await;
    let started = running.keep("rows 1000000").await;
    assert_eq!(running.part(&started["query_id"], "?offset=1500&limit=2").await, json!([[1500], [1501]]));
    let made = running.server.made.load(std::sync::atomic::Ordering::Relaxed);
    assert!(made <= 2, "{made} batches were made");
    // The first rows are there although the last ones never come.
    let started = running.keep("wait").await;
    assert_eq!(running.part(&started["query_id"], "?limit=1").await, json!([[0]]));
    running.server.until(|counts| counts.streams == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn what_has_no_rows_or_fails_is_told_at_the_start() {
    let running = Running::start().await;
    let started = running.keep("insert").await;
    assert_eq!((&started["columns"], &started["rows_affected"]), (&Value::Null, &json!(3)));
    for (sql, expected) in [("wrong", 400), ("fail Denied", 403), ("begin", 400), ("", 400)] {
        let reply = running.ask("POST", "/v1/queries", &[SQL], sql.as_bytes()).await;
        assert_eq!(reply.status, expected, "{sql}");
    }
    let reply = running.ask("POST", "/v1/queries", &[SQL], b"insert; wrong").await;
    assert_eq!(reply.json()["error"]["position"], json!(12));
    let id = "6fb1b1f0-0000-4000-8000-000000000000";
    for (path, expected) in [
        (format!("/v1/queries/{id}/rows"), 404),
        ("/v1/queries/x/rows".to_owned(), 400),
        (format!("/v1/queries/{id}/rows?limit=x"), 400),
        (format!("/v1/queries/{id}/rows?limit=-1"), 400),
        (format!("/v1/queries/{id}/rows?lines=1"), 400),
    ] {
        assert_eq!(running.ask("GET", &path, &[], b"").await.status, expected, "{path}");
    }
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0 && counts.prepared == 0).await;
    running.stop().await;
}
