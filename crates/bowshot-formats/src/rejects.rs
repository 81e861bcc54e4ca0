//! Lines that were left out of a file because they could not be read, where that was asked for.

use parking_lot::Mutex;

const MAX_REJECTS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Its number, from one.
    pub line: u64,
    /// The column whose value was wrong, if it was one value.
    pub column: Option<String>,
    pub value: Option<String>,
    pub reason: String,
}

#[derive(Debug, Default)]
pub struct Rejects(Mutex<Vec<Reject>>);

impl Rejects {
    pub fn add(&self, reject: Reject) {
        let mut rejects = self.0.lock();
        // A file is read more than once.
        if rejects.len() < MAX_REJECTS && !rejects.contains(&reject) {
            rejects.push(reject);
        }
    }

    /// By their number.
    pub fn list(&self) -> Vec<Reject> {
        let mut rejects = self.0.lock().clone();
        rejects.sort_by_key(|reject| reject.line);
        rejects
    }
}
