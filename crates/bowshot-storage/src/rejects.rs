//! Lines that were left out of a file because they could not be read, where that was asked for.

use std::sync::{Mutex, PoisonError};

/// Lines of which a file keeps the reasons.
const MAX_REJECTS: usize = 1_000;

/// A line that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reject {
    pub(crate) line: u64,
    pub(crate) column: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) reason: String,
}

/// The lines of one file.
#[derive(Debug, Default)]
pub(crate) struct Rejects(Mutex<Vec<Reject>>);

impl Rejects {
    pub(crate) fn add(&self, reject: Reject) {
        let mut rejects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A file is read more than once.
        if rejects.len() < MAX_REJECTS && !rejects.contains(&reject) {
            rejects.push(reject);
        }
    }

    /// By their number.
    pub(crate) fn list(&self) -> Vec<Reject> {
        let mut rejects = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rejects.sort_by_key(|reject| reject.line);
        rejects
    }
}
