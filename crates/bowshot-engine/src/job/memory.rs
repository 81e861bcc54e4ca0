//! The memory of the process, and which job has to give way when it is used up; and how many threads jobs take beside those
//! that there are.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_os::process_bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A job that has less is never the one that fails.
const SMALL: u64 = 64 << 20;

/// Polls at a time that have a thread of their own. A plan may begin hundreds of tasks at once, and with a thread for each the
/// process took gigabytes; where so many are long at a time, nobody is served soon on any thread.
const MOST_ASIDE: usize = 32;

/// What all jobs may have together, with everything else that the process keeps.
#[derive(Debug)]
pub struct Budget {
    bytes: u64,
    jobs: AtomicUsize,
    aside: AtomicUsize,
}

/// A thread that one poll has for itself, until this is dropped.
pub(super) struct PlaceAside<'a>(&'a AtomicUsize);

impl Drop for PlaceAside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Budget {
    /// So many bytes; without a limit when zero.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, jobs: AtomicUsize::new(0), aside: AtomicUsize::new(0) }
    }

    pub(super) fn entered(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn left(&self) {
        self.jobs.fetch_sub(1, Ordering::Relaxed);
    }

    /// Statements at work.
    pub(super) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// A place for a poll with a thread of its own, where more statements than `few` are at work and one is free.
    pub(super) fn place_aside(&self, few: usize) -> Option<PlaceAside<'_>> {
        if self.jobs() <= few {
            return None;
        }
        let taken = PlaceAside(&self.aside);
        (self.aside.fetch_add(1, Ordering::Relaxed) < MOST_ASIDE).then_some(taken)
    }

    /// Whether a job that has so many bytes may go on. While there is room it may have any number; when there is none, one
    /// that has more than its share ends, so that the others get on.
    pub(super) fn check(&self, own: i64) -> Result<()> {
        let own = u64::try_from(own).unwrap_or(0);
        if self.bytes == 0 || own <= SMALL {
            return Ok(());
        }
        let process = process_bytes();
        let share = self.bytes / self.jobs().max(1) as u64;
        // A job knows what it has asked for, which takes up to a quarter more. The last eighth is for what steps take before
        // their jobs are looked at again.
        if process <= self.bytes - self.bytes / 8 || own.saturating_add(own / 4) <= share.max(SMALL) {
            return Ok(());
        }
        let message = format!(
            "the statement has {own} bytes of memory, more than its share of the {} that the server may have",
            self.bytes
        );
        Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("ask for less at a time, or raise `limits.memory_bytes`"))
    }

    /// Whether a single piece of so many bytes may be taken.
    ///
    /// # Errors
    /// `LimitReached` if it would never fit.
    pub(crate) fn check_piece(&self, bytes: u64) -> Result<()> {
        let most = if self.bytes == 0 { u64::MAX } else { self.bytes };
        if bytes <= SMALL || process_bytes().saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::LimitReached,
            format!("a value or batch of {bytes} bytes does not fit in memory"),
        )
        .with_hint("ask for less at a time, or raise `limits.memory_bytes`"))
    }
}
