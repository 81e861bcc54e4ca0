//! What all kept column chunks may take together, and which give way to others.

use super::file::{ChunkId, FileColumns};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// After this time a use counts half.
const HALF_LIFE: Duration = Duration::from_mins(10);
/// Uses beyond these say nothing new.
const MAX_HEAT: u8 = 8;
/// Chunks that are looked at to make room for one; the next attempt goes on behind them.
const MAX_SWEEP: usize = 128;
/// The part of the budget that is for counting uses.
const COUNTERS_SHARE: u64 = 16;

/// Decoded columns of Parquet files in memory, within one budget for all tables. A budget of zero keeps nothing.
#[derive(Debug)]
pub struct ColumnCache {
    /// Bytes for chunks.
    limit: u64,
    used: AtomicU64,
    /// Bytes for counting uses. Apart, so that a full cache still learns what is used.
    counters_limit: u64,
    counters: AtomicU64,
    started: Instant,
    listed: Mutex<Listed>,
}

/// The kept chunks in the order of a clock, whose hand looks for those that nobody uses.
#[derive(Debug, Default)]
struct Listed {
    places: Vec<(Weak<FileColumns>, ChunkId)>,
    hand: usize,
    /// Places at the last time when those of dropped files were taken out.
    swept: usize,
}

impl ColumnCache {
    pub fn new(limit_bytes: u64) -> Arc<Self> {
        let counters_limit = limit_bytes / COUNTERS_SHARE;
        Arc::new(Self {
            limit: limit_bytes - counters_limit,
            used: AtomicU64::new(0),
            counters_limit,
            counters: AtomicU64::new(0),
            started: Instant::now(),
            listed: Mutex::default(),
        })
    }

    /// Bytes that are kept or about to be.
    pub fn bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed) + self.counters.load(Ordering::Relaxed)
    }

    pub(super) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// The age that heat is measured at.
    pub(super) fn age(&self) -> u32 {
        u32::try_from(self.started.elapsed().as_secs() / HALF_LIFE.as_secs()).unwrap_or(u32::MAX)
    }

    /// Room for a chunk of this heat. Only clearly colder ones give way, so that a scan of more than fits finds a part kept.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64, heat: u8) -> Option<Reservation> {
        let fits = add(&self.used, bytes, self.limit)
            || (bytes <= self.limit && self.make_room(bytes, heat) && add(&self.used, bytes, self.limit));
        fits.then(|| Reservation { cache: Arc::clone(self), bytes })
    }

    /// Takes room for counting the uses of chunks. False if there is none.
    pub(super) fn count(&self, bytes: u64) -> bool {
        add(&self.counters, bytes, self.counters_limit)
    }

    /// Gives back what [`Self::count`] took.
    pub(super) fn uncount(&self, bytes: u64) {
        self.counters.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes a kept chunk one that may give way.
    pub(super) fn list(&self, file: &Arc<FileColumns>, chunk: ChunkId) {
        let mut listed = self.listed.lock();
        if listed.places.len() >= 64.max(2 * listed.swept) {
            listed.places.retain(|(file, _)| file.strong_count() > 0);
            listed.swept = listed.places.len();
        }
        listed.places.push((Arc::downgrade(file), chunk));
        drop(listed);
        self.report();
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.report();
    }

    fn report(&self) {
        metrics::gauge!("bowshot_column_cache_bytes").set(self.bytes() as f64);
    }

    /// Lets colder chunks go if that gives enough room, else none.
    fn make_room(&self, bytes: u64, heat: u8) -> bool {
        let Some(going) = self.colder(bytes, heat) else { return false };
        // Not under the lock of the list: freeing large arrays takes time.
        for (file, chunk) in going {
            file.forget(chunk);
        }
        true
    }

    /// Chunks below that heat that take so many bytes together with what is free. They are listed no more.
    fn colder(&self, bytes: u64, heat: u8) -> Option<Vec<(Arc<FileColumns>, ChunkId)>> {
        let mut listed = self.listed.lock();
        let mut found = self.limit.saturating_sub(self.used.load(Ordering::Relaxed));
        let (mut going, mut places) = (Vec::new(), Vec::new());
        for _ in 0..listed.places.len().min(MAX_SWEEP) {
            if found >= bytes {
                break;
            }
            listed.hand = (listed.hand + 1) % listed.places.len();
            let hand = listed.hand;
            let (file, chunk) = listed.places.get(hand)?;
            let Some(file) = file.upgrade() else { continue };
            if let Some(size) = file.size_if_colder(*chunk, heat) {
                found += size;
                going.push((file, *chunk));
                places.push(hand);
            }
        }
        if found < bytes {
            return None;
        }
        places.sort_unstable();
        for place in places.into_iter().rev() {
            listed.places.swap_remove(place);
        }
        Some(going)
    }
}

fn add(used: &AtomicU64, bytes: u64, limit: u64) -> bool {
    let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Heat {
    uses: u8,
    age: u32,
}

impl Heat {
    pub(super) fn new(age: u32) -> Self {
        Self { uses: 0, age }
    }

    pub(super) fn at(self, age: u32) -> u8 {
        self.uses.checked_shr(age.saturating_sub(self.age)).unwrap_or(0)
    }

    pub(super) fn touch(&mut self, age: u32) {
        *self = Self { uses: (self.at(age) + 1).min(MAX_HEAT), age };
    }
}

/// Bytes of the budget, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    cache: Arc<ColumnCache>,
    bytes: u64,
}

impl Reservation {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it exactly so many bytes; nobody gives way for more. False if they are not there.
    pub(super) fn settle(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes && !add(&self.cache.used, bytes - self.bytes, self.cache.limit) {
            return false;
        }
        self.cache.give_back(self.bytes.saturating_sub(bytes));
        self.bytes = bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.cache.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded_columns::packed::Piece;
    use arrow::array::{ArrayRef, Int64Array};

    const CHUNK: u64 = 8200;
    const LIMIT: u64 = 100 * CHUNK;

    fn piece() -> Vec<Piece> {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1; 1000]));
        vec![Piece::new(&values)]
    }

    fn id(column: u32) -> ChunkId {
        ChunkId { group: 0, column }
    }

    /// Uses a chunk, and keeps it if it is worth that.
    fn scan(file: &Arc<FileColumns>, column: u32) -> bool {
        if file.use_chunk(id(column)).is_some() {
            return true;
        }
        if let Some(filling) = file.fill(id(column), CHUNK) {
            filling.finish(piece(), CHUNK);
        }
        false
    }

    #[test]
    fn a_scan_of_more_than_fits_finds_a_part_of_it() {
        let cache = ColumnCache::new(LIMIT);
        let file = FileColumns::new(&cache);
        let mut found = 0;
        for _ in 0..10 {
            found = (0..200).filter(|column| scan(&file, *column)).count();
            assert!(cache.bytes() <= LIMIT);
        }
        assert!(found > 80, "{found} of 200");
    }

    #[test]
    fn what_nobody_uses_any_more_gives_way() {
        let cache = ColumnCache::new(LIMIT);
        let file = FileColumns::new(&cache);
        for column in 0..200 {
            assert!(!scan(&file, column));
            scan(&file, column);
        }
        assert!(cache.bytes() > 80 * CHUNK);
        // The newcomer has two uses like all others, then three, then four: clearly more than theirs.
        let found: Vec<bool> = (0..6).map(|_| scan(&file, 1000)).collect();
        assert!(!found[0] && !found[2] && found[5], "{found:?}");
        assert!(cache.bytes() <= LIMIT);
    }

    #[test]
    fn nothing_goes_for_what_will_not_fit() {
        let cache = ColumnCache::new(LIMIT);
        let file = FileColumns::new(&cache);
        for column in 0..20 {
            scan(&file, column);
            scan(&file, column);
        }
        let before = cache.bytes();
        assert!(cache.reserve(LIMIT + 1, MAX_HEAT).is_none());
        assert_eq!(cache.bytes(), before);
        assert!(scan(&file, 3));
    }

    #[test]
    fn a_fill_that_ends_early_leaves_nothing() {
        let cache = ColumnCache::new(1 << 20);
        let file = FileColumns::new(&cache);
        file.use_chunk(id(0));
        file.use_chunk(id(0));
        let counted = cache.bytes();
        let filling = file.fill(id(0), CHUNK).expect("room");
        assert!(file.fill(id(0), CHUNK).is_none(), "one at a time");
        assert!(cache.bytes() >= counted + CHUNK);
        drop(filling);
        assert_eq!(cache.bytes(), counted);
        assert!(file.fill(id(0), CHUNK).is_some());
    }
}
