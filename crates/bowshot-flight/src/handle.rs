//! Handles of what a session holds: prepared statements, transactions, savepoints. Each names its session, so that it
//! works over every connection of the same caller and the front end has nothing to remember.
//!
//! ```text
//! prepared statement   session id (16) · statement id (16)
//! transaction          session id (16) · transaction id (16)
//! savepoint            session id (16) · savepoint id (16)
//! ```
//!
//! Whatever comes in is hostile until it has been read here; what it names is looked up for its caller only.

use crate::caller::Caller;
use bowshot_api::{Error, ErrorKind, Result, SavepointId, Session, SessionId, StatementId, TransactionId};
use bytes::Bytes;
use std::sync::Arc;

/// A prepared statement; its session knows the transaction that it was prepared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PreparedHandle {
    pub(crate) session: SessionId,
    pub(crate) statement: StatementId,
}

impl PreparedHandle {
    /// The handle's bytes; they never change while the statement lives.
    pub(crate) fn encode(self) -> Bytes {
        pair(self.session, self.statement.as_bytes()).into()
    }

    /// Reads a handle.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).ok_or_else(|| {
            Error::invalid("the prepared statement handle was not issued by this server")
                .with_hint("send the handle exactly as CreatePreparedStatement returned it")
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (session, statement) = bytes.split_first_chunk::<16>()?;
        Some(Self {
            session: SessionId::from_slice(session)?,
            statement: StatementId::from_slice(statement)?,
        })
    }

    /// The session that holds the statement.
    pub(crate) fn session(self, caller: &Caller) -> Result<Arc<dyn Session>> {
        find(caller, self.session, || {
            Error::not_found("prepared statement not found: its session has ended")
                .with_hint("prepare the statement again")
        })
    }
}

/// An open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransactionHandle {
    pub(crate) session: SessionId,
    pub(crate) transaction: TransactionId,
}

impl TransactionHandle {
    pub(crate) fn encode(self) -> Bytes {
        pair(self.session, self.transaction.as_bytes()).into()
    }

    /// Reads a handle.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).ok_or_else(|| {
            Error::invalid("the transaction id was not issued by this server")
                .with_hint("send the id exactly as BeginTransaction returned it")
        })
    }

    /// Reads the handle of a command; unset and empty ones mean that the command is a transaction by itself.
    pub(crate) fn of_command(bytes: Option<&Bytes>) -> Result<Option<Self>> {
        bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| Self::decode(bytes)).transpose()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (session, transaction) = bytes.split_first_chunk::<16>()?;
        Some(Self {
            session: SessionId::from_slice(session)?,
            transaction: TransactionId::from_slice(transaction)?,
        })
    }

    /// The session that holds the transaction.
    pub(crate) fn session(self, caller: &Caller) -> Result<Arc<dyn Session>> {
        find(caller, self.session, || {
            Error::not_found("transaction not found: its session has ended, and its changes were undone")
                .with_hint("begin a new transaction")
        })
    }
}

/// A savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavepointHandle {
    pub(crate) session: SessionId,
    pub(crate) savepoint: SavepointId,
}

impl SavepointHandle {
    pub(crate) fn encode(self) -> Bytes {
        pair(self.session, self.savepoint.as_bytes()).into()
    }

    /// Reads a handle.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).ok_or_else(|| {
            Error::invalid("the savepoint id was not issued by this server")
                .with_hint("send the id exactly as BeginSavepoint returned it")
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (session, savepoint) = bytes.split_first_chunk::<16>()?;
        Some(Self {
            session: SessionId::from_slice(session)?,
            savepoint: SavepointId::from_slice(savepoint)?,
        })
    }

    /// The session that holds the savepoint.
    pub(crate) fn session(self, caller: &Caller) -> Result<Arc<dyn Session>> {
        find(caller, self.session, || {
            Error::not_found("savepoint not found: its session has ended")
                .with_hint("begin a new transaction and set the savepoint in it")
        })
    }
}

/// Session and transaction in which a command runs: those of its handle, else the caller's session and none.
pub(crate) async fn scope(
    caller: &Caller,
    handle: Option<TransactionHandle>,
) -> Result<(Arc<dyn Session>, Option<TransactionId>)> {
    match handle {
        Some(handle) => Ok((handle.session(caller)?, Some(handle.transaction))),
        None => Ok((caller.session().await?, None)),
    }
}

fn pair(session: SessionId, held: &[u8; 16]) -> Vec<u8> {
    [*session.as_bytes(), *held].concat()
}

/// The session of an id; it may belong to another connection of the same caller.
fn find(caller: &Caller, id: SessionId, missing: impl FnOnce() -> Error) -> Result<Arc<dyn Session>> {
    caller.server().find_session(id, caller.principal()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back() {
        let session = SessionId::random();
        let handle = PreparedHandle { session, statement: StatementId::random() };
        assert_eq!(PreparedHandle::decode(&handle.encode()).unwrap(), handle);
        let handle = TransactionHandle { session, transaction: TransactionId::random() };
        assert_eq!(TransactionHandle::of_command(Some(&handle.encode())).unwrap(), Some(handle));
        let handle = SavepointHandle { session, savepoint: SavepointId::random() };
        assert_eq!(SavepointHandle::decode(&handle.encode()).unwrap(), handle);
    }

    #[test]
    fn no_transaction_is_unset_or_empty() {
        assert_eq!(TransactionHandle::of_command(None).unwrap(), None);
        assert_eq!(TransactionHandle::of_command(Some(&Bytes::new())).unwrap(), None);
    }

    #[test]
    fn handles_of_other_lengths_are_refused() {
        for length in [0, 1, 15, 16, 17, 31, 33, 48, 64] {
            let bytes = vec![7; length];
            let errors = [
                PreparedHandle::decode(&bytes).unwrap_err(),
                TransactionHandle::decode(&bytes).unwrap_err(),
                SavepointHandle::decode(&bytes).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{length}");
                assert!(error.message().ends_with("was not issued by this server"), "{error}");
            }
        }
    }
}
