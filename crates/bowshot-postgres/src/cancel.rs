//! CancelRequest: each connection has a process number and a secret, with which another connection can cancel its statement
//! (PostgreSQL manual, "Canceling Requests in Progress").

use bowshot_api::QueryId;
use bowshot_rowwire::RunningStatement;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The keys of all connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct CancelKeys(Mutex<HashMap<i32, (i32, Arc<RunningStatement>)>>);

/// The key of a connection; dropping it makes it invalid.
#[derive(Debug)]
pub(crate) struct CancelKey {
    keys: Arc<CancelKeys>,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    statement: Arc<RunningStatement>,
}

/// Two random numbers from the operating system.
fn random() -> (i32, i32) {
    let id = QueryId::random();
    // Bytes in the middle say which kind of identifier it is; the others are random.
    let [a, b, c, d, .., w, x, y, z] = *id.as_bytes();
    (i32::from_be_bytes([a & 0x7f, b, c, d]), i32::from_be_bytes([w, x, y, z]))
}

impl CancelKeys {
    /// A new key.
    pub(crate) fn issue(self: &Arc<Self>) -> CancelKey {
        let mut keys = self.0.lock();
        let statement = Arc::<RunningStatement>::default();
        loop {
            let (process, secret) = random();
            if process != 0 && !keys.contains_key(&process) {
                keys.insert(process, (secret, Arc::clone(&statement)));
                drop(keys);
                return CancelKey { keys: Arc::clone(self), process, secret, statement };
            }
        }
    }

    /// Cancels the statement of a connection. The client does not learn whether the key was valid.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        let keys = self.0.lock();
        let found = keys.get(&process).filter(|(known, _)| *known ^ secret == 0);
        let statement = found.map(|(_, statement)| Arc::clone(statement));
        drop(keys);
        if statement.is_some_and(|statement| statement.cancel()) {
            tracing::debug!(process, "a statement is cancelled");
        }
    }
}

impl CancelKey {
    /// A statement begins, which the token cancels.
    pub(crate) fn begin(&self) -> CancellationToken {
        self.statement.begin()
    }

    /// The statement has ended: a request that comes late has no effect.
    pub(crate) fn end(&self) {
        self.statement.end();
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.keys.0.lock().remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_cancels_and_only_what_runs() {
        let keys = Arc::<CancelKeys>::default();
        let key = keys.issue();
        keys.cancel(key.process, key.secret);
        let token = key.begin();
        keys.cancel(key.process, key.secret ^ 1);
        keys.cancel(key.process ^ 1, key.secret);
        assert!(!token.is_cancelled());
        keys.cancel(key.process, key.secret);
        assert!(token.is_cancelled());
        let token = key.begin();
        key.end();
        keys.cancel(key.process, key.secret);
        assert!(!token.is_cancelled());
        drop(key);
        assert!(keys.0.lock().is_empty());
    }
}
