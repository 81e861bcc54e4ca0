//! Some rows of a table: in memory, or in a file, of which some may be deleted.

use super::Error;
use super::deleted_rows::DeletedRows;
use super::durable::StoredFile;
use super::key_lookup::SegmentLookups;
use super::memory_accounting::{Account, Claim, retained_bytes};
use super::segment_parts::Parts;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::RowSelection;
use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::{Arc, LazyLock};

/// Rows of one step of reading a file.
const BATCH_ROWS: usize = 64 << 10;

/// See the module. Never changes.
pub struct Segment {
    /// Unique in the store.
    id: u64,
    /// The number under which its rows were first stored: all segments have it that differ only in the rows that are deleted.
    origin: u64,
    place: Place,
    account: Arc<Account>,
    /// The segments whose rows these are, if it was made of others.
    parts: Option<Arc<Parts>>,
    /// Of the rows as they are stored: shared by all segments that differ only in the rows that are deleted.
    lookups: Arc<SegmentLookups>,
}

enum Place {
    Memory(MemoryRows),
    File(StoredFile, DeletedRows),
}

/// One record batch, counted against the store's limit until the last user drops it.
pub(super) struct MemoryRows {
    /// Before the rows: fields are dropped in this order, see [`Claim`].
    _claim: Claim,
    rows: RecordBatch,
    bytes: u64,
    columns: Vec<ColumnFacts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ColumnFacts {
    /// Bytes of the values themselves.
    pub(super) bytes: u64,
    pub(super) nulls: u64,
}

pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

impl Segment {
    /// Takes the rows over without a copy, so they must be the store's own.
    pub(super) fn in_memory(id: u64, rows: RecordBatch, account: &Arc<Account>) -> Result<Self, Error> {
        let claim = account.claim(&rows)?;
        let bytes = retained_bytes(&rows);
        let columns = rows.columns().iter().map(ColumnFacts::of).collect();
        let place = Place::Memory(MemoryRows { _claim: claim, rows, bytes, columns });
        let (account, lookups) = (Arc::clone(account), Arc::default());
        Ok(Self { id, origin: id, place, account, parts: None, lookups })
    }

    pub(super) fn in_file(id: u64, file: StoredFile, deleted: DeletedRows, account: &Arc<Account>) -> Self {
        let (place, account) = (Place::File(file, deleted), Arc::clone(account));
        Self { id, origin: id, place, account, parts: None, lookups: Arc::default() }
    }

    /// The same rows without some more of the stored ones, under a new number. `None` where they are to be written anew.
    pub(super) fn without_rows(&self, rows: &[u32]) -> Option<Self> {
        let (file, deleted) = (self.file()?, self.deleted().with(rows));
        if deleted.are_few(file.rows(), file.bytes()) { self.with_deleted(deleted) } else { None }
    }

    fn with_deleted(&self, deleted: DeletedRows) -> Option<Self> {
        let place = Place::File(self.file()?.again(), deleted);
        let (id, origin, account) = (self.account.number(), self.origin, Arc::clone(&self.account));
        Some(Self {
            id,
            origin,
            place,
            account,
            parts: self.parts.clone(),
            lookups: Arc::clone(&self.lookups),
        })
    }

    /// Those of its rows that another segment of the same file has lost; `None` for one of another file. Only for reading.
    pub(super) fn lost_in(&self, other: &Self) -> Option<Self> {
        let Place::File(file, deleted) = &self.place else { return None };
        other.file().filter(|other| other.name() == file.name())?;
        let lost = DeletedRows::all_but(&other.deleted().beyond(deleted), file.rows());
        Some(Self::in_file(self.id, file.again(), lost, &self.account))
    }

    /// The same segment, which remembers that it has the rows of others.
    pub(super) fn of_parts(self, parts: &[Arc<Self>]) -> Self {
        Self { parts: Some(Parts::united(parts)), ..self }
    }

    /// The same new segment, which remembers that it has the rows that are left of another one without these, which are sorted.
    pub(super) fn as_rest_of(mut self: Arc<Self>, whole: &Self, gone: &[u32]) -> Arc<Self> {
        if let Some(rest) = Arc::get_mut(&mut self) {
            rest.parts = Some(Parts::rest(whole, gone));
        }
        self
    }

    /// The same without these stored rows, which are sorted, for a commit that merges. `None` where that takes too long, or memory that
    /// is not there; nothing where no row is left.
    pub(super) fn losing(self: &Arc<Self>, rows: &[u32]) -> Option<Option<Arc<Self>>> {
        if rows.is_empty() {
            return Some(Some(Arc::clone(self)));
        }
        if rows.len() >= self.rows() {
            return Some(None);
        }
        let Some(memory) = self.memory() else {
            // A file loses more than statements take out of it: it is written anew in the background, not while others wait.
            return self.with_deleted(self.deleted().with(rows)).map(|left| Some(Arc::new(left)));
        };
        let kept: Vec<bool> =
            (0..memory.rows() as u32).map(|row| rows.binary_search(&row).is_err()).collect();
        let left = filter_record_batch(memory.batch(), &BooleanArray::from(kept)).ok()?;
        let left = without_dead_texts(&left).ok()?;
        let left = Self::in_memory(self.account.number(), left, &self.account).ok()?;
        Some(Some(Arc::new(left).as_rest_of(self, rows)))
    }

    pub(super) fn parts(&self) -> Option<&Arc<Parts>> {
        self.parts.as_ref()
    }

    pub(super) fn origin(&self) -> u64 {
        self.origin
    }

    /// Those of `there` whose rows this segment has, if they are all there.
    pub(super) fn parts_among(&self, there: &HashMap<u64, &Arc<Self>>) -> Option<Vec<Arc<Self>>> {
        // The parts still have what was deleted since.
        self.parts.as_ref().filter(|_| self.deleted().is_empty())?.among(there)
    }

    /// Which of the stored rows were stored under none of these numbers; `None` where all are new.
    pub(super) fn rows_beyond(&self, origins: &HashSet<u64>) -> Option<Vec<bool>> {
        self.parts.as_ref().map(|parts| parts.rows_beyond(origins))
    }

    /// Where a stored row of another segment, which has the same rows or is a part of this one, is in this one.
    pub(super) fn place_of_row(&self, other: &Self, row: u32) -> Option<u32> {
        if self.is_stored_with(other) {
            Some(row)
        } else {
            self.parts.as_ref()?.place_of_row(other.origin, row)
        }
    }

    pub(super) fn is_made_of(&self, other: &Self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.have(other.origin))
    }

    /// The stored rows that another segment has and this one has lost, sorted; `None` for one that is not what is left of that one.
    pub(super) fn lost_of(&self, other: &Self) -> Option<Vec<u32>> {
        if self.is_stored_with(other) {
            return Some(self.deleted().beyond(other.deleted()));
        }
        let mut lost = self.parts.as_ref()?.lost_of(other.origin, self.deleted())?;
        lost.retain(|row| !other.deleted().contains(*row as usize));
        Some(lost)
    }

    /// Whether both have the same stored rows, of which others may be deleted.
    pub(super) fn is_stored_with(&self, other: &Self) -> bool {
        self.origin == other.origin
    }

    pub(super) fn again(&self) -> Result<Self, Error> {
        let id = self.account.number();
        match &self.place {
            Place::Memory(rows) => Self::in_memory(id, rows.batch().clone(), &self.account),
            Place::File(file, deleted) => {
                let again = Self::in_file(id, file.again(), deleted.clone(), &self.account);
                Ok(Self { origin: self.origin, lookups: Arc::clone(&self.lookups), ..again })
            }
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    pub(super) fn lookups(&self) -> &Arc<SegmentLookups> {
        &self.lookups
    }

    pub(super) fn memory(&self) -> Option<&MemoryRows> {
        match &self.place {
            Place::Memory(rows) => Some(rows),
            Place::File(..) => None,
        }
    }

    pub(super) fn file(&self) -> Option<&StoredFile> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(file, _) => Some(file),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.stored_rows() - self.deleted().len()
    }

    pub(super) fn stored_rows(&self) -> usize {
        match &self.place {
            Place::Memory(rows) => rows.rows(),
            Place::File(file, _) => file.rows(),
        }
    }

    pub(super) fn deleted(&self) -> &DeletedRows {
        static NONE: LazyLock<DeletedRows> = LazyLock::new(DeletedRows::default);
        match &self.place {
            Place::Memory(_) => &NONE,
            Place::File(_, deleted) => deleted,
        }
    }

    /// Bytes of memory that the rows keep allocated, also those that other segments share; else those of the file.
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            Place::Memory(rows) => rows.bytes,
            Place::File(file, _) => file.bytes(),
        }
    }

    pub(super) fn read(&self, schema: &SchemaRef) -> Result<Batches, Error> {
        let left = self.deleted().left(self.stored_rows());
        self.read_selected(schema, BATCH_ROWS, left)
    }

    /// The stored rows, deleted ones among them, in batches of at most so many if they are in a file.
    pub(super) fn read_stored(&self, schema: &SchemaRef, batch_rows: usize) -> Result<Batches, Error> {
        self.read_selected(schema, batch_rows, None)
    }

    fn read_selected(
        &self,
        schema: &SchemaRef,
        batch_rows: usize,
        selected: Option<RowSelection>,
    ) -> Result<Batches, Error> {
        match &self.place {
            Place::Memory(rows) => {
                let fitted = fitted(schema, rows.batch().columns().to_vec(), rows.rows())?;
                Ok(Box::new(iter::once(Ok(fitted))))
            }
            Place::File(file, _) => file.read(schema, batch_rows, selected),
        }
    }
}

impl MemoryRows {
    pub(super) fn batch(&self) -> &RecordBatch {
        &self.rows
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.num_rows()
    }

    pub(super) fn columns(&self) -> &[ColumnFacts] {
        &self.columns
    }
}

bowshot_api::debug_fields!(Segment { id });

impl ColumnFacts {
    fn of(values: &ArrayRef) -> Self {
        Self { bytes: used_bytes(values), nulls: values.logical_null_count() as u64 }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.nulls += other.nulls;
    }
}

/// The columns as rows of `schema`, without a copy. Fails when a type differs or a NOT NULL column has nulls.
pub(super) fn fitted(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// The rows without the texts that no row shows: concatenating and filtering views keep all texts of their sources.
pub(super) fn without_dead_texts(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    let columns = rows.columns().iter().map(live_texts).collect();
    Ok(fitted(rows.schema_ref(), columns, rows.num_rows())?)
}

pub(super) fn live_texts(values: &ArrayRef) -> ArrayRef {
    if let Some(texts) = values.as_string_view_opt() {
        Arc::new(texts.gc())
    } else if let Some(texts) = values.as_binary_view_opt() {
        Arc::new(texts.gc())
    } else {
        Arc::clone(values)
    }
}

/// Bytes that a copy of the values would take.
fn used_bytes(values: &ArrayRef) -> u64 {
    let texts = if let Some(texts) = values.as_string_view_opt() {
        texts.total_buffer_bytes_used()
    } else if let Some(texts) = values.as_binary_view_opt() {
        texts.total_buffer_bytes_used()
    } else {
        0
    };
    let slice = values.to_data().get_slice_memory_size();
    (slice.unwrap_or_else(|_| values.get_array_memory_size()) + texts) as u64
}
