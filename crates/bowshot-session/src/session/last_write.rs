//! The effect of the session's last statement that changed rows, for `last_insert_id()` and the counts of MySQL's
//! protocol.

use super::ClientSession;
use bowshot_api::LastWrite;
use std::sync::atomic::Ordering;

impl ClientSession {
    /// Clears the effect of the previous statement.
    pub(crate) fn clear_last_write(&self) {
        *self.last_write.lock() = LastWrite::default();
    }

    /// Records the effect of a statement, and its generated number, or else the one that it set.
    pub(crate) fn note_write(&self, mut last: LastWrite) {
        let mut before = self.last_write.lock();
        match last.generated {
            Some(number) => self.generated.store(number, Ordering::Relaxed),
            None => last.generated = before.generated,
        }
        *before = last;
    }

    /// Sets the last generated number, for `last_insert_id(number)`.
    pub(super) fn set_last_generated(&self, number: i64) {
        self.generated.store(number, Ordering::Relaxed);
        self.last_write.lock().generated = Some(number);
    }

    pub(crate) fn last_generated(&self) -> i64 {
        self.generated.load(Ordering::Relaxed)
    }
}
