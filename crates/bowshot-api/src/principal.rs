//! Who is asking: credentials as they arrive, and the principal that they turn into.

use crate::CallerToken;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// A password or token. It prints as `***` so that it cannot reach a log by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that verifies it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The certificate that a client has shown on a connection, then those that lead to its authority, as TLS carries them
/// (DER). That the client has its key is proven; whether it is to be believed is not said here.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate(Vec<Vec<u8>>);

impl ClientCertificate {
    /// What a connection has shown; `None` for nothing.
    pub fn shown<'a>(chain: impl IntoIterator<Item = &'a [u8]>) -> Option<Arc<Self>> {
        let chain: Vec<Vec<u8>> = chain.into_iter().map(<[u8]>::to_vec).collect();
        (!chain.is_empty()).then(|| Arc::new(Self(chain)))
    }

    /// The certificate, then those that lead to its authority.
    pub fn chain(&self) -> &[Vec<u8>] {
        &self.0
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}

/// What a client showed to say who it is.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// Nothing at all; accepted only where the server has no users configured.
    Anonymous,
    /// User name and password (HTTP Basic, Flight's BasicAuth, PostgreSQL, MySQL).
    Password { user: String, password: Secret },
    /// A token: one that this server issued, one from the configuration, or one of an identity provider.
    Bearer(Secret),
    /// A certificate alone, and the user that it has to name where the client says one.
    Certificate { certificate: Arc<ClientCertificate>, user: Option<String> },
}

impl Credentials {
    /// What counts on a connection: a certificate says who is calling where nothing else does.
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

/// What an identity provider says of a caller, beside its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claims {
    /// Who says it.
    pub issuer: String,
    /// Roles that the caller has beside others.
    pub roles: BTreeSet<String>,
    /// Whether the caller may do everything.
    pub admin: bool,
    /// Whether the caller may be a user that the server has of its own. Else a caller with the name of one is nobody.
    pub local_users: bool,
}

/// An authenticated caller. Callers are the same, whose sessions and results are theirs, when name and claims are: which
/// credentials they have shown, from where, and until when those are valid, does not count.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The user's name, `anonymous` where nobody had to say it.
    pub name: String,
    /// Whether the caller proved the name.
    pub authenticated: bool,
    /// What an identity provider says, for those whom it has sent.
    pub claims: Option<Arc<Claims>>,
    /// When the credentials cease to be valid, and sessions with them.
    pub expires: Option<SystemTime>,
    /// SHA-256 of the token that was shown, for one that can be taken back, and sessions with it.
    pub token: Option<[u8; 32]>,
    /// The certificate that says who it is, which may be taken back too.
    pub certificate: Option<Arc<ClientCertificate>>,
    /// Where it has logged in from, as far as that is a place in a network.
    pub address: Option<IpAddr>,
    /// The token of an identity provider that was shown, for other servers that take it too.
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

    /// A caller whose name and roles an identity provider has said.
    pub fn claimed(name: impl Into<String>, claims: Claims, expires: SystemTime) -> Self {
        Self { claims: Some(Arc::new(claims)), expires: Some(expires), ..Self::user(name) }
    }

    /// The same with the place that it has logged in from.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// The same with the token that it has shown, held for it alone: it goes when this holder lets go of it.
    #[must_use]
    pub fn with_bearer(self, token: Option<Secret>) -> Self {
        Self { bearer: token.map(CallerToken::new), ..self }
    }

    /// The token that it has shown, if it is one that may be passed on and is still held.
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
