//! Some rows of a table: in memory, or in a file, of which a few may be deleted.

use super::Error;
use super::account::{Account, Claim, retained_bytes};
use super::deleted_rows::DeletedRows;
use super::durable::StoredFile;
use super::key_lookup::SegmentLookups;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::RowSelection;
use std::collections::HashMap;
use std::fmt;
use std::iter;
use std::sync::{Arc, LazyLock};

/// Rows of one step of reading a file.
const BATCH_ROWS: usize = 64 << 10;

/// See the module. Never changes.
pub struct Segment {
    /// Unique in the store.
    id: u64,
    place: Place,
    account: Arc<Account>,
    /// The segments whose rows these are, if they were united.
    parts: Option<Arc<Parts>>,
    /// Of the rows as they are stored: shared by all segments that differ only in the rows that are deleted.
    lookups: Arc<SegmentLookups>,
}

/// The segments that went into one, in their order.
#[derive(Debug)]
struct Parts {
    direct: Vec<Part>,
    /// Segments in this and below.
    count: usize,
}

#[derive(Debug)]
struct Part {
    id: u64,
    rows: usize,
    /// What went into it.
    below: Option<Arc<Parts>>,
}

/// Numbers that a segment remembers, so that those of a table that is changed for ever do not grow for ever.
const MAX_PARTS: usize = 4096;

/// Rows of a file whose deleted rows are compared one by one: each row takes four bytes meanwhile.
const MAX_ROWS_COMPARED: usize = 16 << 20;

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

/// What is known of the values of a column without looking at them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ColumnFacts {
    /// Bytes of the values themselves.
    pub(super) bytes: u64,
    pub(super) nulls: u64,
}

/// The rows of a segment, batch by batch.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

impl Segment {
    /// Takes the rows over without a copy, so they must be the store's own.
    pub(super) fn in_memory(id: u64, rows: RecordBatch, account: &Arc<Account>) -> Result<Self, Error> {
        let claim = account.claim(&rows)?;
        let bytes = retained_bytes(&rows);
        let columns = rows.columns().iter().map(ColumnFacts::of).collect();
        let place = Place::Memory(MemoryRows { _claim: claim, rows, bytes, columns });
        Ok(Self { id, place, account: Arc::clone(account), parts: None, lookups: Arc::default() })
    }

    /// The rows of a file without those that are deleted.
    pub(super) fn in_file(id: u64, file: StoredFile, deleted: DeletedRows, account: &Arc<Account>) -> Self {
        let (place, account) = (Place::File(file, deleted), Arc::clone(account));
        Self { id, place, account, parts: None, lookups: Arc::default() }
    }

    /// The same rows without some more of the stored ones, under a new number. `None` where they are to be written anew.
    pub(super) fn without_rows(&self, rows: &[u32]) -> Option<Self> {
        let Place::File(file, deleted) = &self.place else { return None };
        let place = Place::File(file.again(), deleted.with(rows, file.rows())?);
        let (account, parts) = (Arc::clone(&self.account), self.parts.clone());
        Some(Self { id: account.number(), place, account, parts, lookups: Arc::clone(&self.lookups) })
    }

    /// Those of its rows that another segment of the same file has lost; `None` for one of another file. Only for reading.
    pub(super) fn lost_in(&self, other: &Self) -> Option<Self> {
        let Place::File(file, deleted) = &self.place else { return None };
        other.file().filter(|other| other.name() == file.name() && file.rows() <= MAX_ROWS_COMPARED)?;
        let lost = DeletedRows::all_but(&other.deleted().beyond(deleted), file.rows());
        Some(Self::in_file(self.id, file.again(), lost, &self.account))
    }

    /// The same segment, which remembers that it has the rows of others.
    pub(super) fn of_parts(self, parts: &[Arc<Self>]) -> Self {
        let below = |segment: &Arc<Self>| segment.parts.as_ref().map_or(0, |parts| parts.count);
        let all: usize = parts.iter().map(|segment| 1 + below(segment)).sum();
        let deep = all <= MAX_PARTS;
        let part = |segment: &Arc<Self>| Part {
            id: segment.id,
            rows: segment.rows(),
            below: segment.parts.clone().filter(|_| deep),
        };
        let direct = parts.iter().map(part).collect();
        let count = if deep { all } else { parts.len() };
        Self { parts: Some(Arc::new(Parts { direct, count })), ..self }
    }

    /// Those of `there` whose rows this segment has, if they are all there.
    pub(super) fn parts_among(&self, there: &HashMap<u64, &Arc<Self>>) -> Option<Vec<Arc<Self>>> {
        let mut found = Vec::new();
        // The parts still have what was deleted since.
        self.parts.as_ref().filter(|_| self.deleted().is_empty())?.find(there, &mut found)?;
        Some(found)
    }

    /// Where the rows of a segment begin among the stored rows of this one, which was made of it and others.
    pub(super) fn place_of_part(&self, part: u64) -> Option<usize> {
        let direct = &self.parts.as_ref()?.direct;
        let before = direct.iter().position(|there| there.id == part)?;
        Some(direct.iter().take(before).map(|there| there.rows).sum())
    }

    /// Whether both have the same stored rows, of which others may be deleted.
    pub(super) fn is_stored_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lookups, &other.lookups)
    }

    /// The same rows under a new number.
    pub(super) fn again(&self) -> Result<Self, Error> {
        let id = self.account.number();
        match &self.place {
            Place::Memory(rows) => Self::in_memory(id, rows.batch().clone(), &self.account),
            Place::File(file, deleted) => {
                let again = Self::in_file(id, file.again(), deleted.clone(), &self.account);
                Ok(Self { lookups: Arc::clone(&self.lookups), ..again })
            }
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// What it keeps to find rows by their keys.
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

    /// How many rows are stored, deleted ones among them.
    pub(super) fn stored_rows(&self) -> usize {
        match &self.place {
            Place::Memory(rows) => rows.rows(),
            Place::File(file, _) => file.rows(),
        }
    }

    /// Numbers of the stored rows that are deleted.
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

    /// The rows in the columns of `schema`.
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

impl Parts {
    fn find(&self, there: &HashMap<u64, &Arc<Segment>>, found: &mut Vec<Arc<Segment>>) -> Option<()> {
        for Part { id, below, .. } in &self.direct {
            match (there.get(id), below) {
                (Some(segment), _) => found.push(Arc::clone(segment)),
                (None, Some(below)) => below.find(there, found)?,
                (None, None) => return None,
            }
        }
        Some(())
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

impl fmt::Debug for Segment {
    /// Without the values, which are the users' own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("id", &self.id).field("rows", &self.rows()).finish_non_exhaustive()
    }
}

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
