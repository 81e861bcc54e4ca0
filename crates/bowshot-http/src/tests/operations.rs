//! Health, readiness, metrics, and what a wrong request gets.

use super::Running;
use super::client::{receive_bytes, send};
use bowshot_api::Lifecycle;
use expect_test::{Expect, expect};
use tokio::io::AsyncReadExt;

async fn start() -> Running {
    let running = Running::start().await;
    *running.server.lifecycle.lock() = Lifecycle::Starting;
    running
}

impl Running {
    async fn send(&self, request: &str) -> String {
        let answer = receive_bytes(&mut send(self.address, request.as_bytes()).await).await;
        String::from_utf8(answer).expect("text")
    }

    async fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await
    }
}

fn check(answer: &str, expected: Expect) {
    let lines: Vec<&str> = answer.lines().filter(|line| !line.starts_with("date:")).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn ready_follows_the_life_of_the_server() {
    let running = start().await;
    check(
        &running.get("/ready").await,
        expect![[r#"
            HTTP/1.1 503 Service Unavailable
            content-type: application/json
            content-length: 118
            connection: close

            {"error":{"hint":"try again in a second","kind":"unavailable","message":"the server is starting","sqlstate":"57P03"}}"#]],
    );
    *running.server.lifecycle.lock() = Lifecycle::Ready;
    check(
        &running.get("/ready").await,
        expect![[r#"
        HTTP/1.1 200 OK
        content-type: application/json
        content-length: 19
        connection: close

        {"status":"ready"}"#]],
    );
    *running.server.lifecycle.lock() = Lifecycle::Draining;
    check(
        &running.get("/ready").await,
        expect![[r#"
            HTTP/1.1 503 Service Unavailable
            content-type: application/json
            content-length: 152
            connection: close

            {"error":{"hint":"send queries to another server","kind":"unavailable","message":"the server is draining and takes no new queries","sqlstate":"57P03"}}"#]],
    );
    running.stop().await;
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let running = start().await;
    let answer = running.get("/metrics").await;
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").expect("body");
    let (own, process) = body.split_once("# HELP process_").unwrap_or((body, ""));
    let values: Vec<&str> = own.lines().filter(|line| !line.starts_with('#')).collect();
    expect![[r#"
        bowshot_queries_total 9
        bowshot_sessions 1
        bowshot_running_queries 2
        bowshot_queued_queries 3
        bowshot_open_results 4
        bowshot_result_buffer_bytes 5
        bowshot_result_spill_bytes 6
        bowshot_query_memory_bytes 7
        bowshot_prepared_statements 8
        bowshot_open_transactions 9
        bowshot_table_bytes 10
        bowshot_planning_statements 11
        bowshot_abandoned_plannings 12
        bowshot_memory_bytes 13
        bowshot_build_info{version="1.2.3"} 1
    "#]]
    .assert_eq(&(values.join("\n") + "\n"));
    if cfg!(target_os = "linux") {
        for name in ["open_fds", "resident_memory_bytes", "cpu_seconds_total"] {
            let value = process
                .lines()
                .chain(body.lines())
                .find_map(|line| line.strip_prefix(&format!("process_{name} ")))
                .and_then(|value| value.parse::<f64>().ok());
            assert!(value.is_some_and(|value| value >= 0.0), "{name} in {body}");
        }
    }
    running.stop().await;
}

#[tokio::test]
async fn mistakes_are_answered_in_one_shape() {
    let running = start().await;
    check(
        &running.get("/metrisc?x=1").await,
        expect![[r#"
            HTTP/1.1 404 Not Found
            content-type: application/json
            content-length: 131
            connection: close

            {"error":{"hint":"`/` lists the paths that are served","kind":"not_found","message":"no route for `/metrisc`","sqlstate":"42704"}}"#]],
    );
    check(
        &running
            .send("POST /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            .await,
        expect![[r#"
            HTTP/1.1 405 Method Not Allowed
            content-type: application/json
            allow: GET,HEAD
            content-length: 119
            connection: close

            {"error":{"hint":"use GET","kind":"unsupported","message":"`POST` is not supported for `/health`","sqlstate":"0A000"}}"#]],
    );
    let head = running.send("HEAD /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 503 ") && head.ends_with("\r\n\r\n"), "{head}");
    running.stop().await;
}

#[tokio::test]
async fn malformed_requests_end_their_connection_and_nothing_else() {
    let running = start().await;
    for bad in [
        "\r\n\r\n\u{0}\u{1}\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(100_000)),
        format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65)),
    ] {
        let answer = receive_bytes(&mut send(running.address, bad.as_bytes()).await).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 2"), "{bad:?} was answered with {answer}");
    }
    assert!(running.get("/health").await.starts_with("HTTP/1.1 200 "));
    running.stop().await;
}

#[tokio::test]
async fn shutdown_ends_idle_and_half_open_connections() {
    let running = start().await;
    let mut idle = send(running.address, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut first = [0_u8; 12];
    idle.read_exact(&mut first).await.expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut half = send(running.address, b"GET /hea").await;
    running.stop().await;
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.expect("closed in order");
    // A reset is as good as an orderly end here: what counts is that nobody holds the connection.
    receive_bytes(&mut half).await;
}

#[tokio::test]
async fn tls_without_a_certificate_ends_at_once() {
    let running = Running::start().await;
    let mut stream = send(running.address, &[22, 3, 1, 0, 1, 0]).await;
    assert!(receive_bytes(&mut stream).await.is_empty());
    running.stop().await;
}
