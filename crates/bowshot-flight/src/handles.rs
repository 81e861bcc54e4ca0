//! Handles of prepared statements, transactions and savepoints. Each contains its session id, so it works over every
//! connection of the same caller.
//!
//! ```text
//! prepared statement   session id (16) · statement id (16)
//! transaction          session id (16) · transaction id (16)
//! savepoint            session id (16) · savepoint id (16)
//! ```
//!
//! The latter two are without session where the server's profile says so ([`Ids::Bare`]).
//!
//! Whatever comes in is hostile until it has been read here; what it names is looked up for its caller only.

use crate::Ids;
use crate::caller::Caller;
use bowshot_api::{Error, ErrorKind, Result, SavepointId, Session, SessionId, StatementId, TransactionId};
use bytes::Bytes;
use std::sync::Arc;

/// A prepared statement; its session knows its transaction.
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

    pub(crate) fn session(self, caller: &Caller) -> Result<Arc<dyn Session>> {
        find(caller, self.session, || {
            Error::not_found("prepared statement not found: its session has ended")
                .with_hint("prepare the statement again")
        })
    }
}

/// A handle of what lives in a session, and its errors: it is of another server, or its session has ended.
macro_rules! handle {
    ($handle:ident, $held:ident: $id:ty, foreign: $foreign:expr, gone: $gone:expr) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $handle {
            /// `None`: that of the call.
            session: Option<SessionId>,
            pub(crate) $held: $id,
        }

        impl $handle {
            pub(crate) fn new(caller: &Caller, session: &dyn Session, $held: $id) -> Self {
                Self { session: named(caller, session), $held }
            }

            pub(crate) fn encode(self) -> Bytes {
                held(self.session, self.$held.as_bytes())
            }

            pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
                let read = parts(bytes)
                    .and_then(|(session, id)| Some(Self { session, $held: <$id>::from_slice(&id)? }));
                read.ok_or_else(|| $foreign)
            }

            pub(crate) async fn session(self, caller: &Caller) -> Result<Arc<dyn Session>> {
                holder(caller, self.session, || $foreign, || $gone).await
            }
        }
    };
}

handle!(
    TransactionHandle, transaction: TransactionId,
    foreign: Error::invalid("the transaction id was not issued by this server")
        .with_hint("send the id exactly as BeginTransaction returned it"),
    gone: Error::not_found("transaction not found: its session has ended, and its changes were undone")
        .with_hint("begin a new transaction")
);
handle!(
    SavepointHandle, savepoint: SavepointId,
    foreign: Error::invalid("the savepoint id was not issued by this server")
        .with_hint("send the id exactly as BeginSavepoint returned it"),
    gone: Error::not_found("savepoint not found: its session has ended")
        .with_hint("begin a new transaction and set the savepoint in it")
);

impl TransactionHandle {
    /// Reads the handle of a command; unset and empty ones mean that the command is a transaction by itself.
    pub(crate) fn from_command(bytes: Option<&Bytes>) -> Result<Option<Self>> {
        bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| Self::decode(bytes)).transpose()
    }
}

/// Session and transaction of a command: those of its handle, else the caller's session and none.
pub(crate) async fn scope(
    caller: &Caller,
    handle: Option<TransactionHandle>,
) -> Result<(Arc<dyn Session>, Option<TransactionId>)> {
    match handle {
        Some(handle) => Ok((handle.session(caller).await?, Some(handle.transaction))),
        None => Ok((caller.session().await?, None)),
    }
}

fn pair(session: SessionId, held: &[u8; 16]) -> Vec<u8> {
    [*session.as_bytes(), *held].concat()
}

/// The session that a handle names, if handles do ([`Ids`]).
fn named(caller: &Caller, session: &dyn Session) -> Option<SessionId> {
    (caller.profile().ids == Ids::WithSession).then(|| session.id())
}

/// A handle's bytes: with its session, or bare, without the zeros at the end.
fn held(session: Option<SessionId>, id: &[u8; 16]) -> Bytes {
    match session {
        Some(session) => pair(session, id).into(),
        None => {
            let length = id.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Bytes::copy_from_slice(&id[..length])
        }
    }
}

fn parts(bytes: &[u8]) -> Option<(Option<SessionId>, [u8; 16])> {
    if let Some((session, id)) = bytes.split_first_chunk::<16>()
        && let Ok(id) = id.try_into()
    {
        return Some((Some(SessionId::from_slice(session)?), id));
    }
    let mut id = [0; 16];
    id.get_mut(..bytes.len())?.copy_from_slice(bytes);
    (!bytes.is_empty()).then_some((None, id))
}

/// The session of a handle. Bare ones were not issued by a server whose handles name their session.
async fn holder(
    caller: &Caller,
    session: Option<SessionId>,
    foreign: impl FnOnce() -> Error,
    gone: impl FnOnce() -> Error,
) -> Result<Arc<dyn Session>> {
    match (session, caller.profile().ids) {
        (Some(id), Ids::WithSession) => find(caller, id, gone),
        (None, Ids::Bare) => caller.session().await,
        _ => Err(foreign()),
    }
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
        for session in [Some(session), None] {
            let handle = TransactionHandle { session, transaction: TransactionId::random() };
            assert_eq!(TransactionHandle::from_command(Some(&handle.encode())).unwrap(), Some(handle));
            let handle = SavepointHandle { session, savepoint: SavepointId::random() };
            assert_eq!(SavepointHandle::decode(&handle.encode()).unwrap(), handle);
        }
    }

    #[test]
    fn bare_handles_are_short_names() {
        for name in ["1", "transaction_id", "0123456789abcdef"] {
            let handle = TransactionHandle::decode(name.as_bytes()).unwrap();
            assert_eq!(handle.encode(), name);
            assert!(handle.transaction.as_bytes().starts_with(name.as_bytes()));
        }
    }

    #[test]
    fn no_transaction_is_unset_or_empty() {
        assert_eq!(TransactionHandle::from_command(None).unwrap(), None);
        assert_eq!(TransactionHandle::from_command(Some(&Bytes::new())).unwrap(), None);
    }

    #[test]
    fn handles_of_other_lengths_are_refused() {
        for length in [0, 1, 15, 16, 17, 31, 33, 48, 64] {
            let bytes = vec![7; length];
            let errors = [
                PreparedHandle::decode(&bytes).err(),
                TransactionHandle::decode(&bytes).err(),
                SavepointHandle::decode(&bytes).err(),
            ];
            assert_eq!(errors.iter().flatten().count(), if (1..=16).contains(&length) { 1 } else { 3 });
            for error in errors.into_iter().flatten() {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{length}");
                assert!(error.message().ends_with("was not issued by this server"), "{error}");
            }
        }
    }
}
