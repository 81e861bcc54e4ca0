//! Which batches of a mapped file were brought into memory a moment ago. Asking the kernel again for pages that are there
//! was 12 % of the server's time in `bench/run.py transport`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long pages that were brought in are taken for being there: less than it takes to read as much as a machine has
/// memory. Should the kernel have dropped them all the same, whoever uses them waits for the disk.
const RESIDENT_FOR: Duration = Duration::from_secs(20);

/// For each batch: when it was brought in last, and with which columns.
#[derive(Debug)]
pub(crate) struct Residence {
    opened: Instant,
    batches: Vec<AtomicU64>,
}

impl Residence {
    pub(crate) fn new(batches: usize) -> Self {
        Self { opened: Instant::now(), batches: (0..batches).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Calls `load` unless it succeeded for the same columns of the batch within [`RESIDENT_FOR`].
    pub(crate) fn ensure<E>(
        &self,
        index: usize,
        columns: Option<&[usize]>,
        load: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.ensure_at(self.opened.elapsed(), index, columns, load)
    }

    fn ensure_at<E>(
        &self,
        now: Duration,
        index: usize,
        columns: Option<&[usize]>,
        load: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let note = Note::new(now, columns);
        let Some(batch) = self.batches.get(index) else { return load() };
        if Note(batch.load(Ordering::Relaxed)).covers(note) {
            return Ok(());
        }
        load()?;
        batch.store(note.0, Ordering::Relaxed);
        Ok(())
    }
}

/// Seconds since the file was opened plus one, so that 0 is never, below a fingerprint of the columns.
#[derive(Debug, Clone, Copy)]
struct Note(u64);

impl Note {
    fn new(now: Duration, columns: Option<&[usize]>) -> Self {
        let mut hasher = DefaultHasher::new();
        columns.hash(&mut hasher);
        Self(hasher.finish() << 32 | (now.as_secs() + 1) & u64::from(u32::MAX))
    }

    fn seconds(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    fn covers(self, later: Self) -> bool {
        let age = later.seconds().wrapping_sub(self.seconds());
        self.seconds() > 0 && self.0 >> 32 == later.0 >> 32 && age < RESIDENT_FOR.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_loaded_again_for_other_columns_and_after_a_while() {
        let residence = Residence::new(2);
        let loads = |seconds, index, columns: Option<&[usize]>| {
            let mut loaded = false;
            let load = || {
                loaded = true;
                Ok::<_, ()>(())
            };
            residence.ensure_at(Duration::from_secs(seconds), index, columns, load).unwrap();
            loaded
        };
        assert!(loads(0, 0, None), "the first time");
        assert!(!loads(19, 0, None), "a moment later");
        assert!(loads(19, 1, None), "another batch");
        assert!(loads(19, 0, Some(&[0])), "other columns");
        assert!(!loads(19, 0, Some(&[0])));
        assert!(loads(39, 0, Some(&[0])), "after a while");
        assert!(loads(0, 7, None) && loads(0, 7, None), "beyond the file: the caller's error");
    }

    #[test]
    fn a_load_that_failed_is_tried_again() {
        let residence = Residence::new(1);
        assert_eq!(residence.ensure(0, None, || Err("lost")), Err("lost"));
        assert_eq!(residence.ensure(0, None, || Err("lost again")), Err("lost again"));
    }
}
