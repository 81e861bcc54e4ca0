//! Caches successful binds for seconds, so that clients that send their password with each call do not flood the
//! directory. Failures are not cached.

use crate::Error;
use bowshot_api::{Principal, Secret};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Instant;
use subtle::ConstantTimeEq;

/// Cached users; a full cache is cleared.
const MAX_USERS: usize = 10_000;

/// Digests are useless without the key, which stays in this process.
pub(super) struct BindCache {
    key: [u8; 32],
    users: Mutex<HashMap<String, CachedBind>>,
}

struct CachedBind {
    digest: [u8; 32],
    principal: Principal,
    until: Instant,
}

impl BindCache {
    pub(super) fn new() -> Result<Self, Error> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(Error::NoRandomness)?;
        Ok(Self { key, users: Mutex::default() })
    }

    pub(super) fn find(&self, user: &str, password: &Secret, now: Instant) -> Option<Principal> {
        let digest = self.digest(user, password);
        let users = self.users.lock();
        let right = users.get(user).filter(|right| right.until > now)?;
        bool::from(right.digest.ct_eq(&digest)).then(|| right.principal.clone())
    }

    pub(super) fn note(&self, (user, password): (&str, &Secret), principal: &Principal, until: Instant) {
        let now = Instant::now();
        if until <= now {
            return;
        }
        let digest = self.digest(user, password);
        let mut users = self.users.lock();
        if users.len() >= MAX_USERS {
            users.retain(|_, right| right.until > now);
        }
        if users.len() >= MAX_USERS {
            users.clear();
        }
        users.insert(user.to_owned(), CachedBind { digest, principal: principal.clone(), until });
    }

    fn digest(&self, user: &str, password: &Secret) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update((user.len() as u64).to_be_bytes());
        hash.update(user.as_bytes());
        hash.update(password.expose().as_bytes());
        hash.finalize().into()
    }
}

bowshot_api::debug_fields!(BindCache {});
