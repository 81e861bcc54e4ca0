//! TLS connections of the client.

use super::{Error, Identity, Result, Target};
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::Service;

/// Encrypted bytes that are read at once: rustls by itself reads 4 KiB.
const RECEIVE_BUFFER: usize = 256 << 10;

type Encrypted = TlsStream<BufReader<TcpStream>>;
type Connecting = Pin<Box<dyn Future<Output = io::Result<TokioIo<Encrypted>>> + Send>>;

/// A TLS connector that trusts `ca_file`, or else the system's authorities.
///
/// # Errors
/// [`Error::Authorities`] if there is none, or the file cannot be read; [`Error::Identity`] for a certificate that cannot be shown.
pub(super) fn connector(
    target: &Target,
) -> Result<
    impl Service<Uri, Response = TokioIo<Encrypted>, Error = io::Error, Future = Connecting> + Send + use<>,
> {
    let connector = TlsConnector::from(Arc::new(config(target)?));
    Ok(tower::service_fn(move |uri: Uri| -> Connecting {
        let connector = connector.clone();
        Box::pin(async move { connect(&connector, &uri).await.map(TokioIo::new) })
    }))
}

async fn connect(connector: &TlsConnector, uri: &Uri) -> io::Result<Encrypted> {
    // IPv6 addresses stand in brackets.
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or_default())).await?;
    stream.set_nodelay(true)?;
    connector.connect(name, BufReader::with_capacity(RECEIVE_BUFFER, stream)).await
}

fn config(target: &Target) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Authorities(error.to_string()))?
        .with_root_certificates(authorities(target.ca_file.as_deref())?);
    let mut config = match &target.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = load_identity(identity)?;
            let refuse = |error: rustls::Error| Error::Identity(error.to_string());
            builder.with_client_auth_cert(chain, key).map_err(refuse)?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

fn load_identity(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let refuse = |path: &Path, reason: String| Error::Identity(format!("`{}`: {reason}", path.display()));
    let certificate = identity.certificate.as_path();
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| refuse(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(refuse(certificate, "it holds no certificate in PEM form".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|_| {
        refuse(&identity.key, "it holds no private key in PEM form without a password".to_owned())
    })?;
    Ok((chain, key))
}

fn authorities(ca_file: Option<&Path>) -> Result<RootCertStore> {
    let mut authorities = RootCertStore::empty();
    let Some(path) = ca_file else {
        let found = rustls_native_certs::load_native_certs();
        // Some that cannot be read are usual; those that can be read may do.
        authorities.add_parsable_certificates(found.certs);
        let why =
            found.errors.first().map_or_else(|| "this machine has none".to_owned(), ToString::to_string);
        return match authorities.is_empty() {
            true => Err(Error::Authorities(format!("{why}; name a file of them with `--ca-file`"))),
            false => Ok(authorities),
        };
    };
    let refuse = |reason: String| Error::Authorities(format!("`{}`: {reason}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        authorities.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    match authorities.is_empty() {
        true => Err(refuse("it holds no certificate in PEM form".to_owned())),
        false => Ok(authorities),
    }
}
