//! Authenticated callers of one connection, so that a password is not hashed for each call.

use crate::{Credentials, Principal, Result, Server};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// Credentials are checked again after this time, so that revoked ones do not stay valid for the whole connection.
const TTL: Duration = Duration::from_secs(60);
/// Entries of one connection; a proxy may serve several callers.
const MAX_ENTRIES: usize = 8;

/// The callers of one connection, by their authorization header. An entry is valid until
/// [`Server::users_epoch`](crate::Server::users_epoch) changes.
#[derive(Default)]
pub struct AuthCache(Mutex<Vec<Entry>>);

struct Entry {
    header: Vec<u8>,
    principal: Principal,
    epoch: u64,
    until: Instant,
}

crate::debug_fields!(AuthCache {});

impl AuthCache {
    /// The principal of an authorization header: from the cache, or else by a check of its credentials.
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
            self.insert(header, &principal, epoch, Instant::now());
        }
        Ok(principal)
    }

    fn find(&self, header: &[u8], epoch: u64, now: Instant) -> Option<Principal> {
        let mut entries = self.0.lock();
        let time = SystemTime::now();
        entries
            .retain(|entry| entry.until > now && entry.epoch == epoch && !entry.principal.has_expired(time));
        entries.iter().find(|entry| entry.header == header).map(|entry| entry.principal.clone())
    }

    /// `epoch` is the value from before the check.
    fn insert(&self, header: &[u8], principal: &Principal, epoch: u64, now: Instant) {
        let mut entries = self.0.lock();
        if entries.len() >= MAX_ENTRIES {
            entries.remove(0);
        }
        entries.push(Entry {
            header: header.to_vec(),
            principal: principal.clone(),
            epoch,
            until: now + TTL,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire() {
        let cache = AuthCache::default();
        let now = Instant::now();
        cache.insert(b"a", &Principal::user("ada"), 1, now);
        assert_eq!(cache.find(b"a", 1, now), Some(Principal::user("ada")));
        assert_eq!(cache.find(b"b", 1, now), None);
        assert_eq!(cache.find(b"a", 1, now + TTL), None);
        cache.insert(b"a", &Principal::user("ada"), 1, now);
        assert_eq!(cache.find(b"a", 2, now), None, "the users have changed");
        let expired = Principal { expires: Some(SystemTime::now()), ..Principal::user("ada") };
        cache.insert(b"a", &expired, 2, now);
        assert_eq!(cache.find(b"a", 2, now), None, "its token has expired");
        for index in 0..MAX_ENTRIES + 1 {
            cache.insert(&[index as u8], &Principal::anonymous(), 2, now);
        }
        assert_eq!(cache.find(&[0], 2, now), None);
        assert!(cache.find(&[MAX_ENTRIES as u8], 2, now).is_some());
    }
}
