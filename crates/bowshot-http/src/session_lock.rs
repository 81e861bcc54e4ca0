//! Locks on sessions. A script locks its session exclusively, so that no other request joins or ends its transaction;
//! other requests share the lock.

use bowshot_api::{Error, ErrorKind, Limits, OptionValue, Result, Session, SessionId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Permits of an exclusive lock; a shared one takes one.
const ALL: u32 = 1 << 16;

/// A session lock; dropping it unlocks.
pub(crate) type SessionLock = OwnedSemaphorePermit;

#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLocks(Arc<Mutex<HashMap<SessionId, Weak<Semaphore>>>>);

impl SessionLocks {
    /// Waits for the lock that `sql` needs, in order of arrival. `KILL` needs none: others may wait for it.
    ///
    /// # Errors
    /// `Timeout` where it does not come within the time of a statement.
    pub(crate) async fn take(
        &self,
        session: &dyn Session,
        sql: &str,
        limits: &Limits,
    ) -> Result<Option<SessionLock>> {
        // A semicolon within a statement only makes the lock exclusive.
        let is_script = sql.trim_end().trim_end_matches(';').contains(';');
        if !is_script && sql.trim_start().get(..4).is_some_and(|verb| verb.eq_ignore_ascii_case("kill")) {
            return Ok(None);
        }
        let taking = self.get(session.id()).acquire_many_owned(if is_script { ALL } else { 1 });
        let taken = match patience(session, limits) {
            Some(limit) => {
                let Ok(taken) = timeout(limit, taking).await else { return Err(busy()) };
                taken
            }
            None => taking.await,
        };
        taken
            .map(Some)
            .map_err(|error| Error::internal("the lock of a session was closed").with_source(error))
    }

    fn get(&self, session: SessionId) -> Arc<Semaphore> {
        let mut all = self.0.lock();
        all.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = all.get(&session).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(Semaphore::new(ALL as usize));
        all.insert(session, Arc::downgrade(&lock));
        lock
    }
}

/// The statement timeout, if any.
fn patience(session: &dyn Session, limits: &Limits) -> Option<Duration> {
    let own = match session.option("statement_timeout_ms") {
        Some(OptionValue::Int64(ms)) => u64::try_from(ms).unwrap_or(0),
        _ => 0,
    };
    let own = Duration::from_millis(own);
    [own, limits.statement_timeout].into_iter().filter(|limit| !limit.is_zero()).min()
}

fn busy() -> Error {
    let message = "the session was busy with other requests for longer than a statement may take";
    Error::new(ErrorKind::Timeout, message).with_hint(
        "end the other request, send this one in another session, or raise the session option \
         `statement_timeout_ms` or `limits.statement_timeout`",
    )
}
