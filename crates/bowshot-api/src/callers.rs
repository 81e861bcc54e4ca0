//! Who has shown good credentials on a connection, so that a password is not hashed for each call.

use crate::Principal;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long credentials are good without a new check, so that revoked ones do not live with the connection.
const TIME: Duration = Duration::from_secs(60);
/// Different callers of one connection; a proxy may carry several.
const MOST: usize = 8;

/// The callers of one connection, by the header that they show. Nobody outlives the users that were known when they were
/// checked ([`Server::users_epoch`](crate::Server::users_epoch)).
#[derive(Default)]
pub struct KnownCallers(Mutex<Vec<Known>>);

struct Known {
    header: Vec<u8>,
    principal: Principal,
    epoch: u64,
    until: Instant,
}

impl fmt::Debug for KnownCallers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownCallers")
    }
}

impl KnownCallers {
    /// Who has shown this header since the users were last changed.
    pub fn find(&self, header: &[u8], epoch: u64, now: Instant) -> Option<Principal> {
        let mut known = self.lock();
        known.retain(|entry| entry.until > now && entry.epoch == epoch);
        known.iter().find(|entry| entry.header == header).map(|entry| entry.principal.clone())
    }

    /// Keeps who has shown this header. `epoch` is that from before the check.
    pub fn keep(&self, header: &[u8], principal: &Principal, epoch: u64, now: Instant) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push(Known { header: header.to_vec(), principal: principal.clone(), epoch, until: now + TIME });
    }

    /// A poisoned lock still guards whole entries: every change is one call on the collection.
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_forgotten() {
        let callers = KnownCallers::default();
        let now = Instant::now();
        callers.keep(b"a", &Principal::user("ada"), 1, now);
        assert_eq!(callers.find(b"a", 1, now), Some(Principal::user("ada")));
        assert_eq!(callers.find(b"b", 1, now), None);
        assert_eq!(callers.find(b"a", 1, now + TIME), None);
        callers.keep(b"a", &Principal::user("ada"), 1, now);
        assert_eq!(callers.find(b"a", 2, now), None, "the users are others now");
        for index in 0..MOST + 1 {
            callers.keep(&[index as u8], &Principal::anonymous(), 2, now);
        }
        assert_eq!(callers.find(&[0], 2, now), None);
        assert!(callers.find(&[MOST as u8], 2, now).is_some());
    }
}
