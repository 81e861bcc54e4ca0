//! Fetches an issuer's keys and their address. Only configured addresses are used; redirects are not followed.

use super::bad;
use super::config::{JwtConfig, Source};
use crate::Error;
use crate::http_client::{HttpClient, Question};
use serde::Deserialize;
use std::time::Duration;
use url::Url;

/// Timeout of one document.
const PATIENCE: Duration = Duration::from_secs(5);

/// Fetches the keys of one issuer.
#[derive(Clone)]
pub(super) struct Fetcher {
    config: JwtConfig,
    source: Source,
    /// `None` if nothing is fetched.
    client: Option<HttpClient>,
}

bowshot_api::debug_fields!(Fetcher { source });

#[derive(Debug, Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

impl Fetcher {
    pub(super) fn new(config: &JwtConfig) -> Result<Self, Error> {
        let source = config.source()?;
        let client = match &source {
            Source::File(_) => None,
            Source::Keys(url) | Source::Discovery(url) => {
                let client = HttpClient::new(url, config.ca_file.as_deref());
                Some(client.map_err(|reason| bad(&config.issuer, reason))?)
            }
        };
        Ok(Self { config: config.clone(), source, client })
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
        let client = self.client.as_ref().ok_or("nothing is fetched from there")?;
        client.ask(url, Question::default(), PATIENCE).await
    }
}
