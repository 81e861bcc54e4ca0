//! CancelRequest: each connection has a number and a secret, and whoever shows both over another connection ends what runs
//! on it right now (PostgreSQL manual, "Canceling Requests in Progress").

use bowshot_api::QueryId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The keys of all connections of one listener.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<i32, (i32, Arc<Running>)>>);

/// What runs on one connection.
#[derive(Debug, Default)]
struct Running(Mutex<Option<CancellationToken>>);

/// The key of a connection; dropping it makes it worthless.
#[derive(Debug)]
pub(crate) struct Key {
    keys: Arc<Keys>,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    running: Arc<Running>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two random numbers of the operating system.
fn random() -> (i32, i32) {
    let id = QueryId::random();
    // The first four bytes are random, and so are the last four; those between say which kind of identifier it is.
    let [a, b, c, d, .., w, x, y, z] = *id.as_bytes();
    (i32::from_be_bytes([a & 0x7f, b, c, d]), i32::from_be_bytes([w, x, y, z]))
}

impl Keys {
    /// A key that nobody has.
    pub(crate) fn issue(self: &Arc<Self>) -> Key {
        let mut keys = lock(&self.0);
        let running = Arc::<Running>::default();
        loop {
            let (process, secret) = random();
            if process != 0 && !keys.contains_key(&process) {
                keys.insert(process, (secret, Arc::clone(&running)));
                drop(keys);
                return Key { keys: Arc::clone(self), process, secret, running };
            }
        }
    }

    /// Ends what runs on the connection of a key. Nobody is told whether there was one.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        let running = lock(&self.0)
            .get(&process)
            .filter(|(known, _)| *known ^ secret == 0)
            .map(|(_, running)| Arc::clone(running));
        if let Some(token) = running.and_then(|running| lock(&running.0).clone()) {
            tracing::debug!(process, "a statement is cancelled");
            token.cancel();
        }
    }
}

impl Key {
    /// Something runs from now on, which the token ends.
    pub(crate) fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.running.0) = Some(token.clone());
        token
    }

    /// Nothing runs any more: a request that comes late ends nothing.
    pub(crate) fn end(&self) {
        *lock(&self.running.0) = None;
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        lock(&self.keys.0).remove(&self.process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_cancels_and_only_what_runs() {
        let keys = Arc::<Keys>::default();
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
        assert!(lock(&keys.0).is_empty());
    }
}
