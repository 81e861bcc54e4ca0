//! The cached results in memory, within a budget. Eviction is Greedy-Dual-Size-Frequency (L. Cherkasova, HP Laboratories, 1998): the value of
//! a result is its computation time times its uses for each byte, plus a clock, which is the value of the last evicted result at its last
//! use; so unused results lose value.

use super::key::{Question, ResultKey};
use super::query_patterns::Noted;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Results at most: one that leaves is looked for among all.
const MAX_RESULTS: usize = 4_096;
/// One result has at most one part of so many of the memory.
const LARGEST_PART: u64 = 8;
/// Results on their way have at most one part of so many of the memory, and the rest is for the cached ones.
const BEGUN_PART: u64 = 4;

/// Where the writing of a result to disk is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Saved {
    No,
    /// Somebody is at it.
    Begun,
    Yes,
    /// It is not worth that, or too large.
    Never,
}

#[derive(Debug)]
pub(super) struct CachedResult {
    pub(super) key: ResultKey,
    pub(super) schema: SchemaRef,
    /// The batches of each stream.
    pub(super) streams: Vec<Vec<RecordBatch>>,
    /// Whether the result is ordered.
    pub(super) ordered: bool,
    pub(super) rows: u64,
    /// Rows that the plan promised, if it did: an answer says the same each time.
    pub(super) promised: Option<u64>,
    /// Bytes in memory, those of the key included.
    pub(super) bytes: u64,
    /// The time that it took to compute.
    pub(super) cost: Duration,
    pub(super) created: SystemTime,
    /// When the query was planned: an earlier one never takes the place of a later one.
    pub(super) begun: Instant,
    /// Where its writing to disk is, as one of [`Saved`].
    saved: AtomicU8,
    /// What it is an instance of, if it may be asked ahead with the next tables.
    pub(super) template: Option<Noted>,
    hits: AtomicU64,
    /// Bits of a number.
    priority: AtomicU64,
}

impl CachedResult {
    pub(super) fn new(
        (key, bytes): (ResultKey, u64),
        (schema, streams): (SchemaRef, Vec<Vec<RecordBatch>>),
        cost: Duration,
    ) -> Self {
        Self {
            key,
            schema,
            ordered: false,
            rows: streams.iter().flatten().map(|batch| batch.num_rows() as u64).sum(),
            promised: None,
            streams,
            bytes,
            cost,
            created: SystemTime::now(),
            begun: Instant::now(),
            saved: AtomicU8::new(Saved::No as u8),
            template: None,
            hits: AtomicU64::new(0),
            priority: AtomicU64::new(0),
        }
    }

    /// How often it was given instead of being computed.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Whether this is where its writing is; it is at `next` from now on then.
    pub(super) fn save_from(&self, saved: Saved, next: Saved) -> bool {
        self.saved.compare_exchange(saved as u8, next as u8, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(super) fn set_saved(&self, saved: Saved) {
        self.saved.store(saved as u8, Ordering::Relaxed);
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

#[derive(Debug)]
pub(super) struct Store {
    memory_bytes: u64,
    entries: Mutex<Entries>,
    /// Bytes of results that are on their way to a client, and may be cached at their end.
    begun: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    by_digest: HashMap<u64, Vec<Arc<CachedResult>>>,
    bytes: u64,
    count: usize,
    clock: f64,
}

impl Store {
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes, entries: Mutex::default(), begun: AtomicU64::new(0) }
    }

    /// Bytes that one result may have.
    pub(super) fn largest(&self) -> u64 {
        self.memory_bytes / LARGEST_PART
    }

    /// Takes bytes for a result that is on its way, if there is room for them.
    pub(super) fn begin(&self, bytes: u64) -> bool {
        let before = self.begun.fetch_add(bytes, Ordering::Relaxed);
        metrics::gauge!("bowshot_result_cache_begun_bytes").increment(bytes as f64);
        let fits = before + bytes <= self.memory_bytes / BEGUN_PART;
        if !fits {
            self.end(bytes);
        }
        fits
    }

    /// Gives back such bytes.
    pub(super) fn end(&self, bytes: u64) {
        self.begun.fetch_sub(bytes, Ordering::Relaxed);
        metrics::gauge!("bowshot_result_cache_begun_bytes").decrement(bytes as f64);
    }

    /// The result of a query, if it is there for what its tables hold now.
    pub(super) fn find(&self, question: &Question) -> Option<Arc<CachedResult>> {
        let candidates = self.entries.lock().by_digest.get(&question.digest)?.clone();
        // Outside the lock, since plans may be large.
        candidates.into_iter().find(|result| result.key == question.key)
    }

    /// Notes that a result was given.
    pub(super) fn hit(&self, result: &CachedResult) {
        result.hits.fetch_add(1, Ordering::Relaxed);
        result.used_at(self.entries.lock().clock);
        metrics::counter!("bowshot_result_cache_hits_total").increment(1);
    }

    /// Keeps a result, in place of those of the same query over what its tables held before, and of what is worth least.
    pub(super) fn insert(&self, digest: u64, new: Arc<CachedResult>) {
        let limit = self.memory_bytes - self.memory_bytes / BEGUN_PART;
        if new.bytes > limit {
            return;
        }
        let mut entries = self.entries.lock();
        let there = entries.by_digest.get(&digest).map(Vec::as_slice).unwrap_or_default();
        if there.iter().any(|at| at.begun > new.begun && at.key.is_of_same_query(&new.key)) {
            return;
        }
        let mut gone = entries.take(|there, at| there == digest && at.key.is_of_same_query(&new.key));
        gone.extend(entries.make_room(new.bytes, limit));
        new.used_at(entries.clock);
        entries.bytes += new.bytes;
        entries.count += 1;
        entries.by_digest.entry(digest).or_default().push(new);
        entries.publish();
        drop(entries);
        // Outside the lock: much memory may be freed here.
        drop(gone);
    }

    pub(super) fn all(&self) -> Vec<Arc<CachedResult>> {
        self.entries.lock().by_digest.values().flatten().map(Arc::clone).collect()
    }

    /// Forgets a result, if it is there.
    pub(super) fn forget(&self, result: &Arc<CachedResult>) {
        self.remove(|at| Arc::ptr_eq(at, result));
    }

    /// Forgets all results. Queries that are given one go on.
    pub(super) fn clear(&self) {
        self.remove(|_| true);
    }

    fn remove(&self, which: impl Fn(&Arc<CachedResult>) -> bool) {
        let mut entries = self.entries.lock();
        let gone = entries.take(|_, at| which(at));
        entries.publish();
        drop(entries);
        drop(gone);
    }
}

impl Entries {
    /// Takes out what is worth least until there is room for so many bytes.
    fn make_room(&mut self, bytes: u64, limit: u64) -> Vec<Arc<CachedResult>> {
        if self.bytes + bytes <= limit && self.count < MAX_RESULTS {
            return Vec::new();
        }
        let mut all: Vec<_> = self.by_digest.values().flatten().map(Arc::clone).collect();
        all.sort_by(|one, other| one.priority().total_cmp(&other.priority()));
        let (mut left, mut victims) = (self.bytes, HashSet::new());
        for victim in all {
            if left + bytes <= limit && self.count - victims.len() < MAX_RESULTS {
                break;
            }
            left -= victim.bytes;
            self.clock = self.clock.max(victim.priority());
            victims.insert(Arc::as_ptr(&victim).addr());
        }
        metrics::counter!("bowshot_result_cache_evictions_total").increment(victims.len() as u64);
        self.take(|_, at| victims.contains(&Arc::as_ptr(at).addr()))
    }

    fn take(&mut self, which: impl Fn(u64, &Arc<CachedResult>) -> bool) -> Vec<Arc<CachedResult>> {
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
