//! Encrypted connections, on the same address as others.

use super::client::{receive, request};
use super::{Running, choices};
use crate::Choices;
use bowshot_api::Limits;
use bowshot_test_server::tls::{connect, server_config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn one_address_takes_both() {
    let encrypted = Choices { tls: Some(server_config()), ..choices() };
    let running = Running::open(Limits::default(), true, encrypted).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let mut stream = connect(stream, &[]).await.unwrap();
    let headers = [("content-type", "text/plain"), ("authorization", "Basic YWRhOnB3")];
    stream.write_all(&request("POST", "/v1/sql", &headers, b"rows 1000")).await.unwrap();
    let reply = receive(&mut stream).await;
    assert_eq!((reply.status, reply.json()["row_count"].as_u64()), (200, Some(1000)));
    assert_eq!(running.ask("GET", "/health", &[], b"").await.status, 200);
    // From this machine, nobody else can read it.
    assert_eq!(running.ask("POST", "/v1/sql", &headers, b"rows 1").await.status, 200);
    running.stop().await;
}

#[tokio::test]
async fn tls_without_a_certificate_ends_at_once() {
    let running = Running::start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(&[22, 3, 1, 0, 1, 0]).await.unwrap();
    let mut rest = Vec::new();
    _ = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    running.stop().await;
}
