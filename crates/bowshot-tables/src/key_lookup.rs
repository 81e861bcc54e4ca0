//! Finds rows by the values of a key, without a scan. A segment that is looked up again keeps an index of its keys, and if it is a
//! file, the columns that were asked for. What all segments of a store keep has one limit; what is idle gives way.

use super::memory_accounting::Account;
use super::segment::{Segment, fitted, live_texts};
use super::table::address;
use super::{Error, Table};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, Rows, SortField};
use parking_lot::Mutex;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Bytes that the indexes and columns of a store may take, or a quarter of its memory for rows if that is less.
const LIMIT_BYTES: u64 = 256 << 20;
/// Rows of the largest table that gets an index, which takes about 20 bytes for each.
const MAX_ROWS: u64 = 8 << 20;
const MAX_SEGMENTS: usize = 1024;
/// Rows in memory up to which an index is made by the first lookup: of a table that is changed row by row, some are always new.
const FEW_ROWS: usize = 4096;
/// After so long without a use, a segment may lose what it keeps; columns for which there was no room are tried again.
const IDLE_SECONDS: u64 = 60;
/// How long columns are left alone whose statement ended before they were read: the next one would probably end there, too.
const INTERRUPTED_SECONDS: u64 = 3600;
/// Sets of columns of a segment that are remembered as refused.
const MAX_REFUSALS: usize = 16;
/// Rows that are read at once: few, since texts may be long and nothing has been counted yet.
const PIECE_ROWS: usize = 4 << 10;

/// Whether equal values have equal bytes.
pub fn has_plain_equality(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_string() || *data_type == DataType::Date32
}

/// A column: its place in the table, and its field.
type Place = (usize, FieldRef);
type Pieces = Arc<[ArrayRef]>;
type Columns = Box<dyn Iterator<Item = Result<Vec<ArrayRef>, Error>> + Send>;

/// Whether the statement that makes an index still runs; `None` for a lookup that makes none.
type Making<'a> = Option<&'a dyn Fn() -> bool>;

#[derive(Debug)]
pub struct FoundRows {
    pub rows: RecordBatch,
    /// For each row what [`Table::delete`] takes.
    pub addresses: Vec<u64>,
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
        Ok(self.find_addressed_rows(key, columns)?.map(|found| found.rows))
    }

    /// The same with the addresses of the rows.
    ///
    /// # Errors
    /// As [`Self::find_rows`].
    pub fn find_addressed_rows(
        &self,
        key: &[(usize, ArrayRef)],
        columns: &[usize],
    ) -> Result<Option<FoundRows>, Error> {
        match Wanted::new(self, key, columns) {
            Some(wanted) => self.found(&wanted, None),
            None => Ok(None),
        }
    }

    /// The same, and makes missing indexes, except at the first lookup of many rows. Blocks, asking `goes_on`; `None` without room.
    pub fn index_and_find_rows(
        &self,
        key: &[(usize, ArrayRef)],
        columns: &[usize],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<FoundRows>, Error> {
        let segments = self.shared_segments();
        // All are marked by one lookup, so that the next one finds none that is new.
        let asked = segments.iter().filter(|segment| {
            let was_asked = segment.lookups().is_asked.swap(true, Ordering::Relaxed);
            was_asked || is_few(segment)
        });
        let asked = asked.count();
        let is_in_store = self.disk().is_some_and(|disk| disk.bucket().is_some());
        let is_large = self.rows() > MAX_ROWS || segments.len() > MAX_SEGMENTS;
        if asked < segments.len() || is_in_store || is_large {
            return Ok(None);
        }
        match Wanted::new(self, key, columns) {
            Some(wanted) => self.found(&wanted, Some(goes_on)),
            None => Ok(None),
        }
    }

    fn found(&self, wanted: &Wanted, making: Making<'_>) -> Result<Option<FoundRows>, Error> {
        let mut found: Vec<Vec<ArrayRef>> = vec![Vec::new(); wanted.columns.len()];
        let mut addresses = Vec::new();
        for (position, segment) in self.shared_segments().iter().enumerate() {
            let Some(index) = index(segment, wanted, making)? else { return Ok(None) };
            let mut places = index.rows_of(&wanted.values)?;
            places.retain(|row| !segment.deleted().contains(*row));
            if places.is_empty() {
                continue;
            }
            let Some(columns) = columns(segment, wanted, making)? else { return Ok(None) };
            for (values, pieces) in found.iter_mut().zip(&columns) {
                for row in &places {
                    values.push(value(pieces, *row)?);
                }
            }
            addresses.extend(places.iter().map(|row| address(position, *row)));
        }
        // What gives no answer may go.
        for segment in self.shared_segments() {
            segment.lookups().used_at.store(segment.account().lookups().now(), Ordering::Relaxed);
        }
        let fields: Vec<FieldRef> = wanted.columns.iter().map(|(_, field)| Arc::clone(field)).collect();
        let columns = found.iter().zip(&fields).map(|(values, field)| match values.as_slice() {
            [] => Ok(new_empty_array(field.data_type())),
            [value] => Ok(Arc::clone(value)),
            values => concat(&values.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let rows = fitted(&Arc::new(Schema::new(fields)), columns, addresses.len())?;
        Ok(Some(FoundRows { rows, addresses }))
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

fn is_few(segment: &Segment) -> bool {
    segment.memory().is_some_and(|rows| rows.rows() <= FEW_ROWS)
}

fn index(segment: &Segment, wanted: &Wanted, making: Making<'_>) -> Result<Option<Arc<KeyIndex>>, Error> {
    let there = || segment.lookups().kept.lock().index(&wanted.key);
    let always = || true;
    let making: Making<'_> = if making.is_none() && is_few(segment) { Some(&always) } else { making };
    let (None, Some(goes_on)) = (there(), making) else { return Ok(there()) };
    keep(segment, &wanted.key, goes_on, |room| {
        if there().is_some() {
            return Ok(Some(Kept::default()));
        }
        let index = KeyIndex::new(segment, &wanted.key, room)?.map(Arc::new);
        Ok(index.map(|index| Kept { indexes: vec![(wanted.key.clone(), index)], ..Kept::default() }))
    })?;
    Ok(there())
}

fn columns(segment: &Segment, wanted: &Wanted, making: Making<'_>) -> Result<Option<Vec<Pieces>>, Error> {
    if segment.memory().is_some() {
        let columns = values(segment, &wanted.columns)?.next().transpose()?;
        return Ok(columns.map(|columns| columns.into_iter().map(|column| Arc::from([column])).collect()));
    }
    let there = || segment.lookups().kept.lock().columns(&wanted.columns);
    let (None, Some(goes_on)) = (there(), making) else { return Ok(there()) };
    keep(segment, &wanted.columns, goes_on, |room| decoded(segment, &wanted.columns, room))?;
    Ok(there())
}

/// Those of the columns that are not kept yet; `None` if there is no room for them.
fn decoded(segment: &Segment, columns: &[Place], room: &mut Room<'_>) -> Result<Option<Kept>, Error> {
    let mut missing: Vec<Place> = Vec::new();
    for place in columns {
        if segment.lookups().kept.lock().column(&place.1).is_none() && !missing.contains(place) {
            missing.push(place.clone());
        }
    }
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::new(); missing.len()];
    for columns in values(segment, &missing)? {
        for (pieces, values) in pieces.iter_mut().zip(columns?) {
            if !room.grow(values.get_array_memory_size()) {
                return Ok(None);
            }
            pieces.push(values);
        }
    }
    let columns = missing.into_iter().zip(pieces).map(|((_, field), pieces)| (field, Pieces::from(pieces)));
    Ok(Some(Kept { columns: columns.collect(), ..Kept::default() }))
}

fn values(segment: &Segment, places: &[Place]) -> Result<Columns, Error> {
    if let Some(rows) = segment.memory() {
        let all = rows.batch().columns();
        let columns: Vec<ArrayRef> = places.iter().filter_map(|(at, _)| all.get(*at)).cloned().collect();
        return Ok(Box::new(iter::once(Ok(columns))));
    }
    let fields: Vec<FieldRef> = places.iter().map(|(_, field)| Arc::clone(field)).collect();
    let batches = segment.read_stored(&Arc::new(Schema::new(fields)), PIECE_ROWS)?;
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

/// The keys of the stored rows of a segment in an order in which they are searched.
struct KeyIndex {
    converter: RowConverter,
    keys: Rows,
    /// Numbers of the rows in the order of their keys; `None` if they are in that order.
    order: Option<Vec<u32>>,
}

impl KeyIndex {
    /// `None` if there is no room for it.
    fn new(segment: &Segment, key: &[Place], room: &mut Room<'_>) -> Result<Option<Self>, Error> {
        let fields = key.iter().map(|(_, field)| SortField::new(field.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let mut keys = converter.empty_rows(segment.stored_rows(), 0);
        if !room.grow(keys.size()) {
            return Ok(None);
        }
        for columns in values(segment, key)? {
            let before = keys.size();
            converter.append(&mut keys, &columns?)?;
            if !room.grow(keys.size().saturating_sub(before)) {
                return Ok(None);
            }
        }
        if !room.grow(keys.num_rows() * size_of::<u32>()) {
            return Ok(None);
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
        Ok(Some(Self { converter, keys, order }))
    }

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
    /// Columns that were not kept, and until when they are not tried again.
    refused: Mutex<Vec<(Vec<Place>, u64)>>,
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
    fn refuses(&self, columns: &[Place], now: u64) -> bool {
        self.refused.lock().iter().any(|(refused, until)| refused == columns && now < *until)
    }

    fn refuse(&self, columns: &[Place], until: u64) {
        let mut refused = self.refused.lock();
        refused.retain(|(there, _)| there != columns);
        if refused.len() >= MAX_REFUSALS {
            refused.remove(0);
        }
        refused.push((columns.to_vec(), until));
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
}

/// Adds something of these columns to what the segment keeps, if there is room and nobody else does the same.
fn keep(
    segment: &Segment,
    columns: &[Place],
    goes_on: &dyn Fn() -> bool,
    make: impl FnOnce(&mut Room<'_>) -> Result<Option<Kept>, Error>,
) -> Result<(), Error> {
    let (lookups, account) = (segment.lookups(), segment.account());
    let Some(_making) = lookups.making.try_lock() else { return Ok(()) };
    let now = account.lookups().now();
    if lookups.refuses(columns, now) {
        return Ok(());
    }
    let mut room = Room { reservation: Reservation { account: Arc::clone(account), bytes: 0 }, goes_on };
    let Some(made) = make(&mut room)? else {
        let seconds = if goes_on() { IDLE_SECONDS } else { INTERRUPTED_SECONDS };
        lookups.refuse(columns, account.lookups().now() + seconds);
        return Ok(());
    };
    let mut kept = lookups.kept.lock();
    let is_first = kept.reserved.is_empty();
    kept.indexes.extend(made.indexes);
    kept.columns.extend(made.columns);
    kept.reserved.push(room.reservation);
    drop(kept);
    if is_first {
        account.lookups().list(lookups);
    }
    Ok(())
}

/// Takes of the budget what a statement makes, piece by piece.
struct Room<'a> {
    reservation: Reservation,
    goes_on: &'a dyn Fn() -> bool,
}

impl Room<'_> {
    /// Whether there is room for so many bytes more, and somebody still waits for them.
    fn grow(&mut self, bytes: usize) -> bool {
        let Reservation { account, bytes: taken } = &mut self.reservation;
        let (budget, bytes) = (account.lookups(), bytes as u64);
        let fits = budget.take(bytes) || {
            budget.drop_idle();
            budget.take(bytes)
        };
        if fits {
            *taken += bytes;
        }
        fits && (self.goes_on)()
    }
}

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

    fn now(&self) -> u64 {
        1 + self.began.elapsed().as_secs()
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn list(&self, lookups: &Arc<SegmentLookups>) {
        let mut listed = self.listed.lock();
        listed.retain(|there| there.strong_count() > 0);
        listed.push(Arc::downgrade(lookups));
    }

    fn drop_idle(&self) {
        let (now, mut idle) = (self.now(), Vec::new());
        let mut listed = self.listed.lock();
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
            let kept = std::mem::take(&mut *lookups.kept.lock());
            drop(kept);
        }
    }
}

struct Reservation {
    account: Arc<Account>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.lookups().used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
