//! One state of a table, and the states that changes make of it.

use super::deep_copy::{holds_more, owned};
use super::durable::{Disk, StoredFile};
use super::provider::TableRows;
use super::segment::{Segment, fitted};
use super::store::TableStore;
use super::{Definition, Error, Materialized};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use uuid::Uuid;

/// Threads that wait for a store at once.
const WAITING_THREADS: usize = 16;
/// Rows of one step of rewriting a file.
const REWRITE_ROWS: usize = 64 << 10;

/// One state of a table. Immutable; changes make a new one that shares the unchanged segments.
#[derive(Debug, Clone)]
pub struct Table {
    id: Uuid,
    definition: Arc<Definition>,
    schema: SchemaRef,
    segments: Vec<Arc<Segment>>,
    rows: u64,
    bytes: u64,
    version: u64,
    /// The version that last changed rows or columns; `None` where that is not committed, or not known.
    changed_version: Option<u64>,
    edits: Edits,
}

/// Rows that changes have ever put in and taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Edits {
    pub(super) inserted: u64,
    pub(super) deleted: u64,
}

impl Table {
    pub fn new(definition: Definition) -> Self {
        Self::with_id(Uuid::new_v4(), definition)
    }

    fn with_id(id: Uuid, definition: Definition) -> Self {
        let schema = definition.schema();
        let (definition, segments, edits) = (Arc::new(definition), Vec::new(), Edits::default());
        Self { id, definition, schema, segments, rows: 0, bytes: 0, version: 0, changed_version: None, edits }
    }

    pub(super) fn restored(
        id: Uuid,
        definition: Definition,
        segments: Vec<Arc<Segment>>,
        version: u64,
    ) -> Self {
        Self { version, ..Self::with_id(id, definition).with_segments(segments) }
    }

    /// Tells the table from all others, also from earlier ones of the same name. Stays through all changes.
    pub fn id(&self) -> Uuid {
        self.id
    }

    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The same with what operators ask of the columns: CHAR(n) is padded, ENUM has an order of its own.
    pub fn operator_schema(&self) -> SchemaRef {
        self.definition.for_operators(&self.schema)
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of memory that the rows keep, and of the files that hold them. What segments share is counted in each.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Number of the table's commit that made this state, of a durable table. Changes keep it until they commit.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether this committed state has the rows and columns of a version: background maintenance changes neither.
    pub fn has_rows_of(&self, version: u64) -> bool {
        self.changed_version.is_some_and(|changed| changed <= version && version <= self.version)
    }

    /// Whether it is a committed state of a durable table, which can be had again by its version.
    pub fn is_committed(&self) -> bool {
        self.changed_version.is_some()
    }

    /// The same rows of a materialized view about which something else is known.
    pub fn with_materialized(&self, view: Materialized) -> Self {
        let definition = Definition { materialized: Some(view), ..self.definition.as_ref().clone() };
        Self { definition: Arc::new(definition), changed_version: None, ..self.clone() }
    }

    /// The rows, in the order of their addresses.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, Error>> {
        self.segments.iter().flat_map(|segment| match segment.read(&self.schema) {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }

    /// The rows and then those of `segments`, whose columns must have the types of the table. Empty segments are left out.
    pub fn append(&self, segments: Vec<Arc<Segment>>) -> Self {
        let mut appended = self.clone();
        for segment in segments.into_iter().filter(|segment| segment.rows() > 0) {
            appended.edits.inserted += segment.rows() as u64;
            appended.changed_version = None;
            appended.push(segment);
        }
        appended
    }

    pub fn truncate(&self) -> Self {
        self.with_segments(Vec::new()).with_deleted(self.rows)
    }

    /// Takes out the rows at the addresses that the address column of [`Self::addressed_provider`] gave, in any order
    /// and however often each. Gives the new state and the number of rows that went. A file that loses few rows stays; of
    /// other segments, what is left is copied. Fails for an address that this state does not have, and at the limit of memory.
    pub fn delete(&self, store: &Arc<TableStore>, addresses: &[u64]) -> Result<(Self, u64), Error> {
        let gone = self.rows_at(addresses)?;
        let mut segments: Vec<_> = self.segments.iter().map(|segment| Some(Arc::clone(segment))).collect();
        let losers = segments.iter_mut().zip(gone).filter(|(_, gone)| !gone.is_empty());
        let rewritten = in_parallel(losers.collect(), |(place, gone)| {
            if let Some(segment) = place.take().filter(|segment| gone.len() < segment.rows()) {
                *place = match segment.without_rows(&gone) {
                    Some(smaller) => Some(Arc::new(smaller)),
                    None => {
                        let rest = self.filtered(store, &segment, &gone)?;
                        rest.map(|rest| rest.as_rest_of(&segment, &gone))
                    }
                };
            }
            Ok(())
        });
        rewritten.into_iter().collect::<Result<(), Error>>()?;
        let left = self.with_segments(segments.into_iter().flatten().collect());
        let gone = self.rows() - left.rows();
        Ok((left.with_deleted(gone), gone))
    }

    fn filtered(
        &self,
        store: &Arc<TableStore>,
        segment: &Segment,
        gone: &[u32],
    ) -> Result<Option<Arc<Segment>>, Error> {
        let left = segment.deleted().with(gone).left_mask(segment.stored_rows());
        let (kept, mut at) = (BooleanArray::new(left, None), 0);
        let rows = segment.read_stored(&self.schema, REWRITE_ROWS)?.map(move |rows| {
            let rows = rows?;
            let these = kept.slice(at, rows.num_rows().min(kept.len() - at));
            at += these.len();
            Ok(filter_record_batch(&rows, &these)?)
        });
        store.rewritten(self, rows)
    }

    /// For each segment the numbers of its stored rows at these addresses, sorted, each once.
    fn rows_at(&self, addresses: &[u64]) -> Result<Vec<Vec<u32>>, Error> {
        let mut rows = vec![Vec::new(); self.segments.len()];
        for address in addresses {
            let (position, row) = split(*address);
            let segment =
                usize::try_from(position).ok().and_then(|at| self.segments.get(at).zip(rows.get_mut(at)));
            let is_there = |segment: &Segment| {
                row < segment.stored_rows() as u64 && !segment.deleted().contains(row as usize)
            };
            let Some((_, rows)) = segment.filter(|(segment, _)| is_there(segment)) else {
                return Err(Error::NoRow { segment: position, row });
            };
            rows.push(row as u32);
        }
        for rows in &mut rows {
            rows.sort_unstable();
            rows.dedup();
        }
        Ok(rows)
    }

    /// The table with another definition, and with its rows rewritten: `rewrite` gets rows in the old schema and
    /// gives the same number of rows in the new one. The id stays. Rows in memory that come back as they were are
    /// shared, and so are files if `keep_files`: what they hold is read by the names of the columns, and columns that
    /// they lack are null. Fails when rows do not fit the new schema, at the limit of memory or disk, and with what
    /// `rewrite` fails.
    pub fn redefine(
        &self,
        store: &Arc<TableStore>,
        definition: Definition,
        keep_files: bool,
        rewrite: impl Fn(&RecordBatch) -> Result<RecordBatch, Error>,
    ) -> Result<Self, Error> {
        let redefined =
            Self { version: self.version, edits: self.edits, ..Self::with_id(self.id, definition) };
        let mut segments = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            if keep_files && segment.file().is_some() {
                segments.push(Arc::clone(segment));
                continue;
            }
            let mut shared = false;
            let rows = segment.read(&self.schema)?.map(|rows| {
                let fitted = redefined.refitted(&rows?, &rewrite)?;
                shared = segment.memory().is_some_and(|there| same_columns(&fitted, there.batch()));
                // Columns that came in one message share their memory, with those that go too.
                if !shared && holds_more(&fitted) { owned(&fitted) } else { Ok(fitted) }
            });
            let rewritten = store.taken_over(&redefined, rows)?;
            segments.extend(if shared { Some(Arc::clone(segment)) } else { rewritten });
        }
        Ok(redefined.with_segments(segments))
    }

    fn refitted(
        &self,
        rows: &RecordBatch,
        rewrite: &impl Fn(&RecordBatch) -> Result<RecordBatch, Error>,
    ) -> Result<RecordBatch, Error> {
        let made = rewrite(rows)?;
        if made.num_rows() != rows.num_rows() {
            return Err(Error::Rewritten { before: rows.num_rows(), after: made.num_rows() });
        }
        Ok(fitted(&self.schema, made.columns().to_vec(), made.num_rows())?)
    }

    /// The numbers of the segments, in order. A committed segment never changes, and its number is not used again.
    pub fn segment_ids(&self) -> Vec<u64> {
        self.segments.iter().map(|segment| segment.id()).collect()
    }

    /// The table with only those of its rows whose segment has one of these numbers, or none of them if not `within`.
    /// Only for reading: it is no state that could be committed.
    pub fn part(&self, ids: &[u64], within: bool) -> Self {
        let kept = self.segments.iter().filter(|segment| ids.contains(&segment.id()) == within);
        self.with_segments(kept.map(Arc::clone).collect())
    }

    /// The table without its rows. Only for reading: it is no state that could be committed.
    pub fn without_rows(&self) -> Self {
        self.with_segments(Vec::new())
    }

    /// The rows that another state of the table does not have where this one has them: those of other segments, and of a file
    /// that both have those that are deleted there. Rows that were only moved are among them. Only for reading.
    pub fn beyond(&self, other: &Self) -> Self {
        let alone = |table: &Self, other: &Self| -> Vec<Arc<Segment>> {
            let there: HashSet<u64> = other.segments.iter().map(|segment| segment.id()).collect();
            table.segments.iter().filter(|segment| !there.contains(&segment.id())).map(Arc::clone).collect()
        };
        let named = |segment: Arc<Segment>| Some((segment.file()?.name(), segment));
        let files: HashMap<String, Arc<Segment>> = alone(other, self).into_iter().filter_map(named).collect();
        let lost = |segment: Arc<Segment>| {
            let there = segment.file().and_then(|file| files.get(&file.name()));
            there.and_then(|there| segment.lost_in(there)).map_or(segment, Arc::new)
        };
        let rows = alone(self, other).into_iter().map(lost).filter(|segment| segment.rows() > 0);
        self.with_segments(rows.collect())
    }

    /// Whether no row at these addresses of an earlier state has changed since. Moved rows are found again, within limits.
    pub fn has_rows_at(&self, addresses: &[u64], earlier: &Self) -> bool {
        // The segments that may have rows of an earlier one: looking through what each was made of takes time.
        let mut holders: HashMap<u64, Vec<&Arc<Segment>>> = HashMap::new();
        addresses.iter().all(|address| {
            let (position, row) = split(*address);
            let before = usize::try_from(position).ok().and_then(|at| earlier.segments.get(at));
            before.is_some_and(|before| {
                let may_have = |now: &&Arc<Segment>| now.is_stored_with(before) || now.is_made_of(before);
                let there = holders
                    .entry(position)
                    .or_insert_with(|| self.segments.iter().filter(may_have).collect());
                there.iter().any(|now| {
                    let place = now.place_of_row(before, row as u32);
                    place.is_some_and(|place| !now.deleted().contains(place as usize))
                })
            })
        })
    }

    /// Whether no row of an earlier state was changed or deleted since. Rows may have come.
    pub fn has_all_rows_of(&self, earlier: &Self) -> bool {
        self.id == earlier.id
            && Arc::ptr_eq(&self.definition, &earlier.definition)
            && self.edits.deleted == earlier.edits.deleted
    }

    /// The table that a provider reads, if it reads all columns of one of ours and nothing else.
    pub fn of_provider(provider: &dyn TableProvider) -> Option<&Arc<Self>> {
        provider.downcast_ref::<TableRows>().and_then(TableRows::whole)
    }

    /// The table whose rows a provider reads, with their addresses or without.
    pub fn read_by(provider: &dyn TableProvider) -> Option<&Arc<Self>> {
        provider.downcast_ref::<TableRows>().map(TableRows::table)
    }

    pub fn provider(self: &Arc<Self>) -> Arc<dyn TableProvider> {
        Arc::new(TableRows::new(Arc::clone(self)))
    }

    /// The same rows with one more, last, non-null UInt64 column of this name: the address of the row, which
    /// [`Self::delete`] of this very state takes. It is made while scanning, if the query uses it.
    pub fn addressed_provider(self: &Arc<Self>, column: &str) -> Arc<dyn TableProvider> {
        Arc::new(TableRows::addressed(Arc::clone(self), column))
    }

    pub(super) fn with_segments(&self, segments: Vec<Arc<Segment>>) -> Self {
        let mut changed =
            Self { segments: Vec::with_capacity(segments.len()), rows: 0, bytes: 0, ..self.clone() };
        segments.into_iter().for_each(|segment| changed.push(segment));
        changed
    }

    fn push(&mut self, segment: Arc<Segment>) {
        self.rows += segment.rows() as u64;
        self.bytes += segment.bytes();
        self.segments.push(segment);
    }

    fn with_deleted(self, rows: u64) -> Self {
        if rows == 0 {
            return self;
        }
        let deleted = self.edits.deleted + rows;
        Self { edits: Edits { deleted, ..self.edits }, changed_version: None, ..self }
    }

    pub(super) fn with_edits(self, edits: Edits) -> Self {
        Self { edits, ..self }
    }

    /// The state that a commit publishes, with the version that last changed its rows.
    pub(super) fn numbered(&self, version: u64, changed_version: Option<u64>) -> Self {
        Self { version, changed_version, ..self.clone() }
    }

    pub(super) fn changed_version(&self) -> Option<u64> {
        self.changed_version
    }

    pub(super) fn edits(&self) -> Edits {
        self.edits
    }

    pub(super) fn shared_segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    pub(super) fn has_deleted_rows(&self) -> bool {
        self.segments.iter().any(|segment| !segment.deleted().is_empty())
    }

    pub(super) fn disk(&self) -> Option<&Disk> {
        self.segments.iter().find_map(|segment| segment.file()).map(StoredFile::disk)
    }

    /// Whether files that are in a store have not been looked at.
    pub(super) fn waits_for_files(&self) -> bool {
        self.disk().is_some_and(|disk| disk.bucket().is_some()) && self.unseen_files().next().is_some()
    }

    /// Reads the footers of the files that nobody has looked at, several at a time. Blocks.
    pub(super) fn look_at_files(&self) -> Result<(), Error> {
        let unseen: Vec<_> = self.unseen_files().collect();
        let threads = WAITING_THREADS.min(unseen.len());
        let looked = on_threads(threads, unseen, |file| file.look().map(drop));
        looked.into_iter().collect()
    }

    fn unseen_files(&self) -> impl Iterator<Item = &StoredFile> {
        self.segments.iter().filter_map(|segment| segment.file()).filter(|file| !file.is_looked_at())
    }

    /// Whether both are the very same state: table, definition and rows.
    pub fn same(&self, other: &Self) -> bool {
        let segments = || self.segments.iter().zip(&other.segments);
        self.id == other.id
            && Arc::ptr_eq(&self.definition, &other.definition)
            && self.segments.len() == other.segments.len()
            && segments().all(|(one, other)| one.id() == other.id())
    }

    /// Whether both have the same definition and rows, wherever these are kept.
    pub(super) fn same_rows(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.definition, &other.definition) && self.edits == other.edits
    }
}

impl Edits {
    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            inserted: self.inserted.saturating_sub(other.inserted),
            deleted: self.deleted.saturating_sub(other.deleted),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { inserted: self.inserted + other.inserted, deleted: self.deleted + other.deleted }
    }
}

/// Does the same with every item, several at a time; the results are in the order of the items.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    // Asking for the number of processors reads files.
    let most = || thread::available_parallelism().map_or(1, Into::into);
    let threads = if items.len() < 2 { 1 } else { items.len().min(most()) };
    on_threads(threads, items, work)
}

fn on_threads<T: Send, R: Send>(threads: usize, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().next();
    let mut results = thread::scope(|scope| {
        let run = || {
            let mut done = Vec::new();
            while let Some((place, item)) = next() {
                done.push((place, work(item)));
            }
            done
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

pub(super) fn address(position: usize, row: usize) -> u64 {
    ((position as u64) << 32) | row as u64
}

fn split(address: u64) -> (u64, u64) {
    (address >> 32, address & u64::from(u32::MAX))
}

fn same_columns(one: &RecordBatch, other: &RecordBatch) -> bool {
    let columns = || one.columns().iter().zip(other.columns());
    one.schema() == other.schema()
        && one.num_columns() == other.num_columns()
        && columns().all(|(one, other)| Arc::ptr_eq(one, other))
}
