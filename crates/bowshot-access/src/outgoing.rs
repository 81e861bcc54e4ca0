//! Questions to other services over HTTP/1.1: one address, one question, one answer, within limits of time and size. Nothing
//! else is followed, no redirect and no other address than one that the configuration allows.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Position, Url};

/// Bytes of an answer.
const MAX_BYTES: usize = 256 << 10;

/// What is asked: for a document, or about one.
#[derive(Debug, Default)]
pub(crate) struct Question {
    /// A text in JSON that is sent.
    pub(crate) body: Option<Bytes>,
    pub(crate) authorization: Option<HeaderValue>,
}

/// An address at which nobody on the way can put another answer: `https`, or `http` on this machine.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn private_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(format!("`{text}` is not https, and not of this machine")),
    }
}

/// Asks, and waits so long for the whole answer.
///
/// # Errors
/// The reason, for the log.
pub(crate) async fn ask(
    url: &Url,
    tls: Option<&TlsConnector>,
    question: Question,
    patience: Duration,
) -> Result<Vec<u8>, String> {
    let answer = timeout(patience, Box::pin(ask_slowly(url, tls, question))).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {patience:?}")));
    answer.map_err(|reason| format!("`{url}`: {reason}"))
}

async fn ask_slowly(url: &Url, tls: Option<&TlsConnector>, question: Question) -> Result<Vec<u8>, String> {
    let host = url.host_str().ok_or("it has no host")?;
    // IPv6 addresses stand in brackets.
    let name = host.trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().ok_or("it has no port")?;
    let stream = TcpStream::connect((name.as_str(), port)).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    if url.scheme() == "http" {
        return request(stream, url, question).await;
    }
    let tls = tls.ok_or("https was not prepared, since the first address is http")?;
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
    request(stream, url, question).await
}

async fn request(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    url: &Url,
    question: Question,
) -> Result<Vec<u8>, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let method = if question.body.is_some() { Method::POST } else { Method::GET };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("bowshot/", env!("CARGO_PKG_VERSION")));
    if question.body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(authorization) = question.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request =
        request.body(Full::new(question.body.unwrap_or_default())).map_err(|error| error.to_string())?;
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

/// TLS to a service that the authorities of a file vouch for, or those of this machine.
///
/// # Errors
/// The reason why there are none.
pub fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
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
