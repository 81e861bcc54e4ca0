//! Finds rows by the values of a key, without a scan. A segment that is looked up again keeps an index of its keys, and if it is a
//! file, the columns that were asked for. What all segments of a store keep has one limit; what is idle gives way.

use super::account::Account;
use super::segment::{Segment, fitted, live_texts};
use super::{Error, Table};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, Rows, SortField};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// Bytes that the indexes and columns of a store may take, or a quarter of its memory for rows if that is less.
const LIMIT_BYTES: u64 = 256 << 20;
/// Rows of the largest table that gets an index, which takes about 20 bytes for each.
const MAX_ROWS: u64 = 8 << 20;
const MAX_SEGMENTS: usize = 1024;
/// After so long without a use, a segment may lose what it keeps; one for which there was no room tries again.
const IDLE_SECONDS: u64 = 60;

/// A column: its place in the table, and its field.
type Place = (usize, FieldRef);
/// The values of a column of a segment.
type Pieces = Arc<[ArrayRef]>;
/// The values of several columns, batch by batch.
type Columns = Box<dyn Iterator<Item = Result<Vec<ArrayRef>, Error>> + Send>;

/// What a lookup does without an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    GiveUp,
    Make,
}

/// What is looked up: rows with one value for each column of a key, and the columns that are wanted of them.
struct Wanted {
    key: Vec<Place>,
    values: Vec<ArrayRef>,
    columns: Vec<Place>,
}

impl Table {
    /// The columns at these places of the rows whose key has these values. A key is one value for each of its columns, by the
    /// place of the column and in its type; equal values must have equal bytes, so it has no floats. Reads only memory:
    /// `None` if a segment has no index or column there.
    ///
    /// # Errors
    /// None that a scan of the same rows would not have.
    pub fn find_rows(
        &self,
        key: &[(usize, ArrayRef)],
        columns: &[usize],
    ) -> Result<Option<RecordBatch>, Error> {
        match Wanted::new(self, key, columns) {
            Some(wanted) => self.found(&wanted, Absent::GiveUp),
            None => Ok(None),
        }
    }

    /// The same, and makes what is not there, unless it is the first lookup in a segment. Blocks. `None` if that does not fit.
    ///
    /// # Errors
    /// From reading files.
    pub fn index_and_find_rows(
        &self,
        key: &[(usize, ArrayRef)],
        columns: &[usize],
    ) -> Result<Option<RecordBatch>, Error> {
        let segments = self.shared_segments();
        // All are marked by one lookup, so that the next one finds none that is new.
        let asked = segments.iter().filter(|it| it.lookups().is_asked.swap(true, Ordering::Relaxed)).count();
        let is_in_store = self.disk().is_some_and(|disk| disk.bucket().is_some());
        let is_large = self.rows() > MAX_ROWS || segments.len() > MAX_SEGMENTS;
        if asked < segments.len() || is_in_store || is_large {
            return Ok(None);
        }
        match Wanted::new(self, key, columns) {
            Some(wanted) => self.found(&wanted, Absent::Make),
            None => Ok(None),
        }
    }

    fn found(&self, wanted: &Wanted, absent: Absent) -> Result<Option<RecordBatch>, Error> {
        let mut found: Vec<Vec<ArrayRef>> = vec![Vec::new(); wanted.columns.len()];
        let mut rows = 0;
        for segment in self.shared_segments() {
            let Some(index) = index(segment, wanted, absent)? else { return Ok(None) };
            let places = index.rows_of(&wanted.values)?;
            if places.is_empty() {
                continue;
            }
            let Some(columns) = columns(segment, wanted, absent)? else { return Ok(None) };
            for (values, pieces) in found.iter_mut().zip(&columns) {
                for row in &places {
                    values.push(value(pieces, *row)?);
                }
            }
            rows += places.len();
        }
        let fields: Vec<FieldRef> = wanted.columns.iter().map(|(_, field)| Arc::clone(field)).collect();
        let columns = found.iter().zip(&fields).map(|(values, field)| match values.as_slice() {
            [] => Ok(new_empty_array(field.data_type())),
            [value] => Ok(Arc::clone(value)),
            values => concat(&values.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        Ok(Some(fitted(&Arc::new(Schema::new(fields)), columns, rows)?))
    }
}

impl Wanted {
    /// `None` for columns that are not there, and for values of other types than theirs.
    fn new(table: &Table, key: &[(usize, ArrayRef)], columns: &[usize]) -> Option<Self> {
        let schema = table.schema();
        let place = |at: usize| Some((at, Arc::clone(schema.fields().get(at)?)));
        let columns = columns.iter().map(|at| place(*at)).collect::<Option<Vec<Place>>>()?;
        let (mut places, mut values) = (Vec::with_capacity(key.len()), Vec::with_capacity(key.len()));
        for (at, value) in key {
            let (at, field) = place(*at)?;
            if value.len() != 1 || value.data_type() != field.data_type() {
                return None;
            }
            places.push((at, field));
            values.push(Arc::clone(value));
        }
        (!places.is_empty()).then_some(Self { key: places, values, columns })
    }
}

fn index(segment: &Segment, wanted: &Wanted, absent: Absent) -> Result<Option<Arc<KeyIndex>>, Error> {
    let lookups = segment.lookups();
    lookups.used_at.store(segment.account().lookups().now(), Ordering::Relaxed);
    let found = lookups.kept().index(&wanted.key);
    if found.is_some() || absent == Absent::GiveUp {
        return Ok(found);
    }
    keep(segment, || {
        let index = Arc::new(KeyIndex::new(segment, &wanted.key)?);
        Ok(Kept { indexes: vec![(wanted.key.clone(), index)], ..Kept::default() })
    })?;
    Ok(lookups.kept().index(&wanted.key))
}

fn columns(segment: &Segment, wanted: &Wanted, absent: Absent) -> Result<Option<Vec<Pieces>>, Error> {
    if segment.memory().is_some() {
        let columns = values(segment, &wanted.columns)?.next().transpose()?;
        return Ok(columns.map(|columns| columns.into_iter().map(|column| Arc::from([column])).collect()));
    }
    let lookups = segment.lookups();
    let found = lookups.kept().columns(&wanted.columns);
    if found.is_some() || absent == Absent::GiveUp {
        return Ok(found);
    }
    keep(segment, || decoded(segment, &wanted.columns))?;
    Ok(lookups.kept().columns(&wanted.columns))
}

/// Those of the columns that are not kept yet.
fn decoded(segment: &Segment, columns: &[Place]) -> Result<Kept, Error> {
    let mut missing: Vec<Place> = Vec::new();
    for place in columns {
        if segment.lookups().kept().column(&place.1).is_none() && !missing.contains(place) {
            missing.push(place.clone());
        }
    }
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::new(); missing.len()];
    for columns in values(segment, &missing)? {
        for (pieces, values) in pieces.iter_mut().zip(columns?) {
            pieces.push(values);
        }
    }
    let columns = missing.into_iter().zip(pieces).map(|((_, field), pieces)| (field, Pieces::from(pieces)));
    Ok(Kept { columns: columns.collect(), ..Kept::default() })
}

fn values(segment: &Segment, places: &[Place]) -> Result<Columns, Error> {
    if let Some(rows) = segment.memory() {
        let all = rows.batch().columns();
        let columns: Vec<ArrayRef> = places.iter().filter_map(|(at, _)| all.get(*at)).cloned().collect();
        return Ok(Box::new(iter::once(Ok(columns))));
    }
    let fields: Vec<FieldRef> = places.iter().map(|(_, field)| Arc::clone(field)).collect();
    let batches = segment.read(&Arc::new(Schema::new(fields)))?;
    Ok(Box::new(batches.map(|rows| Ok(rows?.columns().to_vec()))))
}

/// One value, copied: whoever gets it must not hold the whole column.
fn value(pieces: &[ArrayRef], mut row: usize) -> Result<ArrayRef, ArrowError> {
    for piece in pieces {
        if row < piece.len() {
            let value = take(piece.as_ref(), &UInt32Array::from(vec![row as u32]), None)?;
            return Ok(live_texts(&value));
        }
        row -= piece.len();
    }
    Err(ArrowError::InvalidArgumentError("the index of a segment has more rows than the segment".to_owned()))
}

/// The keys of a segment in an order in which they are searched.
struct KeyIndex {
    converter: RowConverter,
    keys: Rows,
    /// Numbers of the rows in the order of their keys; `None` if they are in that order.
    order: Option<Vec<u32>>,
}

impl KeyIndex {
    fn new(segment: &Segment, key: &[Place]) -> Result<Self, Error> {
        let fields = key.iter().map(|(_, field)| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let mut keys = converter.empty_rows(segment.rows(), 0);
        for columns in values(segment, key)? {
            converter.append(&mut keys, &columns?)?;
        }
        let is_sorted = keys.iter().is_sorted();
        let order = (!is_sorted).then(|| {
            let mut order: Vec<u32> = (0..keys.num_rows() as u32).collect();
            order.sort_unstable_by(|one, other| {
                let keys = keys.row(*one as usize).cmp(&keys.row(*other as usize));
                keys.then(one.cmp(other))
            });
            order
        });
        Ok(Self { converter, keys, order })
    }

    fn bytes(&self) -> usize {
        self.keys.size() + self.order.as_ref().map_or(0, |order| order.len() * size_of::<u32>())
    }

    /// Numbers of the rows with this key: one at most, of a key that is unique.
    fn rows_of(&self, values: &[ArrayRef]) -> Result<Vec<usize>, ArrowError> {
        let sought = self.converter.convert_columns(values)?;
        let (sought, count) = (sought.row(0), self.keys.num_rows());
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < sought {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let equal = (low..count).take_while(|rank| self.key(*rank) == sought);
        Ok(equal.map(|rank| self.row(rank)).collect())
    }

    fn key(&self, rank: usize) -> Row<'_> {
        self.keys.row(self.row(rank))
    }

    fn row(&self, rank: usize) -> usize {
        let order = self.order.as_ref();
        order.and_then(|order| order.get(rank)).map_or(rank, |row| *row as usize)
    }
}

/// What a segment keeps for lookups. Goes with the segment.
#[derive(Default)]
pub(super) struct SegmentLookups {
    /// Whether there was a lookup before: most segments of a table that changes are looked up once at most.
    is_asked: AtomicBool,
    used_at: AtomicU64,
    /// When there was no room; 0 for never.
    refused_at: AtomicU64,
    /// Held by whoever makes something to keep.
    making: Mutex<()>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    indexes: Vec<(Vec<Place>, Arc<KeyIndex>)>,
    columns: Vec<(FieldRef, Pieces)>,
    reserved: Vec<Reservation>,
}

impl SegmentLookups {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn index(&self, key: &[Place]) -> Option<Arc<KeyIndex>> {
        self.indexes.iter().find(|(places, _)| places == key).map(|(_, index)| Arc::clone(index))
    }

    fn column(&self, field: &FieldRef) -> Option<Pieces> {
        self.columns.iter().find(|(there, _)| there == field).map(|(_, pieces)| Arc::clone(pieces))
    }

    fn columns(&self, columns: &[Place]) -> Option<Vec<Pieces>> {
        columns.iter().map(|(_, field)| self.column(field)).collect()
    }

    fn bytes(&self) -> u64 {
        let indexes = self.indexes.iter().map(|(_, index)| index.bytes());
        let columns = self.columns.iter().flat_map(|(_, pieces)| pieces.iter());
        indexes.chain(columns.map(|piece| piece.get_array_memory_size())).sum::<usize>() as u64
    }
}

/// Adds something to what the segment keeps, if there is room and nobody else does the same.
fn keep(segment: &Segment, make: impl FnOnce() -> Result<Kept, Error>) -> Result<(), Error> {
    let (lookups, account) = (segment.lookups(), segment.account());
    let Ok(_making) = lookups.making.try_lock() else { return Ok(()) };
    let now = account.lookups().now();
    let refused_at = lookups.refused_at.load(Ordering::Relaxed);
    if refused_at > 0 && now < refused_at + IDLE_SECONDS {
        return Ok(());
    }
    let made = make()?;
    let Some(reservation) = Reservation::new(account, made.bytes()) else {
        lookups.refused_at.store(now, Ordering::Relaxed);
        return Ok(());
    };
    let mut kept = lookups.kept();
    let is_first = kept.reserved.is_empty();
    kept.indexes.extend(made.indexes);
    kept.columns.extend(made.columns);
    kept.reserved.push(reservation);
    drop(kept);
    if is_first {
        account.lookups().list(lookups);
    }
    Ok(())
}

/// What the segments of a store keep for lookups, in bytes.
pub(super) struct LookupBudget {
    limit: u64,
    used: AtomicU64,
    began: Instant,
    /// The segments that keep something.
    listed: Mutex<Vec<Weak<SegmentLookups>>>,
}

impl LookupBudget {
    /// For a store whose rows may take so much memory.
    pub(super) fn new(limit_bytes: u64) -> Self {
        let (limit, used) = (LIMIT_BYTES.min(limit_bytes / 4), AtomicU64::new(0));
        Self { limit, used, began: Instant::now(), listed: Mutex::default() }
    }

    /// In seconds, never 0.
    fn now(&self) -> u64 {
        1 + self.began.elapsed().as_secs()
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn list(&self, lookups: &Arc<SegmentLookups>) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.retain(|there| there.strong_count() > 0);
        listed.push(Arc::downgrade(lookups));
    }

    /// Lets go what was not used for a while.
    fn drop_idle(&self) {
        let (now, mut idle) = (self.now(), Vec::new());
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.retain(|there| match there.upgrade() {
            Some(there) if now >= there.used_at.load(Ordering::Relaxed) + IDLE_SECONDS => {
                idle.push(there);
                false
            }
            other => other.is_some(),
        });
        // Freeing large arrays takes time.
        drop(listed);
        for lookups in idle {
            let kept = std::mem::take(&mut *lookups.kept());
            drop(kept);
        }
    }
}

/// Bytes of the budget, given back when this is dropped.
struct Reservation {
    account: Arc<Account>,
    bytes: u64,
}

impl Reservation {
    fn new(account: &Arc<Account>, bytes: u64) -> Option<Self> {
        let budget = account.lookups();
        let fits = budget.take(bytes) || {
            budget.drop_idle();
            budget.take(bytes)
        };
        fits.then(|| Self { account: Arc::clone(account), bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.lookups().used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
