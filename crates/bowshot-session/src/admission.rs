//! How many statements run at once, and how many may wait in line.

use bowshot_api::{Error, ErrorKind, Limits, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The gate in front of the engine: first come, first served.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    capacity: usize,
    waiting: AtomicUsize,
    max_waiting: usize,
    timeout: Duration,
}

/// The right to run; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        let capacity = limits.max_running_queries.max(1);
        Self {
            slots: Arc::new(Semaphore::new(capacity)),
            capacity,
            waiting: AtomicUsize::new(0),
            max_waiting: limits.max_queued_queries,
            timeout: limits.queue_timeout,
        }
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// `LimitReached` when the line is full, `Timeout` when it does not move in time.
    pub(crate) async fn enter(&self) -> Result<Slot> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Slot { _permit: permit });
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::new(ErrorKind::LimitReached, "too many queries run and wait")
                .with_hint("try again later, or raise `limits.max_queued_queries`"));
        }
        let _waiting = Waiting(&self.waiting);
        match tokio::time::timeout(self.timeout, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Slot { _permit: permit }),
            Ok(Err(_closed)) => Err(Error::new(ErrorKind::Unavailable, "the server is stopping")),
            Err(_elapsed) => Err(Error::new(ErrorKind::Timeout, "no slot became free in time").with_hint(
                "try again later, or raise `limits.max_running_queries` or `limits.queue_timeout`",
            )),
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.capacity - self.slots.available_permits()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
