//! Recently verified passwords, which are checked again without the cost of their hash, in clear or as
//! `caching_sha2_password` scrambles of MySQL. In memory only. An entry is valid for the password record that it was
//! checked against, so a login during a password change leaves nothing valid.

use crate::Error;
use crate::password_record::PasswordRecord;
use bowshot_api::{Scramble, Secret};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Scrambles are accepted for this time after the password itself.
const SCRAMBLES_LAST: Duration = Duration::from_secs(60 * 60);

type Digest32 = [u8; 32];

pub(crate) struct PasswordCache {
    key: Digest32,
    users: Mutex<HashMap<String, Known>>,
}

struct Known {
    /// The record that the password was checked against.
    stored: PasswordRecord,
    digest: Digest32,
    scrambles: Option<Scrambles>,
}

/// Digest that scrambles are checked against.
#[derive(Clone, Copy)]
struct Scrambles {
    /// The hash of the hash of the password.
    twice: Digest32,
    until: Instant,
}

impl PasswordCache {
    pub(crate) fn new() -> Result<Self, Error> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(Error::NoRandomness)?;
        Ok(Self { key, users: Mutex::default() })
    }

    /// Records that this password of `user` matches `stored`.
    pub(crate) fn note(&self, user: &str, stored: &PasswordRecord, password: &Secret) {
        let digest = self.digest(user, password);
        self.users.lock().insert(user.to_owned(), Known { stored: stored.clone(), digest, scrambles: None });
    }

    /// Accepts scrambles of this password, if it is cached for `user` with `stored`.
    pub(crate) fn expect(&self, user: &str, stored: &PasswordRecord, password: &Secret, now: Instant) {
        let digest = self.digest(user, password);
        let twice = sha256(&[&sha256(&[password.expose().as_bytes()])]);
        let mut users = self.users.lock();
        let known = users.get_mut(user).filter(|known| known.fits(stored, &digest));
        if let Some(known) = known {
            known.scrambles = Some(Scrambles { twice, until: now + SCRAMBLES_LAST });
        }
    }

    pub(crate) fn forget(&self, users: &[String]) {
        self.users.lock().retain(|user, _| !users.contains(user));
    }

    /// Whether this password is cached for `user` with `stored`.
    pub(crate) fn was(&self, user: &str, stored: &PasswordRecord, password: &Secret) -> bool {
        let digest = self.digest(user, password);
        self.users.lock().get(user).is_some_and(|known| known.fits(stored, &digest))
    }

    /// Whether a scramble matches the password of `user` with `stored`; `None`, in the same time, if that is not
    /// cached.
    pub(crate) fn made(
        &self,
        user: &str,
        stored: Option<&PasswordRecord>,
        scramble: &Scramble,
        now: Instant,
    ) -> Option<bool> {
        let known = {
            let users = self.users.lock();
            let known = users.get(user).filter(|known| Some(&known.stored) == stored);
            known.and_then(|known| known.scrambles)
        };
        let twice = known.filter(|scrambles| now < scrambles.until).map(|scrambles| scrambles.twice);
        // The time must not reveal who logs in often.
        let is_right = std::hint::black_box(is_made_of(&twice.unwrap_or(self.key), scramble));
        twice.and(Some(is_right))
    }

    fn digest(&self, user: &str, password: &Secret) -> Digest32 {
        let length = (user.len() as u64).to_be_bytes();
        sha256(&[&self.key, &length, user.as_bytes(), password.expose().as_bytes()])
    }
}

impl Known {
    /// Whether this is the password, and is so still.
    fn fits(&self, stored: &PasswordRecord, digest: &Digest32) -> bool {
        self.stored == *stored && self.digest.ct_eq(digest).into()
    }
}

bowshot_api::debug_fields!(PasswordCache {});

/// Whether a scramble was made with the password whose hash of the hash this is.
fn is_made_of(twice: &Digest32, scramble: &Scramble) -> bool {
    let mask = sha256(&[twice.as_slice(), &scramble.challenge]);
    let once: Vec<u8> = scramble.shown.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let is_same: bool = sha256(&[&once]).ct_eq(twice).into();
    is_same && scramble.shown.len() == twice.len()
}

fn sha256(parts: &[&[u8]]) -> Digest32 {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &[u8] = b"12345678901234567890";

    /// As clients compute it ("Caching_sha2_password information").
    fn scramble(password: &str) -> Scramble {
        let once = sha256(&[password.as_bytes()]);
        let mask = sha256(&[&sha256(&[&once]), CHALLENGE]);
        Scramble {
            challenge: CHALLENGE.to_vec(),
            shown: once.iter().zip(mask).map(|(one, other)| one ^ other).collect(),
        }
    }

    #[test]
    fn a_scramble_is_told_by_the_password_that_was_shown() {
        let (right, now) = (PasswordCache::new().expect("randomness"), Instant::now());
        let (stored, other) = (PasswordRecord::parse_trusted("one"), PasswordRecord::parse_trusted("other"));
        let (password, made) = (Secret::new("pw"), scramble("pw"));
        let told = |user: &str, stored: &PasswordRecord, scramble: &Scramble| {
            right.made(user, Some(stored), scramble, now)
        };
        right.expect("ada", &stored, &password, now);
        assert_eq!(told("ada", &stored, &made), None, "nobody has checked it");
        right.note("ada", &stored, &password);
        assert_eq!(told("ada", &stored, &made), None, "nobody has asked for it");
        right.expect("ada", &stored, &Secret::new("no"), now);
        right.expect("ada", &other, &password, now);
        assert_eq!(told("ada", &stored, &made), None, "it was another one");
        right.expect("ada", &stored, &password, now);
        assert_eq!(told("ada", &stored, &made), Some(true));
        assert_eq!(told("ada", &stored, &scramble("no")), Some(false));
        for (at, byte) in [(0, 1), (31, 128)] {
            let mut near = scramble("pw");
            near.shown[at] ^= byte;
            assert_eq!(told("ada", &stored, &near), Some(false));
        }
        let another = Scramble { challenge: b"x".to_vec(), ..scramble("pw") };
        assert_eq!(told("ada", &stored, &another), Some(false));
        for shown in [Vec::new(), vec![0], vec![0; 31], [&made.shown[..], b"x"].concat()] {
            assert_eq!(told("ada", &stored, &Scramble { shown, ..scramble("pw") }), Some(false));
        }
        assert_eq!(told("eve", &stored, &made), None);
        assert_eq!(right.made("ada", None, &made, now), None, "nobody is called so any more");
        assert_eq!(told("ada", &other, &made), None, "the password is another one now");
        assert!(right.was("ada", &stored, &password) && !right.was("ada", &other, &password));
        let later = now + SCRAMBLES_LAST;
        assert_eq!(right.made("ada", Some(&stored), &made, later), None, "it was long ago");
        right.expect("ada", &stored, &password, later);
        assert_eq!(right.made("ada", Some(&stored), &made, later), Some(true));
        right.forget(&["ada".to_owned()]);
        assert_eq!(told("ada", &stored, &made), None);
    }
}
