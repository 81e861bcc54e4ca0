//! Tokens of identity providers: JSON Web Tokens (RFC 7519) with keys from the provider (JWKS, RFC 7517), as OpenID
//! Connect and OAuth access tokens (RFC 9068).
//!
//! ```text
//! token ─► token.rs   parts, header, claims; not trusted yet
//!            │ issuer
//!            ▼
//!          issuer.rs  the keys of the issuer, fetched (fetch.rs) and cached
//!            │
//!            ▼
//!          keys.rs    one key, one allowed algorithm, one signature
//!            │
//!            ▼
//!          claims.rs  audience, validity, user, roles
//! ```
//!
//! Only public-key signatures are accepted, neither `none` nor shared secrets. AWS-LC verifies them; key, algorithm
//! and claims are checked here.

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

    /// Whether an issuer has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|issuer| issuer.name() == name)
    }

    /// Whether a text has the form of a token of an issuer.
    pub(crate) fn may_have_made(&self, token: &Secret) -> bool {
        !self.0.is_empty() && token::has_form(token.expose())
    }

    /// Authenticates a token. Missing keys are fetched, within seconds.
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
        let issuer = issuer.ok_or_else(|| refuse("its issuer is unknown"))?;
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
