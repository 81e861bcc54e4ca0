//! Encrypted connections, on the same address as others.

use super::client::{receive, request};
use super::{Running, choices};
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

/// A file of the clone whose tests cargo runs: another clone may have built them.
fn file(name: &str) -> PathBuf {
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&crate_folder).join("../../tests/data/tls").join(name)
}

fn server() -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(file("first.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(file("first.key")).unwrap();
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file("ca.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn one_address_takes_both() {
    let encrypted = Choices { tls: Some(Arc::new(server())), ..choices() };
    let running = Running::open(Limits::default(), true, encrypted).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector().connect(name, stream).await.unwrap();
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
