//! The one place that turns credentials into a principal.

use crate::password::Passwords;
use crate::token::{self, FixedTokens, IssuedTokens};
use crate::{AccessConfig, Error};
use bowshot_api::{Credentials, ErrorKind, Principal, Secret};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest user name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// What the operator can set about logins.
#[derive(Debug, Clone)]
pub struct AccessOptions {
    /// How long an issued token is accepted.
    pub token_timeout: Duration,
    /// Issued tokens that one user may hold at once; the oldest goes when one more is issued.
    pub max_tokens_per_user: usize,
    /// Password checks that run at once; each takes one core and 19 MiB while it runs.
    pub max_password_checks: usize,
}

impl Default for AccessOptions {
    fn default() -> Self {
        Self {
            token_timeout: Duration::from_secs(24 * 60 * 60),
            max_tokens_per_user: 10_000,
            max_password_checks: 2,
        }
    }
}

/// Knows who may come in.
#[derive(Debug)]
pub struct Authenticator {
    /// `None` where nobody is configured and everybody is anonymous.
    known: Option<Known>,
    password_checks: usize,
    epoch: AtomicU64,
}

#[derive(Debug)]
struct Known {
    passwords: Passwords,
    fixed: FixedTokens,
    issued: Mutex<IssuedTokens>,
}

impl Authenticator {
    /// Sets access up. With no user and no token configured, every caller is anonymous.
    ///
    /// # Errors
    /// When any entry is not fully understood, or the system gives no randomness for tokens.
    pub fn new(config: AccessConfig, options: &AccessOptions) -> Result<Self, Error> {
        if config.is_empty() {
            return Ok(Self::anonymous());
        }
        let names = config.users.iter().map(|user| &user.name);
        for name in names.chain(config.tokens.iter().map(|token| &token.user)) {
            check_name(name)?;
        }
        // Shows once, before anybody depends on it, that the system's randomness works.
        token::random()?;
        Ok(Self {
            known: Some(Known {
                passwords: Passwords::new(config.users, options.max_password_checks)?,
                fixed: FixedTokens::new(config.tokens)?,
                issued: Mutex::new(IssuedTokens::new(options.token_timeout, options.max_tokens_per_user)),
            }),
            password_checks: options.max_password_checks.max(1),
            epoch: AtomicU64::new(0),
        })
    }

    /// A server without users.
    pub fn anonymous() -> Self {
        Self { known: None, password_checks: 1, epoch: AtomicU64::new(0) }
    }

    /// Password checks that run at once.
    pub fn password_checks(&self) -> usize {
        self.password_checks
    }

    /// Whether to verify these takes a password check, with all that it costs.
    pub fn is_costly(&self, credentials: &Credentials) -> bool {
        match (&self.known, credentials) {
            (Some(known), Credentials::Password { user, password }) => {
                !known.passwords.was_right(user, password)
            }
            _ => false,
        }
    }

    /// Whether callers must prove who they are.
    pub fn requires_credentials(&self) -> bool {
        self.known.is_some()
    }

    /// Turns credentials into a principal. A password costs tens of milliseconds of a core, and may wait for other
    /// checks: call it from a blocking thread. Tokens and anonymous callers cost microseconds.
    ///
    /// A server without users takes any credentials and calls the caller anonymous, because clients exist that always
    /// send some.
    ///
    /// # Errors
    /// `Unauthenticated` for whatever is wrong with the credentials, in the same words and the same time; `LimitReached`
    /// when too many password checks wait already.
    pub fn verify(&self, credentials: &Credentials) -> bowshot_api::Result<Principal> {
        let Some(known) = &self.known else {
            return Ok(Principal::anonymous());
        };
        match credentials {
            Credentials::Anonymous => {
                Err(bowshot_api::Error::new(ErrorKind::Unauthenticated, "this server wants credentials")
                    .with_hint("connect with user and password, or with a bearer token"))
            }
            Credentials::Password { user, password } => {
                if known.passwords.matches(user, password)? {
                    Ok(Principal::user(user.as_str()))
                } else {
                    Err(refused())
                }
            }
            Credentials::Bearer(token) => known.owner(token).map(Principal::user).ok_or_else(refused),
        }
    }

    /// Puts other users in the place of those that were added before. Who is gone, or has another password, logs in anew.
    pub fn renew(&self, users: Vec<(String, String)>) {
        let Some(known) = &self.known else { return };
        let gone = known.passwords.renew(users);
        let mut issued = known.issued.lock().unwrap_or_else(PoisonError::into_inner);
        gone.iter().for_each(|user| issued.revoke(user));
        if !gone.is_empty() {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How often somebody has gone, or got another password.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Issues a token for a principal; [`Authenticator::verify`] takes it until it expires. On a server without users
    /// the token means nothing, as every token does there, and nothing is kept.
    pub fn issue_token(&self, principal: &Principal) -> Secret {
        let Ok(token) = token::random() else {
            unreachable!("the system's randomness worked at start-up and cannot fail later")
        };
        if let Some(known) = self.known.as_ref().filter(|_| principal.authenticated) {
            let mut issued = known.issued.lock().unwrap_or_else(PoisonError::into_inner);
            issued.insert(token::hash(&token), &principal.name, Instant::now());
        }
        token
    }
}

impl Known {
    fn owner(&self, token: &Secret) -> Option<String> {
        let hash = token::hash(token);
        if let Some(user) = self.fixed.find(&hash) {
            return Some(user.to_owned());
        }
        let issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.find(&hash, Instant::now()).map(str::to_owned)
    }
}

fn refused() -> bowshot_api::Error {
    bowshot_api::Error::new(
        ErrorKind::Unauthenticated,
        "user, password or token is wrong, or the token has expired",
    )
    .with_hint("log in again with user and password")
}

fn check_name(name: &str) -> Result<(), Error> {
    // A colon ends the name in HTTP's Basic credentials, so such a user could never log in.
    let fits = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.chars().any(|c| c == ':' || c.is_control());
    if fits { Ok(()) } else { Err(Error::BadName { name: name.escape_default().to_string() }) }
}

#[cfg(test)]
mod tests;
