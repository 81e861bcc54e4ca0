//! Passwords: hashing, checking, and the gate that keeps a flood of wrong guesses from taking all cores and memory.

use crate::{Error, UserConfig};
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params};
use bowshot_api::{ErrorKind, Secret};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError, RwLock};

/// Longest password that is looked at, so that a client cannot make the server hash megabytes.
const MAX_PASSWORD_BYTES: usize = 1_024;
/// Most memory that one check may take, in KiB: a mistyped cost must not take the machine down at the first login.
const MAX_MEMORY_KIB: u32 = 1 << 20;
/// Most passes that one check may make.
const MAX_PASSES: u32 = 64;
/// Checks that may wait for a free place, as a multiple of the places.
const WAITING_PER_PLACE: usize = 64;

/// Hashes a password for the configuration: Argon2id with a random salt, in PHC form.
///
/// # Errors
/// For an empty, very long or multi-line password, and when there is no randomness for the salt.
pub fn hash_password(password: &Secret) -> Result<String, Error> {
    let password = password.expose();
    if password.is_empty() || password.len() > MAX_PASSWORD_BYTES {
        return Err(Error::BadPassword("a password has 1 to 1024 bytes"));
    }
    if password.contains(['\n', '\r', '\0']) {
        return Err(Error::BadPassword("a password has no line breaks and no zero bytes"));
    }
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).map_err(Error::NoRandomness)?;
    let salt = SaltString::encode_b64(&salt).map_err(|_| Error::BadPassword("the salt cannot be encoded"))?;
    Argon2::default()
        .hash_password(password.as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .map_err(|_| Error::BadPassword("the password cannot be hashed"))
}

/// The passwords of all users, checked behind the gate.
#[derive(Debug)]
pub(crate) struct Passwords {
    hashes: HashMap<String, String>,
    /// Those of users that were made while the server runs.
    added: RwLock<HashMap<String, String>>,
    /// Checked in place of the hash that an unknown user does not have, so that both take the same time. Users may have
    /// hashes of different costs: which one stands in depends on the name, and is the same at every attempt.
    stand_ins: Vec<String>,
    /// Passwords that were right, as they are told again without the cost of their hash: whoever logs in with one does not
    /// wait behind those who guess.
    right: Right,
    gate: Gate,
}

impl Passwords {
    pub(crate) fn new(users: Vec<UserConfig>, places: usize) -> Result<Self, Error> {
        let mut hashes = HashMap::with_capacity(users.len());
        let stand_ins: Vec<String> = users.iter().map(|user| user.password_hash.clone()).collect();
        for user in users {
            check_hash(&user)?;
            if hashes.insert(user.name.clone(), user.password_hash).is_some() {
                return Err(Error::DuplicateUser { name: user.name });
            }
        }
        Ok(Self {
            hashes,
            added: RwLock::default(),
            stand_ins,
            right: Right::new()?,
            gate: Gate::new(places.max(1)),
        })
    }

    /// Whether `password` is that of `user`.
    ///
    /// # Errors
    /// `LimitReached` when too many checks are waiting already.
    pub(crate) fn matches(&self, user: &str, password: &Secret) -> bowshot_api::Result<bool> {
        let known = self.hashes.get(user).cloned().or_else(|| self.added(user));
        let Some(hash) = known.clone().or_else(|| self.stand_in(user)) else {
            return Ok(false);
        };
        if password.expose().len() > MAX_PASSWORD_BYTES {
            return Ok(false);
        }
        if self.was_right(user, password) {
            return Ok(true);
        }
        let _place = self.gate.enter()?;
        let parsed = PasswordHash::new(&hash).map_err(|_| {
            bowshot_api::Error::internal("a password hash that was checked at start-up cannot be read")
        })?;
        let fits = Argon2::default().verify_password(password.expose().as_bytes(), &parsed).is_ok();
        if fits && known.is_some() {
            self.right.note(user, password);
        }
        Ok(fits && known.is_some())
    }

    /// Whether the password was that of the user before.
    pub(crate) fn was_right(&self, user: &str, password: &Secret) -> bool {
        password.expose().len() <= MAX_PASSWORD_BYTES && self.right.was(user, password)
    }

    fn added(&self, user: &str) -> Option<String> {
        self.added.read().unwrap_or_else(PoisonError::into_inner).get(user).cloned()
    }

    /// Puts other users in the place of those that were added before; gives back who is gone or has another password.
    pub(crate) fn renew(&self, users: Vec<(String, String)>) -> Vec<String> {
        // Whoever is configured has no second password.
        let users = users.into_iter().filter(|(name, _)| !self.hashes.contains_key(name));
        let users: HashMap<String, String> = users.collect();
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *added, users);
        let gone = before.into_iter().filter(|(name, hash)| added.get(name) != Some(hash));
        let gone: Vec<String> = gone.map(|(name, _)| name).collect();
        self.right.forget(&gone);
        gone
    }

    fn stand_in(&self, user: &str) -> Option<String> {
        let digest = Sha256::digest(user.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        // Only where no user is configured do others stand in, who come and go.
        let mut of: Vec<&String> = self.stand_ins.iter().collect();
        if of.is_empty() {
            of = added.values().collect();
            of.sort_unstable();
        }
        let count = u64::try_from(of.len()).ok().filter(|count| *count > 0)?;
        of.get(usize::try_from(number % count).ok()?).map(|hash| (*hash).clone())
    }
}

/// What tells a right password again. Its digests say nothing outside of this process, which has the key.
struct Right {
    key: [u8; 32],
    digests: Mutex<HashMap<String, [u8; 32]>>,
}

impl Right {
    fn new() -> Result<Self, Error> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(Error::NoRandomness)?;
        Ok(Self { key, digests: Mutex::default() })
    }

    fn digest(&self, user: &str, password: &Secret) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update((user.len() as u64).to_be_bytes());
        hash.update(user.as_bytes());
        hash.update(password.expose().as_bytes());
        hash.finalize().into()
    }

    fn note(&self, user: &str, password: &Secret) {
        let digest = self.digest(user, password);
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), digest);
    }

    fn forget(&self, users: &[String]) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        digests.retain(|user, _| !users.contains(user));
    }

    fn was(&self, user: &str, password: &Secret) -> bool {
        let digest = self.digest(user, password);
        let digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        // All bytes are compared, whichever is the first that differs.
        let differs =
            |known: &[u8; 32]| known.iter().zip(digest).fold(0, |all, (one, other)| all | (one ^ other));
        digests.get(user).is_some_and(|known| differs(known) == 0)
    }
}

impl std::fmt::Debug for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Right")
    }
}

fn check_hash(user: &UserConfig) -> Result<(), Error> {
    let bad = |reason: &str| Error::BadPasswordHash { name: user.name.clone(), reason: reason.to_owned() };
    let hash = PasswordHash::new(&user.password_hash).map_err(|_| bad("it is not in PHC form"))?;
    if Algorithm::try_from(hash.algorithm).is_err() {
        return Err(bad("it is not an Argon2 hash"));
    }
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err(bad("salt or hash is missing"));
    }
    let params = Params::try_from(&hash).map_err(|_| bad("its parameters are not those of Argon2"))?;
    if params.m_cost() > MAX_MEMORY_KIB || params.t_cost() > MAX_PASSES {
        return Err(bad("one check would take over 1 GiB or 64 passes"));
    }
    Ok(())
}

/// Lets a bounded number in; a bounded number waits; the rest is refused at once.
#[derive(Debug)]
struct Gate {
    places: usize,
    state: Mutex<Crowd>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Crowd {
    inside: usize,
    waiting: usize,
}

struct Place<'a>(&'a Gate);

impl Gate {
    fn new(places: usize) -> Self {
        Self { places, state: Mutex::default(), freed: Condvar::new() }
    }

    fn enter(&self) -> bowshot_api::Result<Place<'_>> {
        let mut crowd = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if crowd.inside >= self.places {
            if crowd.waiting >= self.places * WAITING_PER_PLACE {
                return Err(bowshot_api::Error::new(
                    ErrorKind::LimitReached,
                    "too many logins with a password at once",
                )
                .with_hint("log in once and use the bearer token that the server returns"));
            }
            crowd.waiting += 1;
            while crowd.inside >= self.places {
                crowd = self.freed.wait(crowd).unwrap_or_else(PoisonError::into_inner);
            }
            crowd.waiting -= 1;
        }
        crowd.inside += 1;
        Ok(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).inside -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_hash_fits_its_password_and_no_other() {
        let hash = hash_password(&Secret::new("correct horse")).expect("hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(!hash.contains("horse"));
        let again = hash_password(&Secret::new("correct horse")).expect("hash");
        assert_ne!(hash, again, "the salt is random");
        let passwords = Passwords::new(
            vec![UserConfig { name: "ada".into(), password_hash: hash, ..UserConfig::default() }],
            1,
        )
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
    fn unusable_passwords_are_refused() {
        for bad in ["", "two\nlines", "zero\0byte", &"x".repeat(1025)] {
            assert!(hash_password(&Secret::new(bad)).is_err(), "{bad:?}");
        }
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
            let users =
                vec![UserConfig { name: "ada".into(), password_hash: hash.into(), ..UserConfig::default() }];
            let error = Passwords::new(users, 1).expect_err(hash).to_string();
            assert!(error.contains(reason), "{hash}: {error}");
            assert!(!error.contains(hash), "the message repeats the hash: {error}");
        }
    }

    #[test]
    fn the_gate_bounds_who_is_inside_and_who_waits() {
        let gate = Gate::new(1);
        let place = gate.enter().expect("free");
        std::thread::scope(|scope| {
            let (entered, inside) = channel();
            for _ in 0..WAITING_PER_PLACE {
                let entered = entered.clone();
                let gate = &gate;
                scope.spawn(move || {
                    let _place = gate.enter().expect("waits for a place");
                    entered.send(gate.state.lock().expect("lock").inside).expect("send");
                });
            }
            while gate.state.lock().expect("lock").waiting < WAITING_PER_PLACE {
                std::thread::yield_now();
            }
            let refused = gate.enter().err().expect("nobody more may wait");
            assert_eq!(refused.kind(), ErrorKind::LimitReached);
            assert!(inside.try_recv().is_err(), "one got in while the place was taken");
            drop(place);
            let seen: Vec<usize> = inside.iter().take(WAITING_PER_PLACE).collect();
            assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
        });
        assert_eq!(gate.state.lock().expect("lock").inside, 0);
    }
}
