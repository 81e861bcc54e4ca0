//! HTTP/1.1 client for configured services: one address, limits of time and size, no redirects, no proxy.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, StatusCode, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use url::{Host, Url};

/// Bytes of an answer.
const MAX_BYTES: usize = 256 << 10;

/// What is asked: for a document, or about one.
#[derive(Debug, Default)]
pub(crate) struct Question {
    /// A text in JSON that is sent.
    pub(crate) body: Option<String>,
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

/// What asks services.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient(reqwest::Client);

impl HttpClient {
    /// For an address, and those that it names. TLS trusts the authorities of a file, or those of this machine.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(crate) fn new(url: &Url, ca_file: Option<&Path>) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("bowshot/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .tcp_nodelay(true)
            // A service that is asked now and then may have closed a connection that is used again.
            .pool_max_idle_per_host(0);
        let client = match url.scheme() == "http" && ca_file.is_none() {
            // On this machine, whose authorities need not be read then.
            true => client.tls_built_in_root_certs(false),
            false => client.use_preconfigured_tls(tls(ca_file)?),
        };
        client.build().map(Self).map_err(reason)
    }

    /// Asks, and waits so long for the whole answer.
    ///
    /// # Errors
    /// The reason, for the log.
    pub(crate) async fn ask(
        &self,
        url: &Url,
        question: Question,
        patience: Duration,
    ) -> Result<Vec<u8>, String> {
        let request = match question.body {
            Some(body) => self.0.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body),
            None => self.0.get(url.clone()),
        };
        let request = match question.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        };
        let answer = timeout(patience, Box::pin(answer(request.header(ACCEPT, "application/json")))).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {patience:?}")));
        answer.map_err(|reason| format!("`{url}`: {reason}"))
    }
}

async fn answer(request: RequestBuilder) -> Result<Vec<u8>, String> {
    let mut answer = request.send().await.map_err(reason)?;
    if answer.status() != StatusCode::OK {
        return Err(format!("the answer is {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(reason)? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(format!("the answer has more than {MAX_BYTES} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What went wrong, with its causes: the first one says no more than that it did.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
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
