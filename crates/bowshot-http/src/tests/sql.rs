//! Statements in, answers out.

use super::client::{receive, request, send};
use super::{Running, choices};
use bowshot_api::{ErrorKind, Limits};
use expect_test::expect;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn rows_come_in_one_round_trip() {
    let running = Running::start().await;
    let reply = running.sql("rows 2", "*/*").await;
    assert_eq!((reply.status, reply.is_whole), (200, true));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let id = reply.header("x-bowshot-query-id").expect("an id").to_owned();
    let expected = json!({
        "query_id": id,
        "columns": [{"name": "n", "type": "Int64", "nullable": false}],
        "rows": [[0], [1]],
        "row_count": 2,
    });
    assert_eq!(reply.json(), expected);
    let reply = running.sql("empty", "application/json").await;
    assert_eq!((reply.json()["rows"].clone(), reply.json()["row_count"].clone()), (json!([]), json!(0)));
    let reply = running.sql("rows 100000", "application/json").await;
    assert_eq!(reply.json()["rows"].as_array().map(Vec::len), Some(100_000));
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0 && counts.prepared == 0).await;
    running.stop().await;
}

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
async fn orders_have_parameters_and_options() {
    let running = Running::start().await;
    let reply = running
        .order(r#"{"sql": "echo 3", "parameters": [1, "a", null], "options": {"time_zone": "UTC", "dialect": null}}"#)
        .await;
    assert_eq!(reply.json()["rows"], json!([[1, "a", null]]));
    assert_eq!(running.server.effects(), ["dialect = None", "time_zone = Some(String(\"UTC\"))"]);
    let reply = running.order(r#"{"sql": "echo 2", "parameters": {"2": true, "1": 1.5}}"#).await;
    assert_eq!(reply.json()["rows"], json!([[1.5, true]]));
    for (order, expected) in [
        (
            r#"{"sql": "echo 2", "parameters": [1]}"#,
            "400 invalid: the statement has 2 parameters, and 1 values were given",
        ),
        (r#"{"sql": "echo 1"}"#, "400 invalid: the statement has 1 parameters, and 0 values were given"),
        (
            r#"{"sql": "rows 1; echo 1", "parameters": [1]}"#,
            "400 invalid: parameters are supported for a single statement only",
        ),
        (r#"{"sql": "rows 1", "options": {"colour": 1}}"#, "400 invalid: unknown option `colour`"),
        (r#"{"sql": ""}"#, "400 invalid: the request has no statement"),
    ] {
        assert_eq!(running.order(order).await.error(), expected);
    }
    running.server.until(|counts| counts.sessions == 0).await;
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
async fn transactions_do_not_end_unseen() {
    let running = Running::start().await;
    let reply = running.sql("begin; insert; commit", "*/*").await;
    assert_eq!((reply.status, running.server.effects().len()), (200, 5));
    for sql in ["begin", "begin; insert", "begin; rows 1"] {
        let expected = "400 invalid: the transaction would be rolled back at the end of the request";
        assert_eq!(running.sql(sql, "*/*").await.error(), expected);
    }
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0).await;
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

#[tokio::test]
async fn bodies_are_what_their_type_says() {
    let running =
        Running::open(Limits { max_sql_bytes: 100, ..Limits::default() }, false, super::choices()).await;
    let long = "rows 1 ".repeat(20);
    for (headers, body, expected) in [
        (
            vec![("content-type", "text/plain")],
            long.as_bytes(),
            "413 limit_reached: the body of the request has more than 100 bytes",
        ),
        (vec![("content-type", "text/plain")], b"rows \xff", "400 invalid: the statement is not UTF-8 text"),
        (
            vec![("content-type", "image/png")],
            b"rows 1",
            "415 unsupported: unsupported content type `image/png`",
        ),
        (vec![("cookie", "a=b")], b"rows 1", "415 unsupported: the request has no `content-type`"),
        (
            vec![("content-type", ""), ("sec-fetch-site", "cross-site")],
            b"rows 1",
            "415 unsupported: the request has no `content-type`",
        ),
        (
            vec![("content-type", "text/plain"), ("content-encoding", "gzip")],
            b"x",
            "415 unsupported: the body of the request has a `content-encoding`",
        ),
        (
            vec![("content-type", "text/plain"), ("accept", "image/png")],
            b"rows 1",
            "406 unsupported: cannot produce any format of the header `accept`",
        ),
        (
            vec![("content-type", "application/json")],
            b"{\"sql\": \"rows 1\"",
            "400 invalid: invalid request body: EOF while parsing an object at line 1 column 16",
        ),
        (
            vec![("content-type", "text/plain"), ("transfer-encoding", "chunked")],
            &[&b"65\r\n"[..], &[b'x'; 0x65], b"\r\n0\r\n\r\n"].concat(),
            "413 limit_reached: the body of the request has more than 100 bytes",
        ),
    ] {
        assert_eq!(running.ask("POST", "/v1/sql", &headers, body).await.error(), expected);
    }
    let chunked = [("content-type", "application/sql"), ("transfer-encoding", "chunked")];
    let reply = running.ask("POST", "/v1/sql", &chunked, b"3\r\nrow\r\n3\r\ns 1\r\n0\r\n\r\n").await;
    assert_eq!(reply.json()["row_count"], json!(1));
    let reply = running.ask("POST", "/v1/sql?format=csv", &[("content-type", "text/plain")], b"rows 1").await;
    assert_eq!(reply.text(), "n\r\n0\r\n");
    // As `curl -d` sends a text, and nothing that a page of a browser could have sent.
    let form = ("content-type", "application/x-www-form-urlencoded");
    for headers in [vec![], vec![("content-type", "")], vec![form]] {
        assert_eq!(running.ask("POST", "/v1/sql", &headers, b"rows 1").await.json()["row_count"], json!(1));
    }
    for said in [("cookie", "a=b"), ("referer", "http://localhost/"), ("sec-fetch-mode", "navigate")] {
        let reply = running.ask("POST", "/v1/sql", &[form, said], b"insert").await;
        assert!(reply.error().starts_with("415 unsupported: "), "{said:?}");
    }
    let page = [form, ("origin", "https://evil.example")];
    assert_eq!(running.ask("POST", "/v1/sql", &page, b"insert").await.status, 403);
    for path in ["/v1/sql?format=xml", "/v1/sql?form=csv"] {
        assert_eq!(running.ask("POST", path, &[("content-type", "text/plain")], b"rows 1").await.status, 400);
    }
    running.stop().await;
}
