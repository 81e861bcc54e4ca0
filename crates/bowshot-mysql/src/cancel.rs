//! KILL: each connection has a number, with which the same user can cancel its statement or end the connection.

use crate::status::Failure;
use bowshot_api::Principal;
use bowshot_rowwire::RunningStatement;
use bowshot_sql::mysql::Kill;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct ConnectionIds(Mutex<ConnectionTable>);

#[derive(Debug, Default)]
struct ConnectionTable {
    last: u32,
    connections: HashMap<u32, Arc<OpenConnection>>,
}

#[derive(Debug, Default)]
struct OpenConnection {
    /// The user, once it has authenticated.
    principal: Mutex<Option<Principal>>,
    statement: RunningStatement,
    end: CancellationToken,
}

/// The number of a connection, which is free when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionId {
    numbers: Arc<ConnectionIds>,
    pub(crate) id: u32,
    connection: Arc<OpenConnection>,
}

impl ConnectionIds {
    /// A new number.
    pub(crate) fn give(self: &Arc<Self>) -> ConnectionId {
        let connection = Arc::<OpenConnection>::default();
        let mut table = self.0.lock();
        loop {
            table.last = table.last.checked_add(1).unwrap_or(1);
            let id = table.last;
            if let Entry::Vacant(place) = table.connections.entry(id) {
                place.insert(Arc::clone(&connection));
                return ConnectionId { numbers: Arc::clone(self), id, connection };
            }
        }
    }

    /// Cancels the statement of another connection of the same user, or ends that connection.
    pub(crate) fn kill(&self, principal: &Principal, id: u64, kill: Kill) -> Result<(), Failure> {
        let found = u32::try_from(id).ok().and_then(|id| self.0.lock().connections.get(&id).cloned());
        let found = found.ok_or_else(|| Failure::new(1094, "HY000", format!("unknown thread id: {id}")))?;
        if found.principal.lock().as_ref() != Some(principal) {
            return Err(Failure::new(1095, "HY000", format!("you are not owner of thread {id}")));
        }
        tracing::debug!(id, ?kill, "a connection is killed");
        found.statement.cancel();
        if kill == Kill::Connection {
            found.end.cancel();
        }
        Ok(())
    }
}

impl ConnectionId {
    /// Sets the user of the connection.
    pub(crate) fn belongs_to(&self, principal: &Principal) {
        *self.connection.principal.lock() = Some(principal.clone());
    }

    /// As [`ConnectionIds::kill`].
    pub(crate) fn kill(&self, principal: &Principal, id: u64, kill: Kill) -> Result<(), Failure> {
        self.numbers.kill(principal, id, kill)
    }

    /// A token that is cancelled when the connection must end.
    pub(crate) fn end_of_connection(&self) -> CancellationToken {
        self.connection.end.clone()
    }

    /// A statement begins, which the token cancels.
    pub(crate) fn begin(&self) -> CancellationToken {
        self.connection.statement.begin()
    }

    /// The statement has ended: a KILL that comes late has no effect.
    pub(crate) fn end(&self) {
        self.connection.statement.end();
    }
}

impl Drop for ConnectionId {
    fn drop(&mut self) {
        self.numbers.0.lock().connections.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_kills_and_only_what_runs() {
        let numbers = Arc::<ConnectionIds>::default();
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
