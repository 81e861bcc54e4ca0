//! Who has shown good credentials on a connection, so that a password is not hashed for each call.

use crate::{Credentials, Principal, Result, Server};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

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
    /// Finds out who shows a header on a call: who has shown it before, else who the credentials in it prove to be.
    ///
    /// # Errors
    /// `Unauthenticated`.
    pub async fn identify(
        &self,
        server: &dyn Server,
        (header, credentials): (&[u8], &Credentials),
        from: Option<IpAddr>,
    ) -> Result<Principal> {
        let epoch = server.users_epoch();
        if let Some(principal) = self.find(header, epoch, Instant::now()) {
            return Ok(principal);
        }
        let principal = server.authenticate_from(credentials, from).await?;
        if !header.is_empty() {
            self.keep(header, &principal, epoch, Instant::now());
        }
        Ok(principal)
    }

    /// Who has shown this header since the users were last changed.
    fn find(&self, header: &[u8], epoch: u64, now: Instant) -> Option<Principal> {
        let mut known = self.lock();
        let time = SystemTime::now();
        known.retain(|entry| entry.until > now && entry.epoch == epoch && !entry.principal.has_expired(time));
        known.iter().find(|entry| entry.header == header).map(|entry| entry.principal.clone())
    }

    /// Keeps who has shown this header. `epoch` is that from before the check.
    fn keep(&self, header: &[u8], principal: &Principal, epoch: u64, now: Instant) {
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
        let expired = Principal { expires: Some(SystemTime::now()), ..Principal::user("ada") };
        callers.keep(b"a", &expired, 2, now);
        assert_eq!(callers.find(b"a", 2, now), None, "its token has expired");
        for index in 0..MOST + 1 {
            callers.keep(&[index as u8], &Principal::anonymous(), 2, now);
        }
        assert_eq!(callers.find(&[0], 2, now), None);
        assert!(callers.find(&[MOST as u8], 2, now).is_some());
    }
}
