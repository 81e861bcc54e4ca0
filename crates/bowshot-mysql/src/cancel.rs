//! KILL: each connection has a number that its client knows, and whoever is the same user can end what runs on it right now, or
//! the connection itself.

use crate::status::Failure;
use bowshot_api::Principal;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Numbers(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    last: u32,
    connections: HashMap<u32, Arc<Running>>,
}

/// What runs on one connection.
#[derive(Debug, Default)]
struct Running {
    /// Whose it is, once that is known.
    principal: Mutex<Option<Principal>>,
    statement: Mutex<Option<CancellationToken>>,
    end: CancellationToken,
}

/// The number of a connection; dropping it makes it free.
#[derive(Debug)]
pub(crate) struct Number {
    numbers: Arc<Numbers>,
    pub(crate) id: u32,
    running: Arc<Running>,
}

/// What is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    Statement,
    Connection,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Numbers {
    /// A number that no open connection has.
    pub(crate) fn give(self: &Arc<Self>) -> Number {
        let running = Arc::<Running>::default();
        let mut given = lock(&self.0);
        loop {
            given.last = given.last.checked_add(1).unwrap_or(1);
            let id = given.last;
            if let Entry::Vacant(place) = given.connections.entry(id) {
                place.insert(Arc::clone(&running));
                return Number { numbers: Arc::clone(self), id, running };
            }
        }
    }

    /// Ends what another connection of the same user runs, or that connection.
    pub(crate) fn kill(&self, principal: &Principal, id: u64, kill: Kill) -> Result<(), Failure> {
        let found = u32::try_from(id).ok().and_then(|id| lock(&self.0).connections.get(&id).cloned());
        let found = found.ok_or_else(|| Failure::new(1094, "HY000", format!("unknown thread id: {id}")))?;
        if lock(&found.principal).as_ref() != Some(principal) {
            return Err(Failure::new(1095, "HY000", format!("you are not owner of thread {id}")));
        }
        tracing::debug!(id, ?kill, "a connection is killed");
        if let Some(statement) = lock(&found.statement).clone() {
            statement.cancel();
        }
        if kill == Kill::Connection {
            found.end.cancel();
        }
        Ok(())
    }
}

impl Number {
    /// Whose connection it is.
    pub(crate) fn belongs_to(&self, principal: &Principal) {
        *lock(&self.running.principal) = Some(principal.clone());
    }

    /// As [`Numbers::kill`].
    pub(crate) fn kill(&self, principal: &Principal, id: u64, kill: Kill) -> Result<(), Failure> {
        self.numbers.kill(principal, id, kill)
    }

    /// Is cancelled when the connection has to end.
    pub(crate) fn end_of_connection(&self) -> CancellationToken {
        self.running.end.clone()
    }

    /// Something runs from now on, which the token ends.
    pub(crate) fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.running.statement) = Some(token.clone());
        token
    }

    /// Nothing runs any more: a KILL that comes late ends nothing.
    pub(crate) fn end(&self) {
        *lock(&self.running.statement) = None;
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        lock(&self.numbers.0).connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_kills_and_only_what_runs() {
        let numbers = Arc::<Numbers>::default();
        let (ada, bob) = (Principal::user("ada"), Principal::user("bob"));
        let number = numbers.give();
        let kill = |principal: &Principal, kill| {
            numbers.kill(principal, number.id.into(), kill).map_err(|failure| failure.code.0)
        };
        assert_eq!(kill(&ada, Kill::Statement), Err(1095), "nobody's yet");
        number.belongs_to(&ada);
        assert_eq!(kill(&ada, Kill::Statement), Ok(()));
        let token = number.begin();
        assert_eq!(kill(&bob, Kill::Statement), Err(1095));
        assert!(!token.is_cancelled());
        assert_eq!(kill(&ada, Kill::Statement), Ok(()));
        assert!(token.is_cancelled() && !number.end_of_connection().is_cancelled());
        let token = number.begin();
        number.end();
        assert_eq!(kill(&ada, Kill::Connection), Ok(()));
        assert!(!token.is_cancelled() && number.end_of_connection().is_cancelled());
        let id = number.id.into();
        drop(number);
        assert_eq!(numbers.kill(&ada, id, Kill::Statement).map_err(|failure| failure.code.0), Err(1094));
        assert!(numbers.kill(&ada, u64::MAX, Kill::Statement).is_err());
    }
}
