//! A deadline for SQLite queries on a catalog, since its author could make them arbitrarily slow. One thread per open catalog.

use parking_lot::{Condvar, Mutex};
use rusqlite::InterruptHandle;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// What is stopped between two statements has no effect, so that it is done again.
const AGAIN: Duration = Duration::from_millis(50);

/// Stops reads that last too long.
#[derive(Debug)]
pub(super) struct Watch(Arc<Shared>);

/// A read that is being watched, until this is dropped.
#[derive(Debug)]
pub(super) struct Watched(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    reading: Mutex<Reading>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Reading {
    /// When the read that goes on is stopped.
    until: Option<Instant>,
    /// Whether the thread has to be told of a read.
    is_asleep: bool,
    /// Whether the catalog has been closed.
    is_over: bool,
}

impl Watch {
    pub(super) fn new(handle: InterruptHandle) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        thread::Builder::new().name("lake-deadline".to_owned()).spawn(move || watched.watch(&handle))?;
        Ok(Self(shared))
    }

    /// A read that begins now; there is one at a time.
    pub(super) fn begin(&self, patience: Duration) -> Watched {
        let mut reading = self.0.reading.lock();
        reading.until = Instant::now().checked_add(patience);
        if reading.is_asleep {
            self.0.changed.notify_one();
        }
        drop(reading);
        Watched(Arc::clone(&self.0))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.reading.lock().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.reading.lock().until = None;
    }
}

impl Shared {
    fn watch(&self, handle: &InterruptHandle) {
        let mut reading = self.reading.lock();
        while !reading.is_over {
            let Some(until) = reading.until else {
                reading.is_asleep = true;
                self.changed.wait(&mut reading);
                reading.is_asleep = false;
                continue;
            };
            // A read that ends meanwhile does not say so: then this wakes once in vain.
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Under the lock, so that it never meets the next read.
                handle.interrupt();
            }
            let wait = if left.is_zero() { AGAIN } else { left };
            self.changed.wait_for(&mut reading, wait);
        }
    }
}
