//! One computation at a time for each key; others may wait for its end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::watch;

/// Keys that are being computed.
#[derive(Debug)]
pub(crate) struct SingleFlight<K: Eq + Hash> {
    running: Arc<Mutex<HashMap<K, watch::Receiver<()>>>>,
}

/// Permission to compute a key, until it is dropped.
#[derive(Debug)]
pub(crate) struct Flight<K: Eq + Hash> {
    running: Arc<Mutex<HashMap<K, watch::Receiver<()>>>>,
    key: Option<K>,
    _ends: watch::Sender<()>,
}

impl<K: Eq + Hash> Default for SingleFlight<K> {
    fn default() -> Self {
        Self { running: Arc::default() }
    }
}

impl<K: Eq + Hash + Clone> SingleFlight<K> {
    /// Permission to compute `key`, unless it is being computed.
    pub(crate) fn begin(&self, key: &K) -> Option<Flight<K>> {
        let mut running = self.running.lock();
        if running.contains_key(key) {
            return None;
        }
        let (ends, receiver) = watch::channel(());
        running.insert(key.clone(), receiver);
        Some(Flight { running: Arc::clone(&self.running), key: Some(key.clone()), _ends: ends })
    }

    /// Waits until `key` is not being computed, at most `timeout`. Whether there was a computation
    /// that has ended.
    #[cfg(test)]
    pub(crate) async fn wait(&self, key: &K, timeout: std::time::Duration) -> bool {
        let receiver = self.running.lock().get(key).cloned();
        let Some(mut receiver) = receiver else { return false };
        // The dropped sender, an error here, means the end.
        let ended = async { while receiver.changed().await.is_ok() {} };
        tokio::time::timeout(timeout, ended).await.is_ok()
    }
}

impl<K: Eq + Hash> Drop for Flight<K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.running.lock().remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn one_computes_and_others_wait() {
        let flights = SingleFlight::default();
        let flight = flights.begin(&1).expect("nobody computes");
        assert!(flights.begin(&1).is_none());
        assert!(flights.begin(&2).is_some());
        assert!(!flights.wait(&1, Duration::from_millis(1)).await);
        let waiting = flights.wait(&1, Duration::from_secs(60));
        let (ended, ()) = tokio::join!(waiting, async { drop(flight) });
        assert!(ended);
        assert!(flights.begin(&1).is_some());
        assert!(!flights.wait(&3, Duration::ZERO).await);
    }
}
