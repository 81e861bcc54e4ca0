//! Connections, sessions and callers: how they come, how they go, and what they cannot break.

use super::*;
use arrow_flight::{BasicAuth, HandshakeRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_session_that_was_named_outlives_its_connection() {
    let (port, mut client) = Port::open().await.with_client().await;
    let cookie = cookie_of(&client.info("rows 1").await.unwrap()).unwrap();
    client.headers = vec![("cookie", cookie.clone())];
    client.info("rows 1").await.unwrap();
    let mut unnamed = port.client().await;
    unnamed.info("rows 1").await.unwrap();
    port.until(|counts| counts.sessions == 2).await;
    drop(client);
    drop(unnamed);
    // The end of the unnamed one shows that ends have been handled.
    port.until(|counts| counts.sessions == 1).await;
    let mut later = port.client().await;
    later.headers = vec![("cookie", cookie)];
    let answer = later.info("rows 1").await.unwrap();
    assert_eq!(cookie_of(&answer), None);
    later.headers = vec![("cookie", "arrow_flight_session_id=nonsense".to_owned())];
    assert_eq!(code_of(later.info("rows 1").await), Code::NotFound);
}

#[tokio::test]
async fn a_panic_ends_its_own_call_only() {
    let (port, mut client) = Port::open().await.with_client().await;
    for statement in ["panic", "bad"] {
        let status = client.info(statement).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        assert!(status.message().starts_with("internal error, request "), "{}", status.message());
        assert!(!status.message().contains("secret"), "{}", status.message());
        assert_eq!(code_of(client.get(statement).await), Code::Internal);
    }
    assert_eq!(code_of(client.get("break").await), Code::Internal);
    port.until(|counts| counts.streams == 0).await;
    assert_eq!(rows(&client.get("rows 1").await.unwrap()), 1);
}

/// A call without a gRPC client, which would keep the deadline by itself and send nothing malformed.
pub(super) async fn bare_call(port: &Port, method: &str, timeout: &str, body: Vec<u8>) -> http::HeaderMap {
    let socket = TokioIo::new(TcpStream::connect(port.address).await.unwrap());
    let (mut http, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    let driver = tokio::spawn(connection);
    let request =
        http::Request::post(format!("http://{}/arrow.flight.protocol.FlightService/{method}", port.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-timeout", timeout)
            .body(http_body_util::Full::new(Bytes::from(body)))
            .unwrap();
    let answer = tokio::time::timeout(PATIENCE, http.send_request(request)).await.unwrap().unwrap();
    driver.abort();
    answer.headers().clone()
}

#[tokio::test]
async fn malformed_requests_are_the_callers_fault() {
    let port = Port::open_with(Limits { max_message_bytes: 50, ..Limits::default() }, false).await;
    for (body, expected) in [
        (vec![], "3"),
        (vec![0, 0, 0], "3"),
        (framed(vec![0xff]), "3"),
        (vec![9, 0, 0, 0, 1, 0], "3"),
        (framed(vec![0; 51]), "8"),
    ] {
        for method in ["GetFlightInfo", "PollFlightInfo", "GetSchema", "DoAction", "ListFlights", "DoPut"] {
            let headers = bare_call(&port, method, "20S", body.clone()).await;
            assert_eq!(headers["grpc-status"], expected, "{method} {body:?} {headers:?}");
        }
    }
    for (body, expected) in [(vec![], "3"), (framed(vec![0xff]), "3"), (vec![9, 0, 0, 0, 0], "12")] {
        let headers = bare_call(&port, "DoGet", "20S", body.clone()).await;
        assert_eq!(headers["grpc-status"], expected, "{body:?}");
    }
    assert_eq!(bare_call(&port, "Nothing", "20S", vec![]).await["grpc-status"], "12");
}

#[tokio::test]
async fn one_client_too_many_is_told_so() {
    let limits = Limits { max_connections: 1, ..Limits::default() };
    let (port, mut client) = Port::open_with(limits, false).await.with_client().await;
    client.info("rows 1").await.unwrap();
    let status = port.client().await.info("rows 1").await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("limits.max_connections"), "{}", status.message());
    assert!(client.info("rows 1").await.is_ok());
}

#[tokio::test]
async fn clients_of_other_protocols_are_told_so() {
    let port = Port::open().await;
    let mut socket = TcpStream::connect(port.address).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut received = Vec::new();
    // The server may reset the connection after its answer, since it has not read the whole request.
    let _ = socket.read_to_end(&mut received).await;
    let answer = String::from_utf8(received).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("Flight SQL"), "{answer}");
    let mut socket = TcpStream::connect(port.address).await.unwrap();
    socket.write_all(b"\x16\x03\x01\x00\xff").await.unwrap();
    let mut received = Vec::new();
    let _ = socket.read_to_end(&mut received).await;
    assert_eq!(received, [21, 3, 3, 0, 2, 2, 70], "a TLS alert: protocol_version");
}

#[tokio::test]
async fn callers_prove_who_they_are_once_for_each_connection() {
    let (port, mut client) = Port::open_with(Limits::default(), true).await.with_client().await;
    assert_eq!(code_of(client.info("rows 1").await), Code::Unauthenticated);
    client.headers = vec![("authorization", "Bearer None".to_owned())];
    assert_eq!(code_of(client.info("rows 1").await), Code::Unauthenticated);
    client.headers = vec![("authorization", "Basic YWRhOnB3".to_owned())];
    let checks = || port.server.checks.load(Ordering::Relaxed);
    let before = checks();
    for _ in 0..3 {
        client.info("rows 1").await.unwrap();
    }
    assert_eq!(checks(), before + 1);
    // Another caller on the same connection gets a session of its own.
    client.headers = vec![("authorization", "Basic Ym9iOnB3".to_owned())];
    client.info("rows 1").await.unwrap();
    port.until(|counts| counts.sessions == 2).await;
}

async fn handshake(client: &mut Client, payloads: Vec<Vec<u8>>) -> Result<(String, Vec<Bytes>), Status> {
    let messages =
        payloads.into_iter().map(|payload| HandshakeRequest { protocol_version: 0, payload: payload.into() });
    let request = client.request(futures::stream::iter(messages.collect::<Vec<_>>()));
    let answer = client.rpc.handshake(request).await?;
    let token = answer.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
    let mut answers = answer.into_inner();
    let mut payloads = Vec::new();
    while let Some(answer) = answers.message().await? {
        payloads.push(answer.payload);
    }
    Ok((token, payloads))
}

#[tokio::test]
async fn handshakes_of_every_form() {
    let (_port, mut client) = Port::open_with(Limits::default(), true).await.with_client().await;
    let payload = BasicAuth { username: "ada".to_owned(), password: "pw".to_owned() }.encode_to_vec();
    let (token, payloads) = handshake(&mut client, vec![payload]).await.unwrap();
    assert_eq!(token, format!("Bearer {}", String::from_utf8(payloads[0].to_vec()).unwrap()));
    client.headers = vec![("authorization", "Basic YWRhOnB3".to_owned())];
    for messages in [vec![], vec![vec![]]] {
        let (token, payloads) = handshake(&mut client, messages).await.unwrap();
        assert!(token.starts_with("Bearer token-ada-"));
        assert_eq!(payloads, [Bytes::new()]);
    }
    client.headers = vec![("authorization", token.clone())];
    assert_eq!(handshake(&mut client, vec![vec![]]).await.unwrap().0, token);
    client.headers = vec![];
    assert_eq!(code_of(handshake(&mut client, vec![vec![]]).await), Code::Unauthenticated);
    assert_eq!(code_of(handshake(&mut client, vec![b"\xff".to_vec()]).await), Code::Unauthenticated);

    let (_port, mut client) = Port::open().await.with_client().await;
    assert!(handshake(&mut client, vec![vec![]]).await.is_ok());
    client.headers = vec![("authorization", "Bearer None".to_owned())];
    assert!(handshake(&mut client, vec![]).await.is_ok());
}

#[tokio::test]
async fn a_token_names_one_session_over_all_connections() {
    let (port, mut first) = Port::open_with(Limits::default(), true).await.with_client().await;
    first.headers = vec![("authorization", "Basic YWRhOnB3".to_owned())];
    let (token, _) = handshake(&mut first, vec![]).await.unwrap();
    first.headers = vec![("authorization", token.clone())];
    let mut second = port.client().await;
    second.headers = vec![("authorization", token)];
    assert!(cookie_of(&first.info("rows 1").await.unwrap()).is_some());
    assert_eq!(cookie_of(&second.info("rows 1").await.unwrap()), None);
    port.until(|counts| counts.sessions == 1).await;
}

#[tokio::test]
async fn a_header_with_an_unknown_option_opens_no_session() {
    let (port, mut client) = Port::open().await.with_client().await;
    client.headers = vec![("bowshot-speed", "11".to_owned())];
    assert_eq!(code_of(client.info("rows 1").await), Code::InvalidArgument);
    port.until(|counts| counts.sessions == 0).await;
    client.headers = vec![("bowshot-time-zone", "UTC".to_owned())];
    assert!(cookie_of(&client.info("rows 1").await.unwrap()).is_some());
}
