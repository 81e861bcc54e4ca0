//! What can be wrong with the configuration of access, and with the machine below it. Every one of them stops start-up.

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
    /// The file with users is not the TOML that it should be. The parser's own error is not kept, since it shows the
    /// line, and that line may hold a secret.
    #[error("the users file `{path}` is not valid in line {line}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Why.
        message: String,
    },
    /// A file with users that holds none: most likely a mistake, and taking it would let everybody in.
    #[error("the users file `{path}` lists nobody")]
    Nobody {
        /// The file.
        path: PathBuf,
    },
    /// A name that is empty, too long or holds a character that credentials cannot carry.
    #[error("`{name}` is not a user name: 1 to 128 characters, no colon and no control characters")]
    BadName {
        /// The name.
        name: String,
    },
    /// Two entries for one user.
    #[error("user `{name}` is listed twice")]
    DuplicateUser {
        /// The name.
        name: String,
    },
    /// Two entries for one token.
    #[error("a token of user `{name}` is listed twice")]
    DuplicateToken {
        /// The name.
        name: String,
    },
    /// A password hash that is not an Argon2 hash that this server will verify.
    #[error("the password hash of user `{name}` cannot be used: {reason}")]
    BadPasswordHash {
        /// The user.
        name: String,
        /// What is wrong with it; never the hash itself.
        reason: String,
    },
    /// A token hash that is not 64 hexadecimal digits.
    #[error("the token of user `{name}` is not a SHA-256 hash: 64 hexadecimal digits are wanted")]
    BadTokenHash {
        /// The user.
        name: String,
    },
    /// Users that are to be taken over by a server that serves, and leave it without any, or it has none.
    #[error("a server cannot begin or cease to have users while it serves")]
    Opened,
    /// An issuer of tokens that is not fully understood.
    #[error("the issuer `{issuer}` cannot be used: {reason}")]
    BadIssuer {
        /// As the configuration names it.
        issuer: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory that is not fully understood.
    #[error("the directory `{url}` cannot be used: {reason}")]
    BadDirectory {
        /// As the configuration names it.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A service that decides on statements and is not fully understood.
    #[error("the service that decides on statements cannot be used: {reason}")]
    BadDecider {
        /// What is wrong with it.
        reason: String,
    },
    /// A key for secrets that is not there, or is none.
    #[error("the key of `secrets.key` cannot be used: {reason}")]
    SealingKey {
        /// What is wrong with it; never the key itself.
        reason: String,
    },
    /// Authorities of clients' certificates that cannot be believed.
    #[error("the authorities of clients' certificates cannot be used: {reason}")]
    BadAuthority {
        /// What is wrong with them.
        reason: String,
    },
    /// A password that cannot be hashed.
    #[error("{0}")]
    BadPassword(&'static str),
    /// The operating system gives no randomness.
    #[error("the operating system gives no random bytes: {0}")]
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
                "correct its `[[access.jwt]]` entry; the guide to access has an example"
            }
            Error::BadDirectory { .. } => {
                "correct its `[[access.ldap]]` entry; the guide to access has an example"
            }
            Error::BadDecider { .. } => {
                "correct the settings `access.decision_…`; the guide to access has an example"
            }
            Error::SealingKey { .. } => {
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
