//! Asynchronous cleanup after a client has left: sessions, prepared statements and transactions. Destructors cannot
//! await, so one task of the front end does it.

use crate::grpc_web::GrpcWebConnection;
use crate::session_lock::SessionLock;
use bowshot_api::{Session, StatementId, TransactionEnd};
use std::sync::Arc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Length of the queue: far more than there are sessions, prepared statements and connections.
const MAX_WAITING: usize = 100_000;

#[derive(Debug)]
enum CleanupTask {
    Close(Arc<dyn Session>),
    Forget(Arc<dyn Session>, StatementId),
    Undo(Arc<dyn Session>, Option<SessionLock>),
    End(Arc<dyn GrpcWebConnection>),
}

#[derive(Debug, Clone)]
pub(crate) struct CleanupQueue(Sender<CleanupTask>);

#[derive(Debug)]
pub(crate) struct Waiting(Receiver<CleanupTask>);

pub(crate) fn cleanup_queue() -> (CleanupQueue, Waiting) {
    let (sender, receiver) = channel(MAX_WAITING);
    (CleanupQueue(sender), Waiting(receiver))
}

impl CleanupQueue {
    pub(crate) fn close(&self, session: &Arc<dyn Session>) {
        self.leave(CleanupTask::Close(Arc::clone(session)));
    }

    /// Closes a prepared statement.
    pub(crate) fn forget(&self, session: &Arc<dyn Session>, statement: StatementId) {
        self.leave(CleanupTask::Forget(Arc::clone(session), statement));
    }

    /// Rolls back an implicit transaction whose client has left, then releases the lock.
    pub(crate) fn undo(&self, session: &Arc<dyn Session>, lock: Option<SessionLock>) {
        self.leave(CleanupTask::Undo(Arc::clone(session), lock));
    }

    pub(crate) fn end(&self, connection: Arc<dyn GrpcWebConnection>) {
        self.leave(CleanupTask::End(connection));
    }

    fn leave(&self, task: CleanupTask) {
        match self.0.try_send(task) {
            Ok(()) => {}
            // The server is stopping and closes all sessions.
            Err(TrySendError::Closed(_)) => tracing::debug!("a session is left to the end of the server"),
            Err(TrySendError::Full(task)) => {
                tracing::warn!("a session is left until it is idle for too long: too much waits to be done");
                // Nobody may go on in a transaction that was not rolled back.
                if let CleanupTask::Undo(_, Some(lock)) = task {
                    std::mem::forget(lock);
                }
            }
        }
    }
}

impl Waiting {
    /// Runs tasks until all senders are dropped.
    pub(crate) async fn work(mut self) {
        while let Some(task) = self.0.recv().await {
            match task {
                CleanupTask::Close(session) => session.close().await,
                CleanupTask::End(connection) => connection.end().await,
                CleanupTask::Undo(session, lock) => {
                    if let Err(error) = session.end_implicit(TransactionEnd::Rollback).await {
                        tracing::debug!(%error, "a transaction was not rolled back");
                    }
                    drop(lock);
                }
                CleanupTask::Forget(session, statement) => {
                    if let Err(error) = session.close_prepared(statement).await {
                        tracing::debug!(%error, "a prepared statement was not closed");
                    }
                }
            }
        }
    }
}
