//! The results that are kept, in memory, within a budget.
//!
//! What leaves first is decided by Greedy-Dual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with
//! Greedy-Dual-Size-Frequency Caching Policy", HP Laboratories, 1998): a result is worth what computing it took, times how
//! often it was asked for, for each byte; the clock, which is the worth of what left last, is added at each use, so that
//! what nobody asks for any more falls behind.

use super::key::{Question, ResultKey};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Results at most: one that leaves is looked for among all.
const MAX_RESULTS: usize = 4_096;
/// One result has at most one part of so many of the memory.
const LARGEST_PART: u64 = 4;

/// One result.
#[derive(Debug)]
pub(super) struct KeptResult {
    pub(super) key: ResultKey,
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// Whether the batches have to stay in their order.
    pub(super) ordered: bool,
    pub(super) rows: u64,
    /// Bytes in memory, those of the key included.
    pub(super) bytes: u64,
    /// What computing it took.
    pub(super) cost: Duration,
    pub(super) created: SystemTime,
    hits: AtomicU64,
    /// Bits of a number.
    priority: AtomicU64,
}

impl KeptResult {
    pub(super) fn new(
        (key, bytes): (ResultKey, u64),
        (schema, batches): (SchemaRef, Vec<RecordBatch>),
        ordered: bool,
        cost: Duration,
    ) -> Self {
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let (hits, priority) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { key, schema, batches, ordered, rows, bytes, cost, created: SystemTime::now(), hits, priority }
    }

    /// How often it was given instead of being computed.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    fn priority(&self) -> f64 {
        f64::from_bits(self.priority.load(Ordering::Relaxed))
    }

    /// Seconds that it saves for each byte, by the times that it was asked for.
    fn worth(&self) -> f64 {
        self.cost.as_secs_f64() * (self.hits() + 1) as f64 / self.bytes.max(1) as f64
    }

    fn used_at(&self, clock: f64) {
        self.priority.store((clock + self.worth()).to_bits(), Ordering::Relaxed);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Store {
    memory_bytes: u64,
    kept: Mutex<Kept>,
    /// Bytes of results that are on their way to a client, and may be kept at their end.
    begun: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    by_digest: HashMap<u64, Vec<Arc<KeptResult>>>,
    bytes: u64,
    count: usize,
    clock: f64,
}

impl Store {
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, kept: Mutex::default(), begun: AtomicU64::new(0) }
    }

    /// Bytes that one result may have.
    pub(super) fn largest(&self) -> u64 {
        self.memory_bytes / LARGEST_PART
    }

    /// Takes bytes for a result that is on its way, if there is room for them.
    pub(super) fn begin(&self, bytes: u64) -> bool {
        let before = self.begun.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.memory_bytes;
        if !fits {
            self.end(bytes);
        }
        fits
    }

    /// Gives back such bytes.
    pub(super) fn end(&self, bytes: u64) {
        self.begun.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The result of a query, if it is there for what its tables hold now.
    pub(super) fn find(&self, question: &Question) -> Option<Arc<KeptResult>> {
        let candidates = self.lock().by_digest.get(&question.digest)?.clone();
        // Outside the lock, since plans may be large.
        candidates.into_iter().find(|kept| kept.key == question.key)
    }

    /// Notes that a result was given.
    pub(super) fn hit(&self, kept: &KeptResult) {
        kept.hits.fetch_add(1, Ordering::Relaxed);
        kept.used_at(self.lock().clock);
        metrics::counter!("bowshot_result_cache_hits_total").increment(1);
    }

    /// Keeps a result, in place of those of the same query over what its tables held before, and of what is worth least.
    pub(super) fn insert(&self, digest: u64, new: KeptResult) {
        let new = Arc::new(new);
        let mut kept = self.lock();
        let mut gone = kept.take(|there, at| there == digest && at.key.is_of_same_query(&new.key));
        while kept.bytes + new.bytes > self.memory_bytes || kept.count >= MAX_RESULTS {
            let Some(victim) = kept.least() else { break };
            kept.clock = kept.clock.max(victim.priority());
            gone.extend(kept.take(|_, at| Arc::ptr_eq(at, &victim)));
            metrics::counter!("bowshot_result_cache_evictions_total").increment(1);
        }
        new.used_at(kept.clock);
        kept.bytes += new.bytes;
        kept.count += 1;
        kept.by_digest.entry(digest).or_default().push(new);
        kept.publish();
        drop(kept);
        // Outside the lock: much memory may be freed here.
        drop(gone);
    }

    /// All results.
    pub(super) fn all(&self) -> Vec<Arc<KeptResult>> {
        self.lock().by_digest.values().flatten().map(Arc::clone).collect()
    }

    /// Forgets all results. Queries that are given one go on.
    pub(super) fn clear(&self) {
        let mut kept = self.lock();
        let gone = kept.take(|_, _| true);
        kept.publish();
        drop(kept);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn least(&self) -> Option<Arc<KeptResult>> {
        let all = self.by_digest.values().flatten();
        all.min_by(|one, other| one.priority().total_cmp(&other.priority())).map(Arc::clone)
    }

    fn take(&mut self, which: impl Fn(u64, &Arc<KeptResult>) -> bool) -> Vec<Arc<KeptResult>> {
        let mut taken = Vec::new();
        self.by_digest.retain(|digest, results| {
            taken.extend(results.extract_if(.., |result| which(*digest, result)));
            !results.is_empty()
        });
        self.bytes -= taken.iter().map(|result| result.bytes).sum::<u64>();
        self.count -= taken.len();
        taken
    }

    fn publish(&self) {
        metrics::gauge!("bowshot_result_cache_bytes").set(self.bytes as f64);
        metrics::gauge!("bowshot_result_cache_results").set(self.count as f64);
    }
}
