//! Numbers the segments of a store, and counts the memory that rows keep alive, by its allocations.

use super::Error;
use super::key_lookup::LookupBudget;
use arrow::array::RecordBatch;
use bowshot_api::allocations;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Account {
    limit_bytes: u64,
    next_segment: AtomicU64,
    held: Mutex<Held>,
    lookups: LookupBudget,
}

#[derive(Default)]
struct Held {
    bytes: u64,
    /// By address.
    allocations: HashMap<usize, Allocation>,
}

struct Allocation {
    bytes: u64,
    /// Claims that hold it.
    users: u64,
}

/// The right to keep rows, given back on drop. Drop it before the rows: a freed address may become another allocation.
pub(super) struct Claim {
    account: Arc<Account>,
    addresses: Vec<usize>,
}

impl Account {
    /// `next_segment` is a number that no segment of the store has.
    pub(super) fn new(limit_bytes: u64, next_segment: u64) -> Self {
        let (next_segment, held) = (AtomicU64::new(next_segment), Mutex::default());
        Self { limit_bytes, next_segment, held, lookups: LookupBudget::new(limit_bytes) }
    }

    pub(super) fn number(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn begin_at(&self, number: u64) {
        self.next_segment.fetch_max(number, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }

    /// The memory for finding rows by their keys, which is counted apart.
    pub(super) fn lookups(&self) -> &LookupBudget {
        &self.lookups
    }

    /// Counts the allocations of the rows that are not counted yet, or nothing when that would go over the limit.
    pub(super) fn claim(self: &Arc<Self>, rows: &RecordBatch) -> Result<Claim, Error> {
        let allocations = allocations(rows.columns());
        let mut held = self.held.lock();
        let new = allocations.iter().filter(|(address, _)| !held.allocations.contains_key(*address));
        let wanted = held.bytes.saturating_add(new.map(|(_, bytes)| bytes).sum());
        if wanted > self.limit_bytes {
            return Err(Error::Full { wanted, limit: self.limit_bytes });
        }
        held.bytes = wanted;
        for (address, bytes) in &allocations {
            held.allocations.entry(*address).or_insert(Allocation { bytes: *bytes, users: 0 }).users += 1;
        }
        Ok(Claim { account: Arc::clone(self), addresses: allocations.into_keys().collect() })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.account.held.lock();
        for address in &self.addresses {
            let Some(allocation) = held.allocations.get_mut(address) else { continue };
            allocation.users -= 1;
            if allocation.users == 0 {
                let bytes = allocation.bytes;
                held.allocations.remove(address);
                held.bytes -= bytes;
            }
        }
    }
}

bowshot_api::debug_fields!(Account { limit_bytes });

/// Bytes that stay allocated as long as the rows are there.
pub(super) fn retained_bytes(rows: &RecordBatch) -> u64 {
    allocations(rows.columns()).values().sum()
}
