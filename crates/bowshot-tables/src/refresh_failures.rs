//! Materialized views that the server could not refresh by itself, until it can. Forgotten when the server ends.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Instant;
use uuid::Uuid;

/// Views of which the last error is known; there are no more tables than entries of a store.
const MAX_FAILURES: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct RefreshFailures(Mutex<HashMap<Uuid, (Instant, String)>>);

impl RefreshFailures {
    pub(super) fn note(&self, view: Uuid, error: Option<String>) {
        let mut failures = self.0.lock();
        match error {
            Some(error) if failures.len() < MAX_FAILURES || failures.contains_key(&view) => {
                failures.insert(view, (Instant::now(), error));
            }
            Some(_) => {}
            None => drop(failures.remove(&view)),
        }
    }

    /// When the last refresh of a view failed, and why.
    pub(super) fn of(&self, view: Uuid) -> Option<(Instant, String)> {
        self.0.lock().get(&view).cloned()
    }
}
