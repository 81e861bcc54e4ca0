//! Expiry and timeouts of a result.

use super::{FETCH_GRACE, QueryResult};
use crate::partition::ReaderActivity;
use bowshot_api::{Delivery, Error, ErrorKind, Origin, Result};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

impl QueryResult {
    /// Fails a query whose readers have all stalled: they would hold connections, slot and buffers forever. A client
    /// that reads endpoints one after another is active on one at a time.
    pub(crate) fn end_if_stalled(&self) {
        let limit = self.context.limits.reader_timeout;
        if limit.is_zero() || self.delivery != Delivery::Stream {
            return;
        }
        let read: Vec<ReaderActivity> =
            self.partitions.iter().filter_map(|partition| partition.activity()).collect();
        let attended = read.iter().map(|activity| activity.since).max();
        let rows_ready = read.iter().any(|activity| activity.rows_ready);
        if rows_ready && attended.is_some_and(|since| since.elapsed() >= limit) {
            self.fail(not_taken(limit));
        }
    }

    /// Whether the result was unread for too long.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        let waited_for = self.waited_for.load(Ordering::Acquire);
        now >= self.expires()
            && self.remote.is_none()
            && !waited_for
            && !self.partitions.iter().any(|partition| partition.has_readers())
    }

    /// A drain does not wait for the result: it never ends, or a cursor reads it, and FETCH is refused then.
    pub(crate) fn exempt_from_drain(&self) {
        self.delays_drain.store(false, Ordering::Release);
    }

    pub(super) fn is_fresh(&self) -> bool {
        let left = self.expires().saturating_duration_since(Instant::now());
        left + FETCH_GRACE > self.context.limits.result_timeout
    }

    pub(super) fn expires(&self) -> Instant {
        *self.expires.lock()
    }

    /// Extends the result's life by another timeout.
    pub(crate) fn touch(&self) -> SystemTime {
        let timeout = self.context.limits.result_timeout;
        *self.expires.lock() = Instant::now() + timeout;
        SystemTime::now() + timeout
    }
}

/// For rows that were read and are buffered elsewhere.
impl Origin for QueryResult {
    fn check(&self) -> Result<()> {
        self.partitions.iter().try_for_each(|partition| partition.check())
    }
}

/// A caller that waits for the first rows.
pub(super) struct WaitGuard<'a>(pub(super) &'a QueryResult);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.waited_for.store(false, Ordering::Release);
    }
}

/// The error of a query whose reader has stalled.
pub(super) fn not_taken(limit: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("the client read no rows for {} s", limit.as_secs()))
        .with_hint("read faster, fetch in pages, or raise `limits.reader_timeout`")
}
