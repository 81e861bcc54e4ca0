//! What has to be done after a client is gone, and takes a wait: sessions that end with their request or their connection,
//! statements that nobody will run again. Destructors cannot wait, so one task of the front end does it.

use crate::grpc_web::GrpcWebConnection;
use crate::session_lock::SessionLock;
use bowshot_api::{Session, StatementId, TransactionEnd};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// One thing to do.
#[derive(Debug)]
enum Chore {
    Close(Arc<dyn Session>),
    Forget(Arc<dyn Session>, StatementId),
    Undo(Arc<dyn Session>, Option<SessionLock>),
    End(Arc<dyn GrpcWebConnection>),
}

/// Where chores are left. Their number is bounded by that of the sessions, of their prepared statements and of the
/// connections.
#[derive(Debug, Clone)]
pub(crate) struct Chores(UnboundedSender<Chore>);

/// Chores that wait to be done.
#[derive(Debug)]
pub(crate) struct Waiting(UnboundedReceiver<Chore>);

/// A place for chores, and whoever does them.
pub(crate) fn chores() -> (Chores, Waiting) {
    let (sender, receiver) = unbounded_channel();
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
        if self.0.send(chore).is_err() {
            // Then the server ends, and its sessions with it.
            tracing::debug!("a session is left to the end of the server");
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
