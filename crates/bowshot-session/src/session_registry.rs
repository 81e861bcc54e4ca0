//! All open sessions by id.

use crate::session::ClientSession;
use bowshot_api::{Error, ErrorKind, Principal, Result, SessionId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, SystemTime};

#[derive(Debug, Default)]
pub(crate) struct SessionRegistry {
    open: Mutex<HashMap<SessionId, Arc<ClientSession>>>,
    /// Numbers by which MySQL's and PostgreSQL's clients know sessions.
    numbers: AtomicI32,
}

impl SessionRegistry {
    /// The next session number, from 1.
    pub(crate) fn next_number(&self) -> i32 {
        self.numbers.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX
    }

    pub(crate) fn insert(&self, session: Arc<ClientSession>, max: usize) -> Result<()> {
        let mut open = self.open.lock();
        if open.len() >= max {
            return Err(Error::new(ErrorKind::LimitReached, format!("{max} sessions are open"))
                .with_hint("close some, or raise `limits.max_sessions`"));
        }
        open.insert(session.key(), session);
        Ok(())
    }

    pub(crate) fn find(&self, id: SessionId, principal: &Principal) -> Result<Arc<ClientSession>> {
        let found = self.open.lock().get(&id).filter(|session| session.owner() == principal).map(Arc::clone);
        let now = SystemTime::now();
        let found = found.filter(|session| {
            session.prolong(principal);
            !session.has_expired(now)
        });
        let session = found.ok_or_else(|| {
            Error::not_found(format!("session {id} not found"))
                .with_hint("it was closed or timed out; connect again")
        })?;
        session.touch();
        Ok(session)
    }

    /// The session with this number, if it belongs to the principal.
    pub(crate) fn find_by_number(&self, number: i32, principal: &Principal) -> Option<Arc<ClientSession>> {
        let open = self.open.lock();
        let mut own = open.values().filter(|session| session.owner() == principal);
        own.find(|session| session.number() == number).map(Arc::clone)
    }

    pub(crate) fn remove(&self, id: SessionId) {
        let removed = self.open.lock().remove(&id);
        drop(removed);
    }

    pub(crate) fn idle(&self, timeout: Duration) -> Vec<Arc<ClientSession>> {
        self.open.lock().values().filter(|session| session.idle() > timeout).map(Arc::clone).collect()
    }

    pub(crate) fn expired(&self, now: SystemTime) -> Vec<Arc<ClientSession>> {
        self.open.lock().values().filter(|session| session.has_expired(now)).map(Arc::clone).collect()
    }

    pub(crate) fn of_unknown_users(&self, knows: impl Fn(&Principal) -> bool) -> Vec<Arc<ClientSession>> {
        self.open.lock().values().filter(|session| !knows(session.owner())).map(Arc::clone).collect()
    }

    pub(crate) fn each(&self, act: impl Fn(&ClientSession)) {
        self.open.lock().values().for_each(|session| act(session));
    }

    /// Open sessions, their prepared statements and their transactions.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let open = self.open.lock();
        let prepared = open.values().map(|session| session.prepared_statements()).sum();
        (open.len(), prepared, open.values().map(|session| session.transactions().count()).sum())
    }
}
