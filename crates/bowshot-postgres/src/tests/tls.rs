//! Encrypted connections.

use super::{Client, Port, shown};
use bowshot_api::Limits;
use bowshot_rowwire::ListenOptions;
use bowshot_test_server::tls::{connect, server_config};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

async fn port() -> Port {
    let options = ListenOptions { tls: Some(server_config()), cleartext: false };
    Port::open(Limits::default(), true, options).await
}

async fn log_in(mut client: Client<TlsStream<TcpStream>>) {
    client.start(&[("user", "ada")]).await;
    assert_eq!(client.next().await.unwrap(), ('R', vec![0, 0, 0, 3]));
    client.send(b'p', b"pw\0").await;
    client.until_ready().await;
    assert_eq!(client.query("rows 1").await, "T[n 20] D[0] C[ROWS] ZI");
}

#[tokio::test]
async fn a_client_begins_encrypted_if_it_names_the_protocol() {
    let port = port().await;
    log_in(Client(connect(port.raw().await.0, &[b"postgresql"]).await.unwrap())).await;
    if let Ok(stream) = connect(port.raw().await.0, &[]).await {
        assert_eq!(Client(stream).next().await, None);
    }
}

#[tokio::test]
async fn sessions_in_the_clear_are_refused() {
    let port = port().await;
    let mut client = port.raw().await;
    client.start(&[("user", "ada")]).await;
    assert!(shown(&[client.next().await.unwrap()]).starts_with("E[28000: this server speaks TLS only"));
    assert_eq!(client.next().await, None);
}
