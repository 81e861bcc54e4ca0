//! The store in memory: the newest snapshot, the memory of all rows, and the one door for commits.

use super::Error;
use super::account::Account;
use super::merge::Sides;
use super::owned::owned;
use super::segment::{Segment, without_dead_texts};
use super::snapshot::{Defaults, Snapshot};
use super::unite::unite_small_segments;
use arrow::array::RecordBatch;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Tables in memory. See the module `tables` for what a commit promises.
#[derive(Debug)]
pub struct TableStore {
    /// Locked for an instant, also by writers.
    head: RwLock<Arc<Snapshot>>,
    /// Held by the commit that is merging.
    turn: Mutex<()>,
    account: Arc<Account>,
    next_segment: AtomicU64,
}

impl TableStore {
    /// A store with one empty schema, whose rows may take `limit_bytes` of memory.
    pub fn in_memory(default_catalog: &str, default_schema: &str, limit_bytes: u64) -> Arc<Self> {
        let defaults = Defaults { catalog: default_catalog.to_owned(), schema: default_schema.to_owned() };
        Arc::new(Self {
            head: RwLock::new(Arc::new(Snapshot::first(defaults))),
            turn: Mutex::new(()),
            account: Arc::new(Account::new(limit_bytes)),
            next_segment: AtomicU64::new(0),
        })
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.head.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Copies the rows into the store's memory, where they stay until the last user of the segment drops it. Fails
    /// with [`Error::Full`] at the limit of memory.
    pub fn segment(self: &Arc<Self>, rows: RecordBatch) -> Result<Arc<Segment>, Error> {
        self.taken_over(owned(&rows)?)
    }

    /// Makes the changes between `base` and `changed` visible, all at once, and gives the new newest snapshot: what
    /// both transactions and all that committed since `base` did. Without a change it is the newest one as it is.
    /// Fails with [`Error::Conflict`], and changes nothing, when another transaction was first.
    pub fn commit(&self, base: &Arc<Snapshot>, changed: &Arc<Snapshot>) -> Result<Arc<Snapshot>, Error> {
        if base.same(changed) {
            return Ok(self.snapshot());
        }
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.snapshot();
        let mut merged = Snapshot::merge(Sides { base, changed, head: &head })?;
        unite_small_segments(self, &head, &mut merged);
        let merged = Arc::new(merged);
        let replaced = {
            let mut head = self.head.write().unwrap_or_else(PoisonError::into_inner);
            mem::replace(&mut *head, Arc::clone(&merged))
        };
        drop(turn);
        // Outside the locks: these may be the last users of many rows.
        drop((head, replaced));
        Ok(merged)
    }

    /// Bytes of memory that rows take, also those that only running queries and open transactions still use.
    pub fn memory_bytes(&self) -> u64 {
        self.account.bytes()
    }

    /// A segment of rows that were computed from segments.
    pub(super) fn rewritten(&self, rows: &RecordBatch) -> Result<Arc<Segment>, Error> {
        self.taken_over(without_dead_texts(rows)?)
    }

    /// A segment of rows that are the store's own already.
    pub(super) fn taken_over(&self, rows: RecordBatch) -> Result<Arc<Segment>, Error> {
        let id = self.next_segment.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Segment::new(id, rows, &self.account)?))
    }
}
