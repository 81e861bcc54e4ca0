//! Passwords checked by LDAP directories (RFC 4511): a bind with the user's name and password, and the user's groups.
//! Only successful binds are cached, for seconds.
//!
//! ```text
//! name, password ─► here         which directories; recent binds
//!                    │
//!                    ▼
//!                   directory.rs one login within time and size limits: find, bind, groups
//!                    │
//!                    ▼
//!                   template.rs  user names escaped as values in DNs and filters
//! ```
//!
//! Passwords are never sent over cleartext unless the operator allows it. Empty passwords are refused, since such a
//! bind succeeds as anonymous. A directory without an answer lets nobody in.

mod bind_cache;
mod config;
mod directory;
mod template;

pub use config::LdapConfig;

use crate::Error;
use crate::authenticator::check_name;
use crate::password_record::MAX_PASSWORD_BYTES;
use bind_cache::BindCache;
use bowshot_api::{ErrorKind, Principal, Secret};
use directory::{Directory, Verdict};
use std::time::{Instant, SystemTime};

/// All directories of the configuration, in its order.
#[derive(Debug)]
pub(crate) struct Directories {
    all: Vec<Directory>,
    remembered: BindCache,
}

impl Directories {
    pub(crate) fn new(configs: Vec<LdapConfig>) -> Result<Self, Error> {
        let mut all: Vec<Directory> = Vec::with_capacity(configs.len());
        for config in configs {
            let directory = Directory::new(config)?;
            if all.iter().any(|other| other.config() == directory.config()) {
                return Err(bad(directory.name(), "it is listed twice"));
            }
            all.push(directory);
        }
        Ok(Self { all, remembered: BindCache::new()? })
    }

    /// Whether these are the directories of a configuration.
    pub(crate) fn are(&self, configs: &[LdapConfig]) -> bool {
        self.all.iter().map(Directory::config).eq(configs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a directory has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|directory| directory.name() == name)
    }

    /// Conversations that may go on at once.
    pub(crate) fn places(&self) -> usize {
        self.all.iter().map(|directory| directory.config().max_connections).sum()
    }

    /// Whether one of them may be asked about a name; `own` for that of a user of the server's own.
    pub(crate) fn may_know(&self, user: &str, own: bool) -> bool {
        check_name(user).is_ok() && self.all.iter().any(|directory| !own || directory.config().local_users)
    }

    /// The principal of a cached bind.
    pub(crate) fn remembered(&self, user: &str, password: &Secret) -> Option<Principal> {
        let found = self.remembered.find(user, password, Instant::now());
        found.filter(|principal| !principal.has_expired(SystemTime::now()))
    }

    /// Checks a password. The first directory that knows the user decides.
    ///
    /// # Errors
    /// `Unauthenticated`; `Unavailable` where a directory gives no answer.
    pub(crate) async fn verify(
        &self,
        user: &str,
        password: &Secret,
        own: bool,
    ) -> bowshot_api::Result<Principal> {
        let bytes = password.expose().len();
        if bytes == 0 || bytes > MAX_PASSWORD_BYTES || password.expose().contains('\0') {
            return Err(crate::refused());
        }
        for directory in self.all.iter().filter(|directory| !own || directory.config().local_users) {
            match directory.verify(user, password).await {
                Ok(Verdict::Known(principal)) => {
                    let (until, principal) = (directory.remembers_until(Instant::now()), *principal);
                    self.remembered.note((user, password), &principal, until);
                    return Ok(principal);
                }
                Ok(Verdict::Wrong) => return Err(crate::refused()),
                Ok(Verdict::Unknown) => {}
                Err(reason) => {
                    directory.complain(&reason);
                    return Err(no_answer());
                }
            }
        }
        Err(crate::refused())
    }
}

fn no_answer() -> bowshot_api::Error {
    bowshot_api::Error::new(ErrorKind::Unavailable, "the directory that checks passwords does not answer")
        .with_hint("try again; the reason is in the server's log")
}

fn bad(url: &str, reason: impl Into<String>) -> Error {
    Error::BadDirectory { url: url.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
