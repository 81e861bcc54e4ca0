//! Encrypted connections.

use super::{CLIENT, Client, Port};
use crate::capability::{PLUGIN_AUTH, PROTOCOL_41, SSL};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use bowshot_test_server::tls::{connect, server_config};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

async fn port() -> Port {
    let options = ListenOptions { tls: Some(server_config()), cleartext: false };
    Port::open(Limits::default(), true, options).await
}

/// The first half of a client's first message.
fn request() -> Vec<u8> {
    [&(PROTOCOL_41 | PLUGIN_AUTH | SSL).to_le_bytes()[..], &[0; 28]].concat()
}

async fn encrypted(port: &Port) -> Client<TlsStream<TcpStream>> {
    let mut client = port.raw().await;
    assert_ne!(client.greeting().await & SSL, 0);
    client.send(&request()).await;
    Client { stream: connect(client.stream, &[]).await.unwrap(), number: 2, has_eof: false }
}

#[tokio::test]
async fn clients_that_begin_with_another_plugin_are_led_to_the_right_one() {
    let port = port().await;
    for (answer, asked) in [(&[7_u8; 32][..], true), (b"", false)] {
        let mut client = encrypted(&port).await;
        let head = [&(PROTOCOL_41 | PLUGIN_AUTH | SSL).to_le_bytes()[..], &[0; 28]].concat();
        client.send(&[&head[..], b"ada\0\x14", &[1; 20], b"mysql_native_password\0"].concat()).await;
        let switch = client.next().await.unwrap();
        assert!(switch.starts_with(b"\xfecaching_sha2_password\0"), "{switch:?}");
        assert_eq!(switch.len(), 1 + 22 + 21);
        client.send(answer).await;
        let next = client.next().await.unwrap();
        assert_eq!(next[0], if asked { 1 } else { 0xff });
    }
}

#[tokio::test]
async fn words_before_the_handshake_of_tls_are_no_part_of_the_session() {
    let port = port().await;
    let mut client = port.raw().await;
    client.greeting().await;
    client.send(&request()).await;
    // What somebody on the way would put before it is read as TLS, which it is not.
    client.hello(CLIENT | SSL, "ada", "").await;
    client.stream.shutdown().await.unwrap();
    let mut words = Vec::new();
    _ = tokio::io::AsyncReadExt::read_to_end(&mut client.stream, &mut words).await;
    assert!(words.is_empty() || words[0] == 21, "an alert of TLS: {words:?}");
    port.server.until(|counts| counts.sessions == 0).await;
}
