//! Statements in, answers out.

use super::client::{receive, request, send};
use super::{Running, choices};
use bowshot_api::{ErrorKind, Limits};
use expect_test::expect;
use serde_json::json;
use std::time::Duration;

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

#[tokio::test]
async fn a_script_has_its_session_to_itself() {
    let limits = Limits { statement_timeout: Duration::from_secs(2), ..Limits::default() };
    let running = Running::open(limits, false, choices()).await;
    let made = running.ask("POST", "/v1/sessions", &[], b"").await.json();
    let session = [("content-type", "text/plain"), ("x-bowshot-session", made["session"].as_str().unwrap())];
    let ask = |sql: &str| request("POST", "/v1/sql", &session, sql.as_bytes());
    let script = send(running.address, &ask("insert; hang; insert")).await;
    running.server.until(|counts| counts.hanging == 1).await;
    let reply = receive(&mut send(running.address, &ask("commit")).await).await;
    let expected =
        "504 timeout: the session was busy with other requests for longer than a statement may take";
    assert_eq!(reply.error(), expected);
    let mut other = send(running.address, &ask("insert; insert")).await;
    assert_eq!(running.sql("rows 1", "*/*").await.status, 200);
    assert_eq!(running.server.effects(), ["(begin)", "insert"]);
    // Whoever leaves is undone before the next begins.
    drop(script);
    assert_eq!(receive(&mut other).await.status, 200);
    assert_eq!(running.server.effects(), ["(Rollback)", "(begin)", "insert", "insert", "(Commit)"]);
    // The rows of the last statement hold nobody up.
    let reading = send(running.address, &ask("insert; wait")).await;
    running.server.until(|counts| counts.streams == 1).await;
    assert_eq!(receive(&mut send(running.address, &ask("insert; insert")).await).await.status, 200);
    let both = ["(begin)", "insert", "(Commit)", "(begin)", "insert", "insert", "(Commit)"];
    assert_eq!(running.server.effects(), both);
    drop(reading);
    running.server.until(|counts| counts.streams == 0 && counts.prepared == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn errors_have_the_status_of_their_kind() {
    let running = Running::start().await;
    let mut told = String::new();
    for kind in ErrorKind::ALL {
        let reply = running.sql(&format!("fail {kind:?}"), "*/*").await;
        let error = &reply.json()["error"];
        let message = error["message"].as_str().unwrap();
        let shown = message.split(" (reference").next().unwrap();
        told.push_str(&format!("{} {} {shown}\n", reply.status, error["kind"].as_str().unwrap()));
    }
    expect![[r#"
        400 syntax the secret inside
        400 invalid the secret inside
        404 not_found the secret inside
        409 already_exists the secret inside
        401 unauthenticated the secret inside
        403 denied the secret inside
        400 unsupported the secret inside
        409 conflict the secret inside
        429 limit_reached the secret inside
        504 timeout the secret inside
        499 cancelled the secret inside
        503 unavailable the secret inside
        500 corrupt the secret inside
        500 internal internal error
    "#]]
    .assert_eq(&told);
    let reply = running.sql("wrong", "text/csv").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["error"]["position"], json!(4));
    running.stop().await;
}
