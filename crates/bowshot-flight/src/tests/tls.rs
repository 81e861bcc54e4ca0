//! Encrypted connections: what the front end makes of clients that stop in the middle, or never encrypt.

use super::{PATIENCE, Port};
use crate::Choices;
use crate::client::{Client, Error, Login, Target};
use bowshot_api::Limits;
use bowshot_test_server::tls::{connect, file, server_config};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

async fn port(limits: Limits) -> Port {
    Port::open_as(limits, false, Choices { tls: Some(server_config()), ..Choices::default() }).await
}

fn target(port: &Port, scheme: &str, ca_file: Option<&str>) -> Target {
    let uri = format!("{scheme}://{}", port.address);
    Target { ca_file: ca_file.map(file), ..Target::new(uri, Login::Anonymous) }
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let port = port(Limits::default()).await;
    let say = |scheme: &'static str, ca_file| {
        let target = target(&port, scheme, ca_file);
        async move {
            match Client::connect(&target).await {
                Err(error) => error.to_string(),
                Ok(client) => client.execute("rows 1").await.unwrap_err().to_string(),
            }
        }
    };
    let clear = say("grpc", None).await;
    assert!(clear.contains("speaks TLS only") && clear.contains("grpc+tls://"), "{clear}");
    let stranger = say("grpc+tls", Some("second.pem")).await;
    assert!(stranger.contains("UnknownIssuer") && stranger.contains("--ca-file"), "{stranger}");
    let useless = say("grpc", Some("ca.pem")).await;
    assert!(useless.contains("not encrypted"), "{useless}");
    let missing = say("grpc+tls", Some("missing.pem")).await;
    assert!(missing.contains("missing.pem"), "{missing}");
    let plain = Port::open().await;
    let target = target(&plain, "grpc+tls", Some("ca.pem"));
    let error = Client::connect(&target).await.err().unwrap();
    assert!(matches!(error, Error::Connect { .. }));
    assert!(error.to_string().contains("does the server speak TLS?"), "{error}");
}

/// A client that has agreed on a key and then says no more than this.
async fn silent_after(port: &Port, said: &[u8]) -> TlsStream<TcpStream> {
    let plain = TcpStream::connect(port.address).await.unwrap();
    let mut stream = connect(plain, &[]).await.unwrap();
    stream.write_all(said).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

#[tokio::test]
async fn clients_that_agree_on_a_key_and_say_no_more_lose_their_place() {
    let port = port(Limits { max_connections: 1, ..Limits::default() }).await;
    let _silent = silent_after(&port, b"P").await;
    let again = async {
        loop {
            let client = Client::connect(&target(&port, "grpc+tls", Some("ca.pem"))).await.unwrap();
            if client.execute("rows 1").await.is_ok() {
                return client;
            }
        }
    };
    // The time for a greeting, and some.
    let client = timeout(PATIENCE + Duration::from_secs(10), again).await.unwrap();
    client.close().await.unwrap();
    let _other = silent_after(&port, b"PRI").await;
    port.stop();
    // Less than the time for a greeting.
    timeout(Duration::from_secs(8), port.0.stopped()).await.unwrap();
}

#[tokio::test]
async fn half_a_handshake_ends_with_the_shutdown() {
    let port = port(Limits::default()).await;
    let mut stream = TcpStream::connect(port.address).await.unwrap();
    stream.write_all(&[22, 3, 1]).await.unwrap();
    let client = Client::connect(&target(&port, "grpc+tls", Some("ca.pem"))).await.unwrap();
    assert!(client.execute("rows 1").await.is_ok());
    client.close().await.unwrap();
    port.stop();
    timeout(PATIENCE, port.0.stopped()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or(0), 0);
}
