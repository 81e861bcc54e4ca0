//! Encrypted connections.

use super::{Client, Port, shown};
use crate::Choices;
use bowshot_api::Limits;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tls").join(name)
}

async fn port() -> Port {
    let chain = CertificateDer::pem_file_iter(file("first.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(file("first.key")).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Port::open(Limits::default(), true, Choices { tls: Some(Arc::new(tls)), cleartext: false }).await
}

async fn encrypt(stream: TcpStream, alpn: &[&[u8]]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file("ca.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

async fn log_in(mut client: Client<TlsStream<TcpStream>>) {
    client.start(&[("user", "ada")]).await;
    assert_eq!(client.next().await.unwrap(), ('R', vec![0, 0, 0, 3]));
    client.send(b'p', b"pw\0").await;
    client.until_ready().await;
    assert_eq!(client.query("rows 1").await, "T[n 20] D[0] C[ROWS] ZI");
}

#[tokio::test]
async fn a_client_asks_for_encryption_and_gets_it() {
    let port = port().await;
    for alpn in [&[][..], &[b"postgresql".as_ref()]] {
        let mut stream = port.raw().await.0;
        stream.write_all(&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'S');
        log_in(Client(encrypt(stream, alpn).await.unwrap())).await;
    }
}

#[tokio::test]
async fn a_client_begins_encrypted_if_it_names_the_protocol() {
    let port = port().await;
    log_in(Client(encrypt(port.raw().await.0, &[b"postgresql"]).await.unwrap())).await;
    if let Ok(stream) = encrypt(port.raw().await.0, &[]).await {
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
