//! Password hashing and verification. Each check takes a core and 19 MiB; callers limit concurrency.

use crate::password_cache::PasswordCache;
use crate::password_record::{MAX_PASSWORD_BYTES, PasswordRecord};
use crate::scram::Verifier;
use crate::{Error, UserConfig};
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params};
use bowshot_api::{Scramble, Secret};
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Most memory that one check may take, in KiB: a mistyped cost must not take the machine down at the first login.
const MAX_MEMORY_KIB: u32 = 1 << 20;
/// Iterations of one hash.
const MAX_PASSES: u32 = 64;

/// The Argon2id hash of a password, with a random salt, in PHC form.
pub(crate) fn hash_argon2(password: &Secret) -> Result<String, Error> {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).map_err(Error::NoRandomness)?;
    let salt = SaltString::encode_b64(&salt).map_err(|_| Error::BadPassword("the salt cannot be encoded"))?;
    Argon2::default()
        .hash_password(password.expose().as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .map_err(|_| Error::BadPassword("the password cannot be hashed"))
}

/// The passwords of all users.
#[derive(Debug)]
pub(crate) struct Passwords {
    configured: RwLock<Users>,
    /// Users of the catalog.
    added: RwLock<Users>,
    right: PasswordCache,
}

#[derive(Debug, Default)]
struct Users {
    by_name: HashMap<String, PasswordRecord>,
    /// Users without a password.
    without: HashSet<String>,
    /// Stand-ins for unknown users, so that both take the same time. Users may have hashes of different costs: the
    /// name determines its stand-in.
    stand_ins: Vec<PasswordRecord>,
}

impl Users {
    fn configured(users: Vec<UserConfig>) -> Result<Self, Error> {
        let mut found = Self::default();
        for user in users {
            if found.by_name.contains_key(&user.name) || found.without.contains(&user.name) {
                return Err(Error::DuplicateUser { name: user.name });
            }
            let Some(hash) = user.password_hash else {
                found.without.insert(user.name);
                continue;
            };
            let stored = PasswordRecord::checked(&hash).map_err(|reason| Error::BadPasswordHash {
                name: user.name.clone(),
                reason: reason.to_owned(),
            })?;
            found.stand_ins.push(stored.clone());
            found.by_name.insert(user.name, stored);
        }
        Ok(found)
    }

    fn added(users: Vec<(String, Option<String>)>) -> Self {
        let mut found = Self::default();
        for (name, text) in users {
            match text {
                Some(text) => drop(found.by_name.insert(name, PasswordRecord::parse_trusted(&text))),
                None => drop(found.without.insert(name)),
            }
        }
        found.stand_ins = found.by_name.values().cloned().collect();
        found.stand_ins.sort_unstable_by(|one, other| one.argon2.cmp(&other.argon2));
        found
    }

    /// Replaces `users`; returns the names of removed users and changed passwords.
    fn replace(self, users: &RwLock<Self>) -> Vec<String> {
        let mut users = users.write();
        let before = std::mem::replace(&mut *users, self);
        let gone =
            before.by_name.into_iter().filter(|(name, stored)| users.by_name.get(name) != Some(stored));
        let gone = gone.map(|(name, _)| name);
        gone.chain(before.without.into_iter().filter(|name| !users.without.contains(name))).collect()
    }
}

/// The kind of a user on this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Password,
    /// A user without a password.
    Name,
    Nothing,
}

impl Passwords {
    pub(crate) fn new(users: Vec<UserConfig>) -> Result<Self, Error> {
        Ok(Self {
            configured: RwLock::new(Users::configured(users)?),
            added: RwLock::default(),
            right: PasswordCache::new()?,
        })
    }

    /// Whether `password` is that of `user`.
    ///
    /// # Errors
    /// When a hash that was checked at start-up cannot be read.
    pub(crate) fn matches(&self, user: &str, password: &Secret) -> bowshot_api::Result<bool> {
        let known = self.stored(user);
        let is_known = known.is_some();
        let Some(stored) = known.or_else(|| self.stand_in(user)) else { return Ok(false) };
        if password.expose().len() > MAX_PASSWORD_BYTES {
            return Ok(false);
        }
        if is_known && self.right.was(user, &stored, password) {
            return Ok(true);
        }
        let parsed = PasswordHash::new(&stored.argon2).map_err(|_| {
            bowshot_api::Error::internal("a password hash that was checked at start-up cannot be read")
        })?;
        let fits = Argon2::default().verify_password(password.expose().as_bytes(), &parsed).is_ok();
        if fits && is_known {
            self.right.note(user, &stored, password);
        }
        Ok(fits && is_known)
    }

    /// The verifier of `user`, and whether the user exists. `None` if the password itself is needed. Unknown users
    /// get the same kind of answer.
    pub(crate) fn verifier(&self, user: &str) -> Option<(Verifier, bool)> {
        let stand_in = self.stand_in(user).and_then(|stored| Some(stored.scram?.stand_in(user)));
        match self.stored(user) {
            Some(stored) => stored.scram.map(|verifier| (verifier, true)),
            None => stand_in.map(|verifier| (verifier, false)),
        }
    }

    /// Whether the password was that of the user before, and is still.
    pub(crate) fn was_right(&self, user: &str, password: &Secret) -> bool {
        password.expose().len() <= MAX_PASSWORD_BYTES
            && self.stored(user).is_some_and(|stored| self.right.was(user, &stored, password))
    }

    /// Takes scrambles of this password from now on, if it was the right one of `user` a moment ago.
    pub(crate) fn expect(&self, user: &str, password: &Secret) {
        if let Some(stored) = self.stored(user) {
            self.right.expect(user, &stored, password, Instant::now());
        }
    }

    /// Whether a scramble matches the password of `user`; `None` if scrambles are not accepted.
    pub(crate) fn made(&self, user: &str, scramble: &Scramble) -> Option<bool> {
        self.right.made(user, self.stored(user).as_ref(), scramble, Instant::now())
    }

    /// The kind of `user`.
    pub(crate) fn own(&self, user: &str) -> Own {
        if self.stored(user).is_some() {
            return Own::Password;
        }
        let without = |users: &RwLock<Users>| users.read().without.contains(user);
        if without(&self.configured) || without(&self.added) { Own::Name } else { Own::Nothing }
    }

    /// Configured users take precedence over the catalog's.
    fn stored(&self, user: &str) -> Option<PasswordRecord> {
        let configured = self.configured.read();
        match configured.by_name.get(user) {
            None if configured.without.contains(user) => None,
            None => self.added.read().by_name.get(user).cloned(),
            known => known.cloned(),
        }
    }

    /// Replaces the users of the catalog; returns the names of removed users and changed passwords.
    pub(crate) fn renew(&self, users: Vec<(String, Option<String>)>) -> Vec<String> {
        let gone = Users::added(users).replace(&self.added);
        self.right.forget(&gone);
        gone
    }

    /// Replaces the configured users; returns the names of removed users and changed passwords.
    ///
    /// # Errors
    /// When any of them is not fully understood: all stay as they are then.
    pub(crate) fn configure(&self, users: Vec<UserConfig>) -> Result<Vec<String>, Error> {
        let gone = Users::configured(users)?.replace(&self.configured);
        self.right.forget(&gone);
        Ok(gone)
    }

    fn stand_in(&self, user: &str) -> Option<PasswordRecord> {
        let digest = Sha256::digest(user.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let (configured, added) = (self.configured.read(), self.added.read());
        // Catalog users serve as stand-ins only without configured ones, since they change.
        let of = if configured.stand_ins.is_empty() { &added.stand_ins } else { &configured.stand_ins };
        let count = u64::try_from(of.len()).ok().filter(|count| *count > 0)?;
        of.get(usize::try_from(number % count).ok()?).cloned()
    }
}

/// Whether a text is an Argon2 hash that costs no more than a check may.
pub(crate) fn check_argon2(text: &str) -> Result<(), &'static str> {
    let hash = PasswordHash::new(text).map_err(|_| "it is not in PHC form")?;
    if Algorithm::try_from(hash.algorithm).is_err() {
        return Err("it is not an Argon2 hash");
    }
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err("salt or hash is missing");
    }
    let params = Params::try_from(&hash).map_err(|_| "its parameters are not those of Argon2")?;
    if params.m_cost() > MAX_MEMORY_KIB || params.t_cost() > MAX_PASSES {
        return Err("one check would take over 1 GiB or 64 passes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_password;

    #[test]
    fn a_hash_fits_its_password_and_no_other() {
        let hash = hash_password(&Secret::new("correct horse")).expect("hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(!hash.contains("horse"));
        let again = hash_password(&Secret::new("correct horse")).expect("hash");
        assert_ne!(hash, again, "the salt is random");
        let passwords = Passwords::new(vec![UserConfig {
            name: "ada".into(),
            password_hash: Some(hash),
            ..UserConfig::default()
        }])
        .expect("config");
        for (user, password, expected) in [
            ("ada", "correct horse", true),
            ("ada", "correct horse ", false),
            ("ada", "", false),
            ("Ada", "correct horse", false),
            ("", "correct horse", false),
        ] {
            assert_eq!(
                passwords.matches(user, &Secret::new(password)).expect("check"),
                expected,
                "{user:?} {password:?}"
            );
        }
    }

    #[test]
    fn who_is_not_there_proves_a_password_in_vain() {
        let user = |name: &str, password_hash: String| UserConfig {
            name: name.into(),
            password_hash: Some(password_hash),
            ..UserConfig::default()
        };
        let both = hash_password(&Secret::new("pw")).expect("hash");
        let passwords = Passwords::new(vec![user("ada", both.clone())]).expect("config");
        assert!(passwords.verifier("ada").is_some_and(|(_, own)| own));
        let (eve, own) = passwords.verifier("eve").expect("as for a user");
        assert!(!own && Some((eve, false)) == passwords.verifier("eve"));
        let older = both.split(' ').next().expect("the hash").to_owned();
        let passwords = Passwords::new(vec![user("ada", older)]).expect("config");
        assert!(passwords.verifier("ada").is_none() && passwords.verifier("eve").is_none());
        passwords.renew(vec![("bob".to_owned(), Some(both))]);
        assert!(passwords.verifier("bob").is_some_and(|(_, own)| own));
        assert!(Passwords::new(Vec::new()).expect("nobody").verifier("eve").is_none());
    }

    #[test]
    fn unusable_hashes_stop_start_up() {
        for (hash, reason) in [
            ("secret", "PHC form"),
            ("$2b$10$abcdefghijklmnopqrstuv", "PHC form"),
            ("$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo", "not an Argon2 hash"),
            ("$argon2id$v=19$m=19456,t=2,p=1", "missing"),
            ("$argon2id$v=19$m=2097152,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo", "1 GiB"),
        ] {
            let users = vec![UserConfig {
                name: "ada".into(),
                password_hash: Some(hash.into()),
                ..UserConfig::default()
            }];
            let error = Passwords::new(users).expect_err(hash).to_string();
            assert!(error.contains(reason), "{hash}: {error}");
            assert!(!error.contains(hash), "the message repeats the hash: {error}");
        }
    }
}
