//! The Model Context Protocol: its messages, and tools over the small server.

use super::{Running, choices};
use crate::Choices;
use bowshot_api::Limits;
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");

impl Running {
    async fn message(&self, body: &str) -> (u16, Value) {
        let reply = self.ask("POST", "/mcp", &[JSON], body.as_bytes()).await;
        assert!(reply.is_whole, "{reply:?}");
        (reply.status, if reply.body.is_empty() { Value::Null } else { reply.json() })
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let (status, answer) = self.message(&body.to_string()).await;
        assert_eq!((status, &answer["jsonrpc"], &answer["id"]), (200, &json!("2.0"), &json!(7)), "{answer}");
        answer["result"].clone()
    }

    /// Text and structured content of a tool's result, and whether it is an error.
    async fn tool(&self, name: &str, arguments: Value) -> (String, Value, bool) {
        let result = self.result("tools/call", json!({ "name": name, "arguments": arguments })).await;
        let text = result["content"][0]["text"].as_str().expect("text").to_owned();
        (text, result["structuredContent"].clone(), result["isError"] == json!(true))
    }
}

#[tokio::test]
async fn messages_are_answered_as_the_protocol_says() {
    let running = Running::start().await;
    for (wanted, expected) in [("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25")] {
        let result = running.result("initialize", json!({ "protocolVersion": wanted })).await;
        assert_eq!(result["protocolVersion"], expected);
        assert_eq!(result["serverInfo"], json!({ "name": "Bowshot", "version": "1.2.3" }));
    }
    assert_eq!(running.result("ping", json!({})).await, json!({}));
    let tools = running.result("tools/list", json!({})).await["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_tables", "describe_table", "query", "explain"]);
    for (body, expected) in [
        (r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#, (202, Value::Null)),
        (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, (202, Value::Null)),
        (r#"{"jsonrpc": "2.0", "id": "a", "method": "prompts/list"}"#, (200, json!(-32601))),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}"#, (200, json!(-32602))),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}"#,
            (200, json!(-32602)),
        ),
        ("{", (400, json!(-32700))),
        ("[]", (400, json!(-32600))),
        (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, (400, json!(-32600))),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, (400, json!(-32600))),
        (r#"{"id": 1, "method": "ping"}"#, (400, json!(-32600))),
    ] {
        let (status, answer) = running.message(body).await;
        assert_eq!((status, answer["error"]["code"].clone()), expected, "{body}");
    }
    running.stop().await;
}

#[tokio::test]
async fn requests_that_are_no_messages_are_refused() {
    let running = Running::start().await;
    let ping = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    for (headers, expected) in [
        (vec![JSON], 200),
        (vec![JSON, ("mcp-protocol-version", "2025-06-18")], 200),
        (vec![JSON, ("mcp-protocol-version", "2030-01-01")], 400),
        (vec![("content-type", "text/plain")], 415),
        (vec![], 415),
        (vec![JSON, ("origin", "https://evil.example")], 403),
        (vec![JSON, ("host", "evil.example")], 403),
    ] {
        assert_eq!(running.ask("POST", "/mcp", &headers, ping).await.status, expected, "{headers:?}");
    }
    for method in ["GET", "DELETE", "PUT"] {
        let reply = running.ask(method, "/mcp", &[], b"").await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
    }
    running.stop().await;
    let off = Running::open(Limits::default(), false, Choices { mcp: false, ..choices() }).await;
    let reply = off.ask("POST", "/mcp", &[JSON], ping).await;
    assert_eq!(reply.error(), "403 denied: the Model Context Protocol is off on this server");
    off.stop().await;
    let users = Running::open(Limits::default(), true, choices()).await;
    assert_eq!(users.ask("POST", "/mcp", &[JSON], ping).await.status, 401);
    users.stop().await;
}

#[tokio::test]
async fn tools_read_within_limits() {
    let running = Running::start().await;
    let (text, rows, is_error) = running.tool("query", json!({ "sql": "rows 3" })).await;
    assert_eq!((text.as_str(), is_error), ("n\r\n0\r\n1\r\n2\r\n\n3 rows", false));
    assert_eq!((&rows["rows"], &rows["is_cut"]), (&json!([[0], [1], [2]]), &json!(false)));
    let (text, rows, _) = running.tool("query", json!({ "sql": "rows 1000000", "max_rows": 2 })).await;
    assert!(text.contains("first 2 rows of more"), "{text}");
    assert_eq!(
        (&rows["row_count"], &rows["is_cut"], &rows["rows_path"]),
        (&json!(2), &json!(true), &Value::Null)
    );
    let stored = json!({ "sql": "rows 5", "max_rows": 2, "store_result": true });
    let (_, rows, _) = running.tool("query", stored).await;
    let path = rows["rows_path"].as_str().expect("a path").replace("format=arrow", "format=csv");
    assert_eq!(running.ask("GET", &path, &[], b"").await.text(), "n\r\n0\r\n1\r\n2\r\n3\r\n4\r\n");
    // Rows of 100 kB.
    let (_, rows, _) = running.tool("query", json!({ "sql": "wide 100" })).await;
    let count = rows["row_count"].as_u64().expect("a count");
    assert!((1..=10).contains(&count) && rows["is_cut"] == json!(true), "{count}");
    for (sql, expected) in [
        ("insert", "agents may only run statements that read\nhint: "),
        ("rows 1; rows 2", "expected one statement, got 2\nhint: "),
        ("", "expected one statement, got 0\nhint: "),
        ("wrong", "syntax error: unexpected `x`"),
        ("break 10", "divide by zero"),
    ] {
        let (text, error, is_error) = running.tool("query", json!({ "sql": sql })).await;
        assert!(text.starts_with(expected) && is_error, "{sql}: {text}");
        assert!(error["error"]["kind"].is_string(), "{sql}");
    }
    for arguments in
        [json!({}), json!({ "sql": "rows 1", "max_rows": 10001 }), json!({ "sql": "rows 1", "x": 1 })]
    {
        assert!(running.tool("query", arguments.clone()).await.2, "{arguments}");
    }
    assert!(!running.server.effects().iter().any(|effect| effect == "insert"));
    running.server.until(|counts| counts.sessions == 0 && counts.streams == 0 && counts.prepared == 0).await;
    running.stop().await;
}
