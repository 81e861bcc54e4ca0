//! Configuration of users and login methods. Passwords are hashes only; there is no key for a clear-text password.

use crate::{Error, JwtConfig, LdapConfig};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Users, fixed tokens, identity providers and directories. Without any of them the server takes every caller as `anonymous`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessConfig {
    /// Users that log in with a password.
    #[serde(default)]
    pub users: Vec<UserConfig>,
    /// Tokens that are valid as long as they are configured.
    #[serde(default)]
    pub tokens: Vec<TokenConfig>,
    /// Identity providers.
    #[serde(default)]
    pub jwt: Vec<JwtConfig>,
    /// Directories.
    #[serde(default)]
    pub ldap: Vec<LdapConfig>,
}

/// A user with a password.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// Name, compared as written.
    pub name: String,
    /// Argon2 hash in PHC form (`$argon2id$v=19$…`), as `bowshot hash-password` prints it. A user without one logs in by
    /// certificate or token alone.
    pub password_hash: Option<String>,
    /// Roles in addition to those granted with SQL.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Whether the user is an administrator.
    #[serde(default)]
    pub admin: bool,
    /// Attributes for policies.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// A fixed token.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConfig {
    /// Whose token it is; needs no entry under `users`.
    pub user: String,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Additional roles of the user.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Whether that user may do everything.
    #[serde(default)]
    pub admin: bool,
}

impl AccessConfig {
    /// Reads a file of users and tokens.
    ///
    /// # Errors
    /// When the file cannot be read, is not TOML, holds anything unknown, or nobody.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count();
            Error::Malformed { path: path.to_owned(), line, message: error.message().to_owned() }
        })?;
        if let Some(folder) = path.parent() {
            config.place(folder);
        }
        if config.is_empty() { Err(Error::Nobody { path: path.to_owned() }) } else { Ok(config) }
    }

    /// Resolves relative file names against `folder`.
    pub fn place(&mut self, folder: &Path) {
        for issuer in &mut self.jwt {
            issuer.place(folder);
        }
        for directory in &mut self.ldap {
            directory.place(folder);
        }
    }

    /// Adds the entries of another part of the configuration; duplicates are found when the server starts.
    pub fn extend(&mut self, other: Self) {
        self.users.extend(other.users);
        self.tokens.extend(other.tokens);
        self.jwt.extend(other.jwt);
        self.ldap.extend(other.ldap);
    }

    /// Whether no user is configured: callers are anonymous then.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.tokens.is_empty() && self.jwt.is_empty() && self.ldap.is_empty()
    }
}

bowshot_api::debug_fields!(UserConfig { name });

bowshot_api::debug_fields!(TokenConfig { user });
