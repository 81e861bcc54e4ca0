//! Clients that go away, and servers that end.

use super::client::{receive, receive_bytes, request, send};
use super::{Running, choices};
use bowshot_api::Limits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SQL: (&str, &str) = ("content-type", "text/plain");

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off() {
    let limits = Limits { reader_timeout: Duration::from_millis(300), ..Limits::default() };
    let running = Running::open(limits, false, choices()).await;
    let mut stalled = send(running.address, &request("POST", "/v1/sql", &[SQL], b"wide 100000")).await;
    running.server.until(|counts| counts.streams == 1).await;
    running.server.until(|counts| counts.streams == 0 && counts.sessions == 0).await;
    let rest = receive_bytes(&mut stalled).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    // Of ten thousand batches of a megabyte, what the sockets hold.
    let made = running.server.made.load(std::sync::atomic::Ordering::Relaxed);
    assert!(made < 50, "{made} batches were made");
    running.stop().await;
}

#[tokio::test]
async fn an_upload_that_is_cut_off_writes_nothing() {
    let running = Running::start().await;
    let head = [("content-type", "text/csv"), ("transfer-encoding", "chunked")];
    // Longer than what is looked at first.
    let rows = "123456789012345678\n".repeat(80_000);
    let body = format!("{:x}\r\nn\n{rows}\r\n", 2 + rows.len());
    let mut half = send(running.address, &request("PUT", "/v1/tables/new", &head, body.as_bytes())).await;
    half.shutdown().await.unwrap();
    drop(half);
    running.server.until(|counts| counts.sessions == 0).await;
    assert!(running.server.written.lock().is_empty() && running.server.effects().is_empty());
    let limits = Limits { reader_timeout: Duration::from_millis(200), ..Limits::default() };
    let impatient = Running::open(limits, false, choices()).await;
    let mut silent = send(impatient.address, &request("PUT", "/v1/tables/new", &head, body.as_bytes())).await;
    assert_eq!(receive(&mut silent).await.error(), "504 timeout: no rows arrived for 0.2 s");
    assert!(impatient.server.written.lock().is_empty());
    impatient.stop().await;
    running.stop().await;
}

#[tokio::test]
async fn connections_that_run_something_do_not_give_way() {
    let running = Running::start().await;
    let mut waiting = send(running.address, &request("POST", "/v1/sql", &[SQL], b"wait")).await;
    running.server.until(|counts| counts.streams == 1).await;
    let mut idle = Vec::new();
    for _ in 0..600 {
        idle.push(tokio::net::TcpStream::connect(running.address).await.unwrap());
    }
    assert_eq!(running.ask("GET", "/health", &[], b"").await.status, 200);
    assert_eq!(running.server.counts.borrow().streams, 1);
    let mut byte = [0; 12];
    waiting.read_exact(&mut byte).await.unwrap();
    assert_eq!(&byte, b"HTTP/1.1 200");
    drop((waiting, idle));
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn a_client_may_ask_whether_to_send() {
    let running = Running::open(Limits::default(), true, choices()).await;
    let mut head =
        [("content-type", "text/csv"), ("expect", "100-continue"), ("content-length", "4")].to_vec();
    let mut refused = send(running.address, &request("PUT", "/v1/tables/new", &head, b"")).await;
    assert_eq!(receive(&mut refused).await.status, 401);
    head.push(("authorization", "Bearer token"));
    let mut asking = send(running.address, &request("PUT", "/v1/tables/new", &head, b"")).await;
    let mut told = [0; 25];
    asking.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    asking.write_all(b"n\n1\n").await.unwrap();
    assert_eq!(receive(&mut asking).await.text(), "{\"rows_affected\":1}\n");
    running.stop().await;
}

#[tokio::test]
async fn one_connection_takes_many_requests() {
    let running = Running::start().await;
    let one = |sql: &str| {
        format!(
            "POST /v1/sql HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{sql}",
            sql.len()
        )
    };
    // Errors and unread bodies among them do no harm to the next.
    let mut stream =
        send(running.address, [one("rows 1"), one("wrong"), one("insert")].concat().as_bytes()).await;
    stream.write_all(&request("GET", "/health", &[], b"")).await.unwrap();
    let text = String::from_utf8(receive_bytes(&mut stream).await).unwrap();
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|reply| &reply[..3]).collect();
    assert_eq!(statuses, ["200", "400", "200", "200"]);
    running.server.until(|counts| counts.sessions == 0).await;
    running.stop().await;
}

#[tokio::test]
async fn who_sends_before_reading_sees_why_it_was_refused() {
    let running = Running::open(Limits { max_sql_bytes: 1_000, ..Limits::default() }, false, choices()).await;
    let long = "n\n1\n".repeat(2_000_000);
    for (method, path, media, expected) in [
        ("POST", "/v1/sql", "text/plain", 413),
        ("POST", "/v1/tables/missing", "text/csv", 404),
        ("PUT", "/v1/tables/new", "application/vnd.apache.arrow.stream", 429),
        ("PUT", "/v1/tables/new", "application/json", 400),
    ] {
        let headers = [("content-type", media)];
        let mut stream = tokio::net::TcpStream::connect(running.address).await.unwrap();
        stream.write_all(&request(method, path, &headers, long.as_bytes())).await.unwrap();
        assert_eq!(receive(&mut stream).await.status, expected, "{path} {media}");
    }
    running.stop().await;
}
