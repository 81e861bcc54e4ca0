//! Tokens of identity providers: JSON Web Tokens (RFC 7519) whose signatures are checked with the keys that the provider
//! publishes (JWKS, RFC 7517), as OpenID Connect and OAuth access tokens have it (RFC 9068).
//!
//! ```text
//! token ─► token.rs   parts, header, claims; nothing of it is believed yet
//!            │ issuer
//!            ▼
//!          issuer.rs  the keys of this issuer, fetched (fetch.rs) and kept within limits
//!            │
//!            ▼
//!          keys.rs    one key, one allowed algorithm, one signature
//!            │
//!            ▼
//!          claims.rs  for us, now, from whom: who it is, and which roles
//! ```
//!
//! Only signatures with a public key count: `none` and those with a shared secret are no algorithms here. The cryptography
//! is AWS-LC's, which TLS has brought along; what is ours is which key, which algorithm and which claims.

mod claims;
mod config;
mod fetch;
mod issuer;
mod keys;
mod token;

pub use config::JwtConfig;

use crate::Error;
use bowshot_api::{ErrorKind, Principal, Secret};
use issuer::Issuer;
use std::time::SystemTime;
use token::Unverified;

/// All issuers of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Issuers(Vec<Issuer>);

impl Issuers {
    pub(crate) fn new(configs: Vec<JwtConfig>) -> Result<Self, Error> {
        let mut issuers: Vec<Issuer> = Vec::with_capacity(configs.len());
        for config in configs {
            let issuer = Issuer::new(config)?;
            if issuers.iter().any(|other| other.name() == issuer.name()) {
                return Err(bad(issuer.name(), "it is listed twice"));
            }
            issuers.push(issuer);
        }
        Ok(Self(issuers))
    }

    /// Whether these are the issuers of a configuration.
    pub(crate) fn are(&self, configs: &[JwtConfig]) -> bool {
        self.0.iter().map(Issuer::config).eq(configs)
    }

    /// Whether one of them has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|issuer| issuer.name() == name)
    }

    /// Whether a text may be a token of an issuer; what is none is looked at no further.
    pub(crate) fn may_have_made(&self, token: &Secret) -> bool {
        !self.0.is_empty() && token::has_form(token.expose())
    }

    /// Who shows a token. Keys that are not there yet are fetched, which takes seconds at most.
    ///
    /// # Errors
    /// `Unauthenticated`. Why, only the log says until the signature is known to be good.
    pub(crate) async fn verify(&self, token: &Secret) -> bowshot_api::Result<Principal> {
        let refuse = |reason: &str| {
            tracing::debug!(reason, "a token was refused");
            crate::refused()
        };
        let shown = token;
        let token = Unverified::read(token.expose()).map_err(|reason| refuse(&reason))?;
        let issuer = self.0.iter().find(|issuer| Some(issuer.name()) == token.issuer());
        let issuer = issuer.ok_or_else(|| refuse("nobody of this name issues tokens for this server"))?;
        issuer.check_signature(&token).await.map_err(|reason| refuse(&reason))?;
        let principal = issuer.read_claims(&token, SystemTime::now()).map_err(|reason| {
            tracing::debug!(reason, "a token was refused");
            bowshot_api::Error::new(ErrorKind::Unauthenticated, format!("the token is refused: {reason}"))
                .with_hint("get another one from the identity provider")
        })?;
        Ok(principal.with_bearer(Some(shown.clone())))
    }
}

fn bad(issuer: &str, reason: impl Into<String>) -> Error {
    Error::BadIssuer { issuer: issuer.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
