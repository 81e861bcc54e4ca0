//! Turns credentials into a principal.

mod password_proof;

pub use self::password_proof::PasswordProof;

use crate::certificates::{self, ClientTrust};
use crate::jwt::Issuers;
use crate::ldap::Directories;
use crate::password::{Own, Passwords};
use crate::token::{self, FixedTokens, IssuedTokens, PersonalToken, PersonalTokens, TokenHash};
use crate::{AccessConfig, Error};
use bowshot_api::{Credentials, ErrorKind, Principal, Scramble, Secret};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Begins the name under which a token is sent as a password; no user's does.
const TOKEN_USER: &str = "token:";
/// Concurrent directory logins, without configured directories.
const DIRECTORY_CHECKS: usize = 8;
/// Longest user name, in characters.
const MAX_NAME_CHARS: usize = 128;

bowshot_api::defaults! {
    /// Options of logins.
    #[derive(Debug, Clone)]
    pub struct AccessOptions {
        /// How long an issued token is accepted.
        pub token_timeout: Duration = Duration::from_secs(24 * 60 * 60),
        /// Issued tokens per user; the oldest is dropped for a new one.
        pub max_tokens_per_user: usize = 10_000,
        /// Concurrent password checks; each takes one core and 19 MiB.
        pub max_password_checks: usize = 2,
    }
}

/// Checks credentials.
#[derive(Debug)]
pub struct Authenticator {
    /// `None` without configured users: all callers are anonymous.
    known: Option<Known>,
    password_checks: usize,
    directory_checks: usize,
    epoch: AtomicU64,
    /// Trusted client certificates.
    trust: Option<Arc<ClientTrust>>,
}

#[derive(Debug)]
struct Known {
    passwords: Passwords,
    fixed: RwLock<FixedTokens>,
    issued: Mutex<IssuedTokens>,
    personal: RwLock<PersonalTokens>,
    issuers: RwLock<Arc<Issuers>>,
    directories: RwLock<Arc<Directories>>,
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
        check_names(&config)?;
        // Verifies early that the system's randomness works.
        token::random()?;
        let directories = Directories::new(config.ldap)?;
        Ok(Self {
            directory_checks: directories.places().max(DIRECTORY_CHECKS),
            known: Some(Known {
                passwords: Passwords::new(config.users)?,
                fixed: RwLock::new(FixedTokens::new(config.tokens)?),
                issued: Mutex::new(IssuedTokens::new(options.token_timeout, options.max_tokens_per_user)),
                personal: RwLock::default(),
                issuers: RwLock::new(Arc::new(Issuers::new(config.jwt)?)),
                directories: RwLock::new(Arc::new(directories)),
            }),
            password_checks: options.max_password_checks.max(1),
            epoch: AtomicU64::new(0),
            trust: None,
        })
    }

    /// Accepts client certificates that `trust` verifies. Ignored without users.
    #[must_use]
    pub fn with_trust(self, trust: Option<Arc<ClientTrust>>) -> Self {
        Self { trust, ..self }
    }

    /// A server without users.
    pub fn anonymous() -> Self {
        let (password_checks, directory_checks) = (1, 1);
        Self { known: None, password_checks, directory_checks, epoch: AtomicU64::new(0), trust: None }
    }

    /// Password checks that run at once.
    pub fn password_checks(&self) -> usize {
        self.password_checks
    }

    /// Conversations with directories that go on at once.
    pub fn directory_checks(&self) -> usize {
        self.directory_checks
    }

    /// Whether a check needs a password hash.
    pub fn is_costly(&self, credentials: &Credentials) -> bool {
        match (&self.known, credentials) {
            (Some(known), Credentials::Password { user, password }) => {
                self.token_in(credentials).is_none() && !known.passwords.was_right(user, password)
            }
            _ => false,
        }
    }

    /// Whether callers need credentials.
    pub fn requires_credentials(&self) -> bool {
        self.known.is_some()
    }

    /// The token that credentials hold, and the user whose it must be. Clients that can send nothing but name and password
    /// send it as the password: with the user's name, or behind a name that no user can have, `token:`.
    pub fn token_in<'a>(&self, credentials: &'a Credentials) -> Option<(Option<&'a str>, &'a Secret)> {
        let known = self.known.as_ref()?;
        match credentials {
            Credentials::Anonymous | Credentials::Certificate { .. } => None,
            Credentials::Bearer(token) => Some((None, token)),
            Credentials::Password { user, password } => match user.strip_prefix(TOKEN_USER) {
                Some(user) => Some((Some(user).filter(|user| !user.is_empty()), password)),
                None => {
                    let is_token = token::is_personal(password) || known.issuers().may_have_made(password);
                    is_token.then_some((Some(user.as_str()), password))
                }
            },
        }
    }

    /// Authenticates a token of this server or of an identity provider, whose keys may have to be fetched.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub async fn verify_token(&self, user: Option<&str>, token: &Secret) -> bowshot_api::Result<Principal> {
        let Some(known) = &self.known else {
            return Ok(Principal::anonymous());
        };
        let issuers = known.issuers();
        let principal = match known.owner(token) {
            Some(principal) if self.still_knows(&principal) => principal,
            Some(_) => return Err(refused()),
            None if issuers.may_have_made(token) => issuers.verify(token).await?,
            None => return Err(refused()),
        };
        if user.is_some_and(|user| user != principal.name) { Err(refused()) } else { Ok(principal) }
    }

    /// Name and password, if a directory may have to check them: local users are not looked up there.
    pub fn left_to_directories<'a>(&self, credentials: &'a Credentials) -> Option<(&'a str, &'a Secret)> {
        let Credentials::Password { user, password } = credentials else { return None };
        let known = self.known.as_ref().filter(|known| known.may_be_elsewhere(user).is_some());
        known.map(|_| (user.as_str(), password))
    }

    /// The principal of a cached bind.
    pub fn remembers(&self, user: &str, password: &Secret) -> Option<Principal> {
        let known = self.known.as_ref()?;
        known.may_be_elsewhere(user)?;
        known.directories().remembered(user, password)
    }

    /// Checks a password against the directories, within seconds.
    ///
    /// # Errors
    /// `Unauthenticated`; `Unavailable` where a directory gives no answer.
    pub async fn ask_directories(&self, user: &str, password: &Secret) -> bowshot_api::Result<Principal> {
        let known = self.known.as_ref().ok_or_else(refused)?;
        let own = known.may_be_elsewhere(user).ok_or_else(refused)?;
        let directories = known.directories();
        let principal = directories.verify(user, password, own == Own::Name).await?;
        // The user may have become local, or the directory may have been removed.
        if known.may_be_elsewhere(user) == Some(own) && self.still_knows(&principal) {
            return Ok(principal);
        }
        Err(refused())
    }

    /// Turns credentials into a principal. A password costs tens of milliseconds of a core and 19 MiB: call it from a
    /// blocking thread, and [`Authenticator::password_checks`] times at once at most. Tokens of ours and anonymous callers cost microseconds; those of identity
    /// providers only [`Authenticator::verify_token`] knows.
    ///
    /// A server without users takes any credentials and calls the caller anonymous, because clients exist that always
    /// send some.
    ///
    /// # Errors
    /// `Unauthenticated` for whatever is wrong with the credentials, in the same words and the same time.
    pub fn verify(&self, credentials: &Credentials) -> bowshot_api::Result<Principal> {
        let Some(known) = &self.known else {
            return Ok(Principal::anonymous());
        };
        match credentials {
            Credentials::Anonymous => {
                Err(bowshot_api::Error::new(ErrorKind::Unauthenticated, "this server requires credentials")
                    .with_hint("connect with user and password, or with a bearer token"))
            }
            Credentials::Password { user, password } => {
                if known.passwords.matches(user, password)? {
                    Ok(Principal::user(user.as_str()))
                } else {
                    Err(refused())
                }
            }
            Credentials::Bearer(token) => {
                known.owner(token).filter(|principal| self.still_knows(principal)).ok_or_else(refused)
            }
            Credentials::Certificate { certificate, user } => {
                let trust = self.trust.as_ref().ok_or_else(refused)?;
                let principal = trust.identify(certificate, SystemTime::now())?;
                if user.as_ref().is_some_and(|user| *user != principal.name) {
                    return Err(certificates::refused("it names another user"));
                }
                Ok(principal)
            }
        }
    }

    /// Begins a SCRAM login of `user`. `None` if the password itself is needed. With directories that is so for all
    /// users, or the difference would reveal local names. Unknown names get an exchange that is refused at its end.
    pub fn proof(&self, user: &str) -> Option<PasswordProof> {
        if user.starts_with(TOKEN_USER) {
            return None;
        }
        let known = self.known.as_ref().filter(|known| known.directories().is_empty())?;
        let (verifier, own) = known.passwords.verifier(user)?;
        Some(PasswordProof::new(user, verifier, own))
    }

    /// Accepts scrambles of this password for a limited time, if it was verified here: not by a directory, and no
    /// token.
    pub fn expect_scrambles(&self, user: &str, password: &Secret) {
        if let Some(known) = &self.known {
            known.passwords.expect(user, password);
        }
    }

    /// Whether a scramble matches the password of `user`; `None` if scrambles are not accepted for it.
    pub fn made(&self, user: &str, scramble: &Scramble) -> Option<bool> {
        self.known.as_ref()?.passwords.made(user, scramble)
    }

    /// Whether the token or certificate of a principal is still valid.
    pub fn still_knows(&self, principal: &Principal) -> bool {
        self.known.as_ref().is_none_or(|known| known.still_holds(principal)) && self.still_trusts(principal)
    }

    fn still_trusts(&self, principal: &Principal) -> bool {
        principal.certificate.as_ref().is_none_or(|certificate| {
            let found = self.trust.as_ref().map(|trust| trust.identify(certificate, SystemTime::now()));
            found.is_some_and(|found| found.is_ok_and(|found| found == *principal))
        })
    }

    /// Whether the password that was proven is still the user's.
    pub fn still_holds(&self, proof: &PasswordProof) -> bool {
        let now = self.known.as_ref().and_then(|known| known.passwords.verifier(proof.user()));
        now.is_some_and(|(verifier, own)| own && proof.is_of(&verifier))
    }

    /// Replaces the users of the catalog. Removed users and changed passwords invalidate logins.
    pub fn renew(&self, users: Vec<(String, Option<String>)>, tokens: Vec<PersonalToken>) {
        let Some(known) = &self.known else { return };
        let gone = known.passwords.renew(users);
        let tokens = PersonalTokens::new(tokens);
        let mut personal = known.personal.write();
        let others = *personal != tokens;
        *personal = tokens;
        drop(personal);
        let mut issued = known.issued.lock();
        gone.iter().for_each(|user| issued.revoke(user));
        if others || !gone.is_empty() {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Replaces the configuration. Removed users and changed passwords invalidate logins.
    ///
    /// # Errors
    /// When any entry is not fully understood, or nobody is left: everything stays as it is then.
    pub fn configure(&self, config: AccessConfig) -> Result<(), Error> {
        let Some(known) = self.known.as_ref().filter(|_| !config.is_empty()) else {
            return Err(Error::Opened);
        };
        check_names(&config)?;
        let fixed = FixedTokens::new(config.tokens)?;
        let issuers = known.issuers();
        let others = if issuers.are(&config.jwt) { issuers } else { Arc::new(Issuers::new(config.jwt)?) };
        let directories = known.directories();
        let directories = if directories.are(&config.ldap) {
            directories
        } else {
            Arc::new(Directories::new(config.ldap)?)
        };
        let gone = known.passwords.configure(config.users)?;
        *known.fixed.write() = fixed;
        *known.issuers.write() = others;
        *known.directories.write() = directories;
        let mut issued = known.issued.lock();
        gone.iter().for_each(|user| issued.revoke(user));
        self.epoch.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Counts removals of users and tokens, and password changes.
    pub fn epoch(&self) -> u64 {
        let trusted = self.trust.as_ref().map_or(0, |trust| trust.generation());
        self.epoch.load(Ordering::Acquire).wrapping_add(trusted)
    }

    /// Issues a token; [`Authenticator::verify`] accepts it until it expires. Without users, tokens are meaningless
    /// and not stored.
    pub fn issue_token(&self, principal: &Principal) -> Secret {
        let Ok(token) = token::random() else {
            unreachable!("the system's randomness worked at start-up and cannot fail later")
        };
        if let Some(known) = self.known.as_ref().filter(|_| principal.authenticated) {
            // An issued token outlives the forwarded one.
            let principal = Principal { bearer: None, ..principal.clone() };
            let mut issued = known.issued.lock();
            issued.insert(token::hash(&token), &principal, Instant::now());
        }
        token
    }
}

impl Known {
    fn issuers(&self) -> Arc<Issuers> {
        Arc::clone(&self.issuers.read())
    }

    fn directories(&self) -> Arc<Directories> {
        Arc::clone(&self.directories.read())
    }

    /// The kind of a user that a directory may check; `None` for others.
    fn may_be_elsewhere(&self, user: &str) -> Option<Own> {
        let directories = self.directories();
        if directories.is_empty() {
            return None;
        }
        let own = self.passwords.own(user);
        (own != Own::Password && directories.may_know(user, own == Own::Name)).then_some(own)
    }

    fn owner(&self, token: &Secret) -> Option<Principal> {
        let hash = token::hash(token);
        if let Some(principal) = self.revocable(&hash) {
            return Some(principal);
        }
        let issued = self.issued.lock();
        issued.find(&hash, Instant::now()).filter(|principal| self.still_holds(principal)).cloned()
    }

    /// Whose token of the configuration or of the catalog this is.
    fn revocable(&self, hash: &TokenHash) -> Option<Principal> {
        let fixed = self.fixed.read();
        if let Some(user) = fixed.find(hash) {
            return Some(Principal { token: Some(*hash), ..Principal::user(user) });
        }
        let personal = self.personal.read();
        personal.find(hash, SystemTime::now())
    }

    /// Whether the token or certificate is still valid.
    fn still_holds(&self, principal: &Principal) -> bool {
        let vouched = principal.claims.as_ref().is_none_or(|claims| {
            self.issuers().has(&claims.issuer) || self.directories().has(&claims.issuer)
        });
        vouched && principal.token.is_none_or(|hash| self.revocable(&hash).as_ref() == Some(principal))
    }
}

/// The error for all wrong credentials.
pub fn refused() -> bowshot_api::Error {
    bowshot_api::Error::new(
        ErrorKind::Unauthenticated,
        "user, password or token is wrong, or the token has expired",
    )
    .with_hint("log in again with user and password")
}

fn check_names(config: &AccessConfig) -> Result<(), Error> {
    let names = config.users.iter().map(|user| &user.name);
    names.chain(config.tokens.iter().map(|token| &token.user)).try_for_each(|name| check_name(name))
}

/// Whether a user may be called so.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    // A colon ends the name in HTTP's Basic credentials, so such a user could never log in.
    let fits = !name.is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.chars().any(|c| c == ':' || c.is_control());
    if fits { Ok(()) } else { Err(Error::BadName { name: name.escape_default().to_string() }) }
}

#[cfg(test)]
mod tests;
