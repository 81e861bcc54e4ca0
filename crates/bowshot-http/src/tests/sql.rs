//! Statements in, answers out.

use super::Running;
use serde_json::json;

#[tokio::test]
async fn statements_without_rows_say_how_many_they_changed() {
    let running = Running::start().await;
    for accept in ["application/json", "application/x-ndjson"] {
        let reply = running.sql("insert", accept).await;
        assert_eq!(reply.text(), "{\"rows_affected\":3}\n");
        assert_eq!(reply.header("content-type"), Some(accept));
        assert!(reply.header("x-bowshot-query-id").is_some());
    }
    for accept in [
        "text/csv",
        "application/vnd.apache.arrow.stream",
        "application/vnd.apache.arrow.file",
        "application/vnd.apache.parquet",
    ] {
        let reply = running.sql("insert", accept).await;
        assert_eq!((reply.status, reply.header("x-bowshot-rows-affected")), (200, Some("3")), "{accept}");
        assert_eq!(reply.body.is_empty(), accept == "text/csv");
    }
    assert_eq!(running.server.effects(), ["insert"; 6]);
    running.stop().await;
}

#[tokio::test]
async fn several_statements_run_in_their_order() {
    let running = Running::start().await;
    let reply = running.sql("insert; rows 5; insert; rows 1", "*/*").await;
    assert_eq!(reply.json()["rows"], json!([[0]]));
    assert_eq!(running.server.effects(), ["(begin)", "insert", "insert", "(Commit)"]);
    let reply = running.sql("insert; wrong; insert", "*/*").await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["position"], json!(12));
    assert_eq!(running.server.effects(), ["(begin)", "insert", "(Rollback)"]);
    // Queries before the last one run too.
    assert!(running.sql("insert; break 1; insert", "*/*").await.error().contains("divide by zero"));
    assert_eq!(running.server.effects(), ["(begin)", "insert", "(Rollback)"]);
    running.stop().await;
}
