//! Which materialized views answer queries that do not name them, and which of them the server has made. Forgotten when the
//! server ends.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::SystemTime;
use uuid::Uuid;

/// Views that are known; there are no more tables than entries of a store.
const MAX_VIEWS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ViewUsage {
    pub answered: u64,
    /// When it answered the last one, or was made by the server.
    pub last: Option<SystemTime>,
    pub by_server: bool,
}

#[derive(Debug, Default)]
pub(super) struct ViewUsages(Mutex<HashMap<Uuid, ViewUsage>>);

impl ViewUsages {
    pub(super) fn note(&self, view: Uuid, change: impl FnOnce(&mut ViewUsage)) {
        let mut usages = self.0.lock();
        if usages.len() < MAX_VIEWS || usages.contains_key(&view) {
            let usage = usages.entry(view).or_default();
            usage.last = Some(SystemTime::now());
            change(usage);
        }
    }

    pub(super) fn of(&self, view: Uuid) -> ViewUsage {
        self.0.lock().get(&view).copied().unwrap_or_default()
    }

    pub(super) fn retain(&self, is_there: impl Fn(Uuid) -> bool) {
        self.0.lock().retain(|view, _| is_there(*view));
    }
}
