//! Locks by name, which clients take among themselves: advisory locks of PostgreSQL, `GET_LOCK` of MySQL. They guard nothing that
//! the server does, hold on one server, and end with their session, those of a transaction with that.

use crate::client::ClientSlot;
use bowshot_api::{Error, ErrorKind, Result, TransactionId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Locks that are held at once, by all sessions.
const MAX_LOCKS: usize = 10_000;

/// The locks of a server.
#[derive(Debug, Default)]
pub struct NamedLocks {
    held: Mutex<HashMap<LockKey, Vec<Hold>>>,
    sessions: AtomicU64,
}

/// What is locked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LockKey {
    Name(String),
    Number(i64),
    Pair(i64, i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    Exclusive,
    Shared,
}

/// What came of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    Released,
    HeldByOthers,
    NotHeld,
}

/// A lock that a session has, as often as it took it.
#[derive(Debug)]
struct Hold {
    session: u64,
    mode: LockMode,
    /// The transaction that it ends with.
    transaction: Option<(TransactionId, ClientSlot)>,
    count: usize,
}

impl Hold {
    fn is_over(&self) -> bool {
        self.transaction.as_ref().is_some_and(|(id, client)| {
            let current = client.get().and_then(|client| client.transaction());
            current != Some(*id)
        })
    }
}

fn remove_ended(holds: &mut Vec<Hold>) {
    holds.retain(|hold| !hold.is_over());
}

/// The locks of one session. Clones are of the same session.
#[derive(Debug, Clone)]
pub struct SessionLocks {
    all: Arc<NamedLocks>,
    session: u64,
}

impl SessionLocks {
    /// Those of a new session.
    pub fn new(all: &Arc<NamedLocks>) -> Self {
        let session = all.sessions.fetch_add(1, Ordering::Relaxed);
        Self { all: Arc::clone(all), session }
    }

    /// Releases what the session holds; how many locks these were.
    pub fn release_all(&self) -> usize {
        let mut released = 0;
        self.all.held.lock().retain(|_, holds| {
            let before = holds.len();
            holds.retain(|hold| hold.session != self.session);
            released += usize::from(holds.len() < before);
            !holds.is_empty()
        });
        released
    }

    /// Takes a lock if no other session has one that excludes it; whether it was taken.
    ///
    /// # Errors
    /// `LimitReached`.
    pub(crate) fn take(
        &self,
        key: &LockKey,
        mode: LockMode,
        transaction: Option<(TransactionId, ClientSlot)>,
    ) -> Result<bool> {
        let mut held = self.all.held.lock();
        if held.len() >= MAX_LOCKS && !held.contains_key(key) {
            held.retain(|_, holds| {
                remove_ended(holds);
                !holds.is_empty()
            });
            if held.len() >= MAX_LOCKS {
                let message = format!("there are {MAX_LOCKS} locks of clients");
                return Err(Error::new(ErrorKind::LimitReached, message).with_hint("release some"));
            }
        }
        let holds = held.entry(key.clone()).or_default();
        remove_ended(holds);
        let shares = |hold: &Hold| mode == LockMode::Shared && hold.mode == LockMode::Shared;
        if !holds.iter().all(|hold| hold.session == self.session || shares(hold)) {
            return Ok(false);
        }
        let is_same = |hold: &&mut Hold| {
            let of_transaction = hold.transaction.is_some() == transaction.is_some();
            hold.session == self.session && hold.mode == mode && of_transaction
        };
        match holds.iter_mut().find(is_same) {
            Some(hold) => hold.count += 1,
            None => holds.push(Hold { session: self.session, mode, transaction, count: 1 }),
        }
        Ok(true)
    }

    /// Releases what was taken for the session once.
    pub(crate) fn release(&self, key: &LockKey, mode: LockMode) -> Release {
        let mut held = self.all.held.lock();
        let Some(holds) = held.get_mut(key) else { return Release::NotHeld };
        remove_ended(holds);
        let otherwise = if holds.is_empty() { Release::NotHeld } else { Release::HeldByOthers };
        let own = holds
            .iter_mut()
            .find(|hold| hold.session == self.session && hold.mode == mode && hold.transaction.is_none());
        let release = own.map_or(otherwise, |hold| {
            hold.count -= 1;
            Release::Released
        });
        holds.retain(|hold| hold.count > 0);
        if holds.is_empty() {
            held.remove(key);
        }
        release
    }

    /// Whether nobody holds a lock.
    pub(crate) fn is_free(&self, key: &LockKey) -> bool {
        self.all.held.lock().get(key).is_none_or(|holds| holds.iter().all(Hold::is_over))
    }
}
