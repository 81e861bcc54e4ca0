//! Fetches an issuer's keys and their address. Only configured addresses are used; redirects are not followed.

use super::bad;
use super::config::{JwtConfig, Source};
use crate::Error;
use crate::outgoing::{self, Question};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;
use url::Url;

/// Timeout of one document.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fetches the keys of one issuer.
#[derive(Clone)]
pub(super) struct Fetcher {
    config: JwtConfig,
    source: Source,
    /// `None` if nothing is fetched over TLS.
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
                let tls =
                    outgoing::tls(config.ca_file.as_deref()).map_err(|reason| bad(&config.issuer, reason))?;
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
        outgoing::ask(url, self.tls.as_ref(), Question::default(), PATIENCE).await
    }
}
