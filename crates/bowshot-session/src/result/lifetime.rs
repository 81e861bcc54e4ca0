//! How long a result is there for its readers.

use super::{FETCH_GRACE, QueryResult};
use crate::partition::Attention;
use bowshot_api::{Delivery, Error, ErrorKind, Origin, Result};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

impl QueryResult {
    /// Ends a query whose readers have all let rows lie for too long: they may hold their connections, its place and its
    /// buffers for ever. A client that reads one endpoint after another attends to one of them at a time.
    pub(crate) fn end_if_stalled(&self) {
        let limit = self.house.limits.reader_timeout;
        if limit.is_zero() || self.delivery != Delivery::Stream {
            return;
        }
        let read: Vec<Attention> =
            self.partitions.iter().filter_map(|partition| partition.attention()).collect();
        let attended = read.iter().map(|attention| attention.since).max();
        let rows_ready = read.iter().any(|attention| attention.rows_ready);
        if rows_ready && attended.is_some_and(|since| since.elapsed() >= limit) {
            self.fail(not_taken(limit));
        }
    }

    /// Whether nobody has read for too long.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        let waited_for = self.waited_for.load(Ordering::Acquire);
        now >= self.expires()
            && self.elsewhere.is_none()
            && !waited_for
            && !self.partitions.iter().any(|partition| partition.has_readers())
    }

    /// A cursor reads it from now on. A server that takes no new statements takes no FETCH, and so does not wait for its rows.
    pub(crate) fn goes_to_cursor(&self) {
        self.of_cursor.store(true, Ordering::Release);
    }

    pub(super) fn is_fresh(&self) -> bool {
        let left = self.expires().saturating_duration_since(Instant::now());
        left + FETCH_GRACE > self.house.limits.result_timeout
    }

    pub(super) fn expires(&self) -> Instant {
        *self.expires.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the result live for another timeout.
    pub(crate) fn touch(&self) -> SystemTime {
        let timeout = self.house.limits.result_timeout;
        *self.expires.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + timeout;
        SystemTime::now() + timeout
    }
}

/// Of rows that were read and wait somewhere else for their client.
impl Origin for QueryResult {
    fn check(&self) -> Result<()> {
        self.partitions.iter().try_for_each(|partition| partition.check())
    }
}

/// What a query ends with whose reader lets rows lie.
pub(super) fn not_taken(limit: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("the reader took no rows for {} s", limit.as_secs()))
        .with_hint("read faster, fetch in pages, or raise `limits.reader_timeout`")
}
