//! Clients that keep to nothing.

use super::{CLIENT, PATIENCE, Port};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// What a server says before it ends the connection.
async fn last_words(mut stream: tokio::net::TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end");
    rest
}

#[tokio::test]
async fn packets_that_cannot_be_end_the_connection() {
    let port = Port::new().await;
    for (bytes, code) in [
        // A number that is not its turn's, and a length that no such command has.
        (b"\x01\0\0\x01\x0e".as_ref(), 1156_u16),
        (b"\xff\xff\xff\0\x0e", 1153),
        (b"\0\0\0\0", 1835),
        (b"\x02\0\0\0\x17\0", 1835),
        (b"\x03\0\0\0\x04ab", 1835),
    ] {
        let mut client = port.connect().await;
        client.stream.write_all(bytes).await.unwrap();
        let words = last_words(client.stream).await;
        assert_eq!(words[4..7], [&[0xff][..], &code.to_le_bytes()].concat(), "{bytes:?}: {words:?}");
    }
    port.server.until(|counts| counts.sessions == 0).await;
}

#[tokio::test]
async fn texts_that_are_none_are_errors_of_their_statement() {
    let port = Port::new().await;
    let mut client = port.connect().await;
    for command in [3, 0x16, 2] {
        client.command(command, b"rows \xff").await;
        assert!(client.result(false).await.0.starts_with("E[1300 "));
    }
    assert_eq!(client.query("rows 1").await, "T[n 8] D[0] EOF[auto]");
}

#[tokio::test]
async fn texts_have_a_limit() {
    let limits = Limits { max_sql_bytes: 1 << 10, ..Limits::default() };
    let port = Port::open(limits, false, ListenOptions::default()).await;
    let mut client = port.connect().await;
    client.stream.write_all(b"\x01\x04\x20\0\x03").await.unwrap();
    let words = last_words(client.stream).await;
    assert_eq!(words[4..7], [&[0xff][..], &1153_u16.to_le_bytes()].concat());
}

#[tokio::test]
async fn strangers_say_little() {
    let port = Port::open(Limits::default(), true, ListenOptions::default()).await;
    let mut client = port.raw().await;
    client.greeting().await;
    client.hello(CLIENT, "ada", "").await;
    client.next().await.unwrap();
    client.stream.write_all(b"\x01\0\x01\x03\0").await.unwrap();
    let words = last_words(client.stream).await;
    assert_eq!(words[4..7], [&[0xff][..], &1153_u16.to_le_bytes()].concat());
}

#[tokio::test]
async fn old_clients_are_told() {
    let port = Port::new().await;
    let mut client = port.raw().await;
    client.greeting().await;
    client.hello(0, "ada", "").await;
    assert!(super::error(&client.next().await.unwrap()).starts_with("E[1251 08004"));
    assert_eq!(client.next().await, None);
}
