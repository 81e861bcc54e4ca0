//! Configuration of an issuer, and its validation.

use super::bad;
use super::keys::Algorithm;
use crate::{Error, http_client};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use url::Url;

/// Most seconds that the clocks of issuer and server may differ.
const MAX_SKEW_SECONDS: u64 = 600;

/// An issuer of tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtConfig {
    /// The exact value of claim `iss`.
    pub issuer: String,
    /// Accepted values of claim `aud`.
    pub audiences: Vec<String>,
    /// Of these the claim `azp` must be one; any will do where the list is empty.
    #[serde(default)]
    pub authorized_parties: Vec<String>,
    /// Address of the keys; without this and `jwks_file`, from `/.well-known/openid-configuration`.
    pub jwks_url: Option<String>,
    /// A file with the keys.
    pub jwks_file: Option<PathBuf>,
    /// Trusted authorities for the address (PEM) instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Accepted signature algorithms.
    #[serde(default = "all_algorithms")]
    pub algorithms: Vec<String>,
    /// Seconds that the clocks of issuer and server may differ.
    #[serde(default = "usual_skew")]
    pub clock_skew_seconds: u64,
    /// The claim that is the user's name.
    #[serde(default = "subject")]
    pub user_claim: String,
    /// Stands before that name, so that no token names a user of another kind.
    #[serde(default)]
    pub user_prefix: String,
    /// Whether tokens may name users that the server has of its own, and make their callers these users.
    #[serde(default)]
    pub local_users: bool,
    /// The claim that lists roles; dots lead into nested claims.
    pub roles_claim: Option<String>,
    /// Roles by claim values; others are ignored. Empty: claim values are role names.
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
    /// The claim value of administrators.
    pub admin_role: Option<String>,
}

fn all_algorithms() -> Vec<String> {
    Algorithm::ALL.iter().map(|algorithm| algorithm.name().to_owned()).collect()
}

fn usual_skew() -> u64 {
    60
}

fn subject() -> String {
    "sub".to_owned()
}

/// The source of keys.
#[derive(Debug, Clone)]
pub(super) enum Source {
    File(PathBuf),
    /// The keys themselves.
    Keys(Url),
    /// A document that names the address of the keys.
    Discovery(Url),
}

impl JwtConfig {
    /// The accepted algorithms.
    pub(super) fn algorithms(&self) -> Result<Vec<Algorithm>, Error> {
        let known = self.algorithms.iter().map(|name| {
            let found = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
            found.ok_or_else(|| {
                let names: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
                bad(&self.issuer, format!("invalid algorithm `{name}`: expected one of {}", names.join(", ")))
            })
        });
        let known: Vec<Algorithm> = known.collect::<Result<_, _>>()?;
        if known.is_empty() { Err(bad(&self.issuer, "`algorithms` is empty")) } else { Ok(known) }
    }

    /// The source of its keys.
    pub(super) fn source(&self) -> Result<Source, Error> {
        match (&self.jwks_file, &self.jwks_url) {
            (Some(_), Some(_)) => Err(bad(&self.issuer, "`jwks_file` and `jwks_url` exclude each other")),
            (Some(file), None) => Ok(Source::File(file.clone())),
            (None, Some(address)) => Ok(Source::Keys(self.address(address)?)),
            (None, None) => {
                let issuer = self.issuer.trim_end_matches('/');
                Ok(Source::Discovery(self.address(&format!("{issuer}/.well-known/openid-configuration"))?))
            }
        }
    }

    /// An address that cannot be intercepted: `https`, or `http` on this machine.
    pub(super) fn address(&self, text: &str) -> Result<Url, Error> {
        http_client::private_address(text).map_err(|reason| bad(&self.issuer, reason))
    }

    pub(crate) fn place(&mut self, folder: &Path) {
        for file in [&mut self.jwks_file, &mut self.ca_file].into_iter().flatten() {
            *file = folder.join(&*file);
        }
    }

    /// Checks across fields.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |reason: &str| Err(bad(&self.issuer, reason));
        if self.issuer.is_empty() {
            return refuse("`issuer` is empty");
        }
        if self.audiences.iter().all(String::is_empty) {
            return refuse("`audiences` is empty: tokens for other services would be taken");
        }
        if self.user_claim.is_empty() {
            return refuse("`user_claim` is empty");
        }
        if self.clock_skew_seconds > MAX_SKEW_SECONDS {
            return refuse("`clock_skew_seconds` is over ten minutes");
        }
        if self.roles_claim.is_none() && (self.admin_role.is_some() || !self.roles.is_empty()) {
            return refuse("`roles` and `admin_role` need `roles_claim`");
        }
        Ok(())
    }
}
