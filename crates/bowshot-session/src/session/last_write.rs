//! What the last statement of a session that changed rows did, for `last_insert_id()` and the counts of MySQL's protocol.

use super::ClientSession;
use bowshot_api::LastWrite;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

impl ClientSession {
    /// Forgets what the statement before this one did.
    pub(crate) fn clear_last_write(&self) {
        *self.lock_last_write() = LastWrite::default();
    }

    /// Remembers what a statement did to rows, and the numbers that it gave them, else the one that it has chosen.
    pub(crate) fn note_write(&self, mut last: LastWrite) {
        let mut before = self.lock_last_write();
        match last.generated {
            Some(number) => self.generated.store(number, Ordering::Relaxed),
            None => last.generated = before.generated,
        }
        *before = last;
    }

    /// Takes a number for the last one that was given, as `last_insert_id(number)` says.
    pub(super) fn set_last_generated(&self, number: i64) {
        self.generated.store(number, Ordering::Relaxed);
        self.lock_last_write().generated = Some(number);
    }

    pub(crate) fn last_generated(&self) -> i64 {
        self.generated.load(Ordering::Relaxed)
    }

    pub(super) fn lock_last_write(&self) -> MutexGuard<'_, LastWrite> {
        self.last_write.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
