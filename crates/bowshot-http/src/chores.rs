//! What has to be done after a client is gone, and takes a wait: sessions that end with their request or their connection,
//! statements that nobody will run again. Destructors cannot wait, so one task of the front end does it.

use crate::grpc_web::GrpcWebConnection;
use crate::session_lock::SessionLock;
use bowshot_api::{Session, StatementId, TransactionEnd};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Chores that wait at once: far more than there are sessions, prepared statements and connections to leave one.
const MAX_WAITING: usize = 100_000;

/// One thing to do.
#[derive(Debug)]
enum Chore {
    Close(Arc<dyn Session>),
    Forget(Arc<dyn Session>, StatementId),
    Undo(Arc<dyn Session>, Option<SessionLock>),
    End(Arc<dyn GrpcWebConnection>),
}

/// Where chores are left.
#[derive(Debug, Clone)]
pub(crate) struct Chores(Sender<Chore>);

/// Chores that wait to be done.
#[derive(Debug)]
pub(crate) struct Waiting(Receiver<Chore>);

/// A place for chores, and whoever does them.
pub(crate) fn chores() -> (Chores, Waiting) {
    let (sender, receiver) = channel(MAX_WAITING);
    (Chores(sender), Waiting(receiver))
}

impl Chores {
    /// Ends a session.
    pub(crate) fn close(&self, session: &Arc<dyn Session>) {
        self.leave(Chore::Close(Arc::clone(session)));
    }

    /// Forgets a prepared statement.
    pub(crate) fn forget(&self, session: &Arc<dyn Session>, statement: StatementId) {
        self.leave(Chore::Forget(Arc::clone(session), statement));
    }

    /// Rolls back the transaction around statements whose client is gone. Their lock lasts until then.
    pub(crate) fn undo(&self, session: &Arc<dyn Session>, lock: Option<SessionLock>) {
        self.leave(Chore::Undo(Arc::clone(session), lock));
    }

    /// Ends what a connection had with another front end.
    pub(crate) fn end(&self, connection: Arc<dyn GrpcWebConnection>) {
        self.leave(Chore::End(connection));
    }

    fn leave(&self, chore: Chore) {
        match self.0.try_send(chore) {
            Ok(()) => {}
            // Then the server ends, and its sessions with it.
            Err(TrySendError::Closed(_)) => tracing::debug!("a session is left to the end of the server"),
            Err(TrySendError::Full(chore)) => {
                tracing::warn!("a session is left until it is idle for too long: too much waits to be done");
                // Nobody may go on in a transaction that was not rolled back.
                if let Chore::Undo(_, Some(lock)) = chore {
                    std::mem::forget(lock);
                }
            }
        }
    }
}

impl Waiting {
    /// Does chores until nobody can leave one any more.
    pub(crate) async fn work(mut self) {
        while let Some(chore) = self.0.recv().await {
            match chore {
                Chore::Close(session) => session.close().await,
                Chore::End(connection) => connection.end().await,
                Chore::Undo(session, lock) => {
                    if let Err(error) = session.end_implicit(TransactionEnd::Rollback).await {
                        tracing::debug!(%error, "a transaction was not rolled back");
                    }
                    drop(lock);
                }
                Chore::Forget(session, statement) => {
                    if let Err(error) = session.close_prepared(statement).await {
                        tracing::debug!(%error, "a prepared statement was not closed");
                    }
                }
            }
        }
    }
}
