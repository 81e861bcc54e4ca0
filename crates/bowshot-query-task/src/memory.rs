//! The memory of the process, and which query task must end when it is used up; and how many threads query tasks may use
//! beyond those of the runtime.

use bowshot_api::{Error, ErrorKind, Result};
use bowshot_ipc::os::process_bytes;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A query task that has less is never the one that fails.
const SMALL: u64 = 64 << 20;

/// Polls at a time that have a thread of their own; where so many are long, nobody is served soon on any thread.
const MAX_THREADS: usize = 32;
/// A thread is given no sooner after the one before than this, but for some at once: on processors that are busy it takes
/// milliseconds to wake one, and the runtime starts others meanwhile. Plans that began hundreds of tasks had it start 512, which
/// kept gigabytes. Polls that are long are never as many.
const THREAD_PAUSE: Duration = Duration::from_millis(1);
const THREADS_AT_ONCE: u32 = 16;

/// What all query tasks may have together, with everything else that the process keeps.
#[derive(Debug)]
pub struct Budget {
    bytes: u64,
    tasks: AtomicUsize,
    threads: AtomicUsize,
    begun: Instant,
    /// When threads that have been given are used up, at one for each pause: microseconds since it has begun.
    given_until: AtomicU64,
}

/// A thread that one poll has for itself, until this is dropped.
pub(super) struct ThreadPermit<'a>(&'a AtomicUsize);

impl Drop for ThreadPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Budget {
    /// So many bytes; without a limit when zero.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            tasks: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            begun: Instant::now(),
            given_until: AtomicU64::new(0),
        }
    }

    pub(super) fn entered(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn left(&self) {
        self.tasks.fetch_sub(1, Ordering::Relaxed);
    }

    /// Statements at work.
    pub(super) fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    /// A place for a poll with a thread of its own, where more statements than `few` are at work and one is free.
    pub(super) fn thread_permit(&self, few: usize) -> Option<ThreadPermit<'_>> {
        if self.tasks() <= few
            || self.threads.load(Ordering::Relaxed) >= MAX_THREADS
            || !self.is_time_for_thread()
        {
            return None;
        }
        self.threads.fetch_add(1, Ordering::Relaxed);
        Some(ThreadPermit(&self.threads))
    }

    /// Whether another thread may be given now (the generic cell rate algorithm, ITU-T I.371).
    fn is_time_for_thread(&self) -> bool {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = microseconds(self.begun.elapsed());
        let (pause, most) = (microseconds(THREAD_PAUSE), microseconds(THREAD_PAUSE * THREADS_AT_ONCE));
        let given = |until: u64| {
            let until = until.max(now) + pause;
            (until <= now + most).then_some(until)
        };
        self.given_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, given).is_ok()
    }

    /// Whether a query task that has so many bytes may go on. While there is room it may have any number; when there is none, one
    /// that has more than its share ends, so that the others get on.
    pub(super) fn check(&self, own: i64) -> Result<()> {
        let own = u64::try_from(own).unwrap_or(0);
        if self.bytes == 0 || own <= SMALL {
            return Ok(());
        }
        let process = process_bytes();
        let share = self.bytes / self.tasks().max(1) as u64;
        // A query task knows what it has asked for, which takes up to a quarter more. The last eighth is for what steps take before
        // their query tasks are looked at again.
        if process <= self.bytes - self.bytes / 8 || own.saturating_add(own / 4) <= share.max(SMALL) {
            return Ok(());
        }
        let message = format!(
            "the statement uses {own} bytes of memory, more than its share of the {} that the server may use",
            self.bytes
        );
        Err(Error::new(ErrorKind::LimitReached, message)
            .with_hint("read fewer rows at a time, or raise `limits.memory_bytes`"))
    }

    /// Whether a single piece of so many bytes may be taken.
    ///
    /// # Errors
    /// `LimitReached` if it would never fit.
    pub fn check_piece(&self, bytes: u64) -> Result<()> {
        let most = if self.bytes == 0 { u64::MAX } else { self.bytes };
        if bytes <= SMALL || process_bytes().saturating_add(bytes) <= most {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::LimitReached,
            format!("a value or batch of {bytes} bytes does not fit in memory"),
        )
        .with_hint("read fewer rows at a time, or raise `limits.memory_bytes`"))
    }
}
