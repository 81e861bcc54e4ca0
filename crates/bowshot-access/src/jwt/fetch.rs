//! The documents of an issuer, over HTTP/1.1: one address, one answer, within limits of time and size. Nothing else is
//! followed, no redirect and no other address than one that the configuration allows.

use super::bad;
use super::config::{JwtConfig, Source};
use crate::Error;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Position, Url};

/// How long one document may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a document.
const MAX_BYTES: usize = 256 << 10;

/// What fetches the keys of one issuer.
#[derive(Clone)]
pub(super) struct Fetcher {
    config: JwtConfig,
    source: Source,
    /// Not made where nothing is fetched over TLS.
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").field("source", &self.source).finish_non_exhaustive()
    }
}

#[derive(Debug, Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

impl Fetcher {
    pub(super) fn new(config: &JwtConfig) -> Result<Self, Error> {
        let source = config.source()?;
        let tls = match &source {
            Source::File(_) => None,
            Source::Keys(url) | Source::Discovery(url)
                if url.scheme() == "http" && config.ca_file.is_none() =>
            {
                None
            }
            Source::Keys(_) | Source::Discovery(_) => {
                let tls = tls(config.ca_file.as_deref()).map_err(|reason| bad(&config.issuer, reason))?;
                Some(TlsConnector::from(Arc::new(tls)))
            }
        };
        Ok(Self { config: config.clone(), source, tls })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The key set as it is written.
    ///
    /// # Errors
    /// The reason, for the log.
    pub(super) async fn fetch(&self) -> Result<Vec<u8>, String> {
        match &self.source {
            Source::File(file) => {
                tokio::fs::read(file).await.map_err(|error| format!("`{}`: {error}", file.display()))
            }
            Source::Keys(url) => self.get(url).await,
            Source::Discovery(url) => {
                let found: Discovered = serde_json::from_slice(&self.get(url).await?)
                    .map_err(|error| format!("`{url}` gives no OpenID configuration: {error}"))?;
                if found.issuer != self.config.issuer {
                    return Err(format!("`{url}` is the configuration of another issuer"));
                }
                let keys = self.config.address(&found.jwks_uri).map_err(|error| error.to_string())?;
                self.get(&keys).await
            }
        }
    }

    async fn get(&self, url: &Url) -> Result<Vec<u8>, String> {
        let document = timeout(PATIENCE, Box::pin(self.get_slowly(url))).await;
        let document = document.unwrap_or_else(|_| Err(format!("no answer in {PATIENCE:?}")));
        document.map_err(|reason| format!("`{url}`: {reason}"))
    }

    async fn get_slowly(&self, url: &Url) -> Result<Vec<u8>, String> {
        let host = url.host_str().ok_or("it has no host")?;
        // IPv6 addresses stand in brackets.
        let name = host.trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().ok_or("it has no port")?;
        let stream = TcpStream::connect((name.as_str(), port)).await.map_err(|error| error.to_string())?;
        if url.scheme() == "http" {
            return request(stream, url).await;
        }
        let tls = self.tls.as_ref().ok_or("https was not prepared, since the first address is http")?;
        let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
        let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
        request(stream, url).await
    }
}

async fn request(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    url: &Url,
) -> Result<Vec<u8>, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let request = Request::get(path)
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("bowshot/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let answer = async move {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        if answer.status() != StatusCode::OK {
            return Err(format!("the answer is {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
        body.map(|body| body.to_bytes().to_vec()).map_err(|error| error.to_string())
    };
    // What drives the connection ends when the answer is read, since nobody can ask more then.
    let (answer, _ended) = futures::future::join(answer, connection).await;
    answer
}

fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut authorities = RootCertStore::empty();
    match ca_file {
        None => {
            // Some that cannot be read are usual; those that can be read may do.
            authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if authorities.is_empty() {
                return Err("this machine has no authorities; name a file of them in `ca_file`".to_owned());
            }
        }
        Some(file) => {
            let refuse = |reason: String| format!("`ca_file` {}: {reason}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| refuse(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
                authorities.add(certificate).map_err(|error| refuse(error.to_string()))?;
            }
            if authorities.is_empty() {
                return Err(refuse("it holds no certificate in PEM form".to_owned()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(authorities).with_no_client_auth())
}
