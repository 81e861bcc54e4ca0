//! Passwords that a directory knows (LDAP, RFC 4511): it is asked by a bind with the user's own name and password, and tells
//! the groups that the user is in. Nothing of it is kept but, for seconds, that a password was right.
//!
//! ```text
//! name, password ─► here         whose directories may be asked; what was right a moment ago
//!                    │
//!                    ▼
//!                   directory.rs one conversation, within limits of time and number: find, bind, groups
//!                    │
//!                    ▼
//!                   template.rs  a name in a DN or a filter is a value there, whatever characters it has
//! ```
//!
//! A password never goes over a connection that others can read, unless the operator says so. An empty one is asked about
//! never, since a bind without a password succeeds as nobody in particular. A directory that gives no answer lets nobody in.

mod config;
mod directory;
mod remembered;
mod template;

pub use config::LdapConfig;

use crate::Error;
use crate::authenticator::check_name;
use crate::stored::MAX_PASSWORD_BYTES;
use bowshot_api::{ErrorKind, Principal, Secret};
use directory::{Directory, Verdict};
use remembered::Remembered;
use std::time::{Instant, SystemTime};

/// All directories of the configuration, in its order.
#[derive(Debug)]
pub(crate) struct Directories {
    all: Vec<Directory>,
    remembered: Remembered,
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
        Ok(Self { all, remembered: Remembered::new()? })
    }

    /// Whether these are the directories of a configuration.
    pub(crate) fn are(&self, configs: &[LdapConfig]) -> bool {
        self.all.iter().map(Directory::config).eq(configs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them has this name.
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

    /// Who has shown this password a moment ago, and was right.
    pub(crate) fn remembered(&self, user: &str, password: &Secret) -> Option<Principal> {
        let found = self.remembered.find(user, password, Instant::now());
        found.filter(|principal| !principal.has_expired(SystemTime::now()))
    }

    /// Who has this name and password. The first directory that knows the name decides.
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
    bowshot_api::Error::new(
        ErrorKind::Unavailable,
        "the directory that knows the passwords of this server's users gives no answer",
    )
    .with_hint("try again; the reason is in the server's log")
}

fn bad(url: &str, reason: impl Into<String>) -> Error {
    Error::BadDirectory { url: url.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
