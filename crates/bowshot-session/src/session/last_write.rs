//! What the last statement of a session that changed rows did, for `last_insert_id()` and the counts of MySQL's protocol.

use super::ClientSession;
use bowshot_api::LastWrite;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl ClientSession {
    /// Remembers what a statement did to rows, and the numbers that it gave them.
    pub(crate) fn note_write(&self, last: LastWrite) {
        if let Some(number) = last.generated {
            self.generated.store(number, Ordering::Relaxed);
        }
        *self.last_write.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }

    pub(crate) fn last_generated(&self) -> i64 {
        self.generated.load(Ordering::Relaxed)
    }
}
