//! Who is asking: credentials as they arrive, and the principal that they turn into.

use std::fmt;

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

/// What a client showed to say who it is.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// Nothing at all; accepted only where the server has no users configured.
    Anonymous,
    /// User name and password (HTTP Basic, Flight's BasicAuth, PostgreSQL, MySQL).
    Password { user: String, password: Secret },
    /// A token that this server issued, or one from the configuration.
    Bearer(Secret),
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    /// The user's name, `anonymous` where nobody had to say it.
    pub name: String,
    /// Whether the caller proved the name.
    pub authenticated: bool,
}

impl Principal {
    /// The caller of a server without users.
    pub fn anonymous() -> Self {
        Self { name: "anonymous".to_owned(), authenticated: false }
    }

    /// A caller that proved its name.
    pub fn user(name: impl Into<String>) -> Self {
        Self { name: name.into(), authenticated: true }
    }
}
