//! Credentials, and the principal that they authenticate.

use crate::CallerToken;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// A password or token. It prints as `***`, so that it does not get into logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The plain text, for verification only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The client certificate of a TLS connection, followed by its chain (DER). TLS has verified that the client has the
/// key, not that the certificate is trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate(Vec<Vec<u8>>);

impl ClientCertificate {
    /// The certificates of a connection; `None` without any.
    pub fn shown<'a>(chain: impl IntoIterator<Item = &'a [u8]>) -> Option<Arc<Self>> {
        let chain: Vec<Vec<u8>> = chain.into_iter().map(<[u8]>::to_vec).collect();
        (!chain.is_empty()).then(|| Arc::new(Self(chain)))
    }

    /// The certificate and its chain.
    pub fn chain(&self) -> &[Vec<u8>] {
        &self.0
    }
}

crate::debug_fields!(ClientCertificate {});

/// Credentials of a client.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// No credentials; accepted only without configured users.
    Anonymous,
    /// User name and password (HTTP Basic, Flight's BasicAuth, PostgreSQL, MySQL).
    Password { user: String, password: Secret },
    /// A token: issued by this server, from the configuration, or of an identity provider.
    Bearer(Secret),
    /// A client certificate, and the user name that the client asks for.
    Certificate { certificate: Arc<ClientCertificate>, user: Option<String> },
}

impl Credentials {
    /// Uses the certificate of the connection if there are no other credentials.
    #[must_use]
    pub fn or_certificate(self, certificate: Option<&Arc<ClientCertificate>>) -> Self {
        match (self, certificate) {
            (Self::Anonymous, Some(certificate)) => {
                Self::Certificate { certificate: Arc::clone(certificate), user: None }
            }
            (other, _) => other,
        }
    }
}

/// Claims of an identity provider about a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claims {
    pub issuer: String,
    /// Roles in addition to those granted in the server.
    pub roles: BTreeSet<String>,
    /// Whether the caller is an administrator.
    pub admin: bool,
    /// Whether the caller may be a local user of the server; if not, a caller with the name of one is refused.
    pub local_users: bool,
}

/// An authenticated caller. Two principals are equal, and share sessions and results, if their names and claims are:
/// credentials, address and expiry do not count.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The user's name, `anonymous` without authentication.
    pub name: String,
    /// Whether the caller proved the name.
    pub authenticated: bool,
    /// The claims of an identity provider, if it authenticated the caller.
    pub claims: Option<Arc<Claims>>,
    /// Expiry of the credentials, and of their sessions.
    pub expires: Option<SystemTime>,
    /// SHA-256 of a revocable token; revoking it ends the session.
    pub token: Option<[u8; 32]>,
    /// The client certificate, which may be revoked.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// The client's address, if it is connected over a network.
    pub address: Option<IpAddr>,
    /// The token of an identity provider, for other servers that accept it.
    pub bearer: Option<Arc<CallerToken>>,
}

impl Principal {
    /// The caller of a server without users.
    pub fn anonymous() -> Self {
        Self { authenticated: false, ..Self::user("anonymous") }
    }

    /// A caller that proved its name.
    pub fn user(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            authenticated: true,
            claims: None,
            expires: None,
            token: None,
            certificate: None,
            address: None,
            bearer: None,
        }
    }

    /// A caller authenticated by an identity provider.
    pub fn claimed(name: impl Into<String>, claims: Claims, expires: SystemTime) -> Self {
        Self { claims: Some(Arc::new(claims)), expires: Some(expires), ..Self::user(name) }
    }

    /// Adds the client's address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Adds the token to forward; this principal owns it.
    #[must_use]
    pub fn with_bearer(self, token: Option<Secret>) -> Self {
        Self { bearer: token.map(CallerToken::new), ..self }
    }

    /// The token to forward, if there is one and it is still held.
    pub fn passed_token(&self) -> Option<Secret> {
        self.bearer.as_ref()?.token()
    }

    /// Whether the credentials have ceased to be valid.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn identity(&self) -> (&str, bool, Option<&Claims>) {
        (&self.name, self.authenticated, self.claims.as_deref())
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}
