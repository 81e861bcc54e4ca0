//! Errors of the access configuration and of the system below it. Each stops start-up.

use std::path::PathBuf;

/// Why access could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with users cannot be read.
    #[error("cannot read the users file `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The users file is not valid TOML. The parser's error is dropped, since it shows the line, which may contain a
    /// secret.
    #[error("the users file `{path}` is not valid in line {line}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        line: usize,
        /// Why.
        message: String,
    },
    /// An empty users file: most likely a mistake, and it would let everybody in.
    #[error("the users file `{path}` lists no users")]
    Nobody {
        /// The file.
        path: PathBuf,
    },
    /// A name that is empty, too long or holds a character that credentials cannot carry.
    #[error("`{name}` is not a user name: 1 to 128 characters, no colon and no control characters")]
    BadName { name: String },
    /// Two entries for one user.
    #[error("user `{name}` is listed twice")]
    DuplicateUser { name: String },
    /// Two entries for one token.
    #[error("a token of user `{name}` is listed twice")]
    DuplicateToken { name: String },
    /// A password hash that is not an Argon2 hash that this server will verify.
    #[error("the password hash of user `{name}` cannot be used: {reason}")]
    BadPasswordHash {
        /// The user.
        name: String,
        /// Never contains the hash itself.
        reason: String,
    },
    /// A token hash that is not 64 hexadecimal digits.
    #[error("the token of user `{name}` is not a SHA-256 hash: 64 hexadecimal digits are wanted")]
    BadTokenHash {
        /// The user.
        name: String,
    },
    /// A reload would add the first user or remove the last one.
    #[error("cannot add the first user or remove the last one while the server runs")]
    Opened,
    /// An issuer of tokens that is not fully understood.
    #[error("the issuer `{issuer}` cannot be used: {reason}")]
    BadIssuer {
        /// As the configuration names it.
        issuer: String,
        reason: String,
    },
    /// A directory that is not fully understood.
    #[error("the directory `{url}` cannot be used: {reason}")]
    BadDirectory {
        /// As the configuration names it.
        url: String,
        reason: String,
    },
    /// A service that decides on statements and is not fully understood.
    #[error("the policy service cannot be used: {reason}")]
    InvalidPolicyService { reason: String },
    /// The key for secrets is missing or invalid.
    #[error("the key of `secrets.key` cannot be used: {reason}")]
    EncryptionKey {
        /// Never contains the key itself.
        reason: String,
    },
    /// Trusted authorities are invalid.
    #[error("the authorities of client certificates cannot be used: {reason}")]
    BadAuthority { reason: String },
    /// A password that cannot be hashed.
    #[error("{0}")]
    BadPassword(&'static str),
    /// The operating system gives no randomness.
    #[error("the operating system returned no random bytes: {0}")]
    NoRandomness(getrandom::Error),
}

impl From<Error> for bowshot_api::Error {
    fn from(error: Error) -> Self {
        let hint = match &error {
            Error::Unreadable { .. } => "check that the file exists and that the server may read it",
            Error::Malformed { .. } | Error::Nobody { .. } => {
                "write `[[users]]` entries with `name` and `password_hash`, `[[tokens]]` entries with `user` and `sha256`, `[[jwt]]` entries with `issuer` and `audiences`, or `[[ldap]]` entries with `url`"
            }
            Error::BadName { .. } => "choose another name",
            Error::DuplicateUser { .. } | Error::DuplicateToken { .. } => "remove one of the entries",
            Error::BadPasswordHash { .. } => "make one with `bowshot hash-password`",
            Error::BadTokenHash { .. } => "make one with `printf %s TOKEN | sha256sum`",
            Error::Opened => "restart the server",
            Error::BadIssuer { .. } => {
                "correct its `[[access.jwt]]` entry; the guide to identity has an example"
            }
            Error::BadDirectory { .. } => {
                "correct its `[[access.ldap]]` entry; the guide to identity has an example"
            }
            Error::InvalidPolicyService { .. } => {
                "correct the settings `access.decision_…`; the guide to access has an example"
            }
            Error::EncryptionKey { .. } => {
                "make one with `openssl rand -base64 32`, and name the file (`file:PATH`) or the variable (`env:NAME`) that it is in"
            }
            Error::BadAuthority { .. } => {
                "`tls.client_authority` and `tls.client_revoked` name files in PEM form that are up to date"
            }
            Error::BadPassword(_) => "choose a password of 1 to 1024 bytes without line breaks",
            Error::NoRandomness(_) => "run on a system with a working random device",
        };
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        bowshot_api::Error::invalid(message).with_hint(hint).with_source(error)
    }
}
