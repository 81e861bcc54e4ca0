//! Some rows of a table: in memory, or in a file.

use super::Error;
use super::account::{Account, Claim, retained_bytes};
use super::durable::StoredFile;
use super::key_lookup::SegmentLookups;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::collections::HashMap;
use std::fmt;
use std::iter;
use std::sync::Arc;

/// Rows of one step of rewriting a file.
const BATCH_ROWS: usize = 64 << 10;

/// See the module. Never changes.
pub struct Segment {
    /// Unique in the store.
    id: u64,
    place: Place,
    account: Arc<Account>,
    /// The segments whose rows these are, if they were united.
    parts: Option<Arc<Parts>>,
    lookups: Arc<SegmentLookups>,
}

/// The numbers of segments that went into one, and what went into those.
#[derive(Debug)]
struct Parts {
    ids: Vec<(u64, Option<Arc<Parts>>)>,
    /// Numbers in this and below.
    count: usize,
}

/// Numbers that a segment remembers, so that those of a table that is changed for ever do not grow for ever.
const MAX_PARTS: usize = 4096;

enum Place {
    Memory(MemoryRows),
    File(StoredFile),
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

    pub(super) fn in_file(id: u64, file: StoredFile, account: &Arc<Account>) -> Self {
        let (place, account) = (Place::File(file), Arc::clone(account));
        Self { id, place, account, parts: None, lookups: Arc::default() }
    }

    /// The same segment, which remembers that it has the rows of others.
    pub(super) fn of_parts(self, parts: &[Arc<Self>]) -> Self {
        let below = |segment: &Arc<Self>| segment.parts.as_ref().map_or(0, |parts| parts.count);
        let all: usize = parts.iter().map(|segment| 1 + below(segment)).sum();
        let deep = all <= MAX_PARTS;
        let ids = parts.iter().map(|segment| (segment.id, segment.parts.clone().filter(|_| deep))).collect();
        let count = if deep { all } else { parts.len() };
        Self { parts: Some(Arc::new(Parts { ids, count })), ..self }
    }

    /// Those of `there` whose rows this segment has, if they are all there.
    pub(super) fn parts_among(&self, there: &HashMap<u64, &Arc<Self>>) -> Option<Vec<Arc<Self>>> {
        let mut found = Vec::new();
        self.parts.as_ref()?.find(there, &mut found)?;
        Some(found)
    }

    /// The same rows under a new number.
    pub(super) fn again(&self) -> Result<Self, Error> {
        let id = self.account.number();
        match &self.place {
            Place::Memory(rows) => Self::in_memory(id, rows.batch().clone(), &self.account),
            Place::File(file) => Ok(Self::in_file(id, file.again(), &self.account)),
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
            Place::File(_) => None,
        }
    }

    pub(super) fn file(&self) -> Option<&StoredFile> {
        match &self.place {
            Place::Memory(_) => None,
            Place::File(file) => Some(file),
        }
    }

    pub(super) fn rows(&self) -> usize {
        match &self.place {
            Place::Memory(rows) => rows.rows(),
            Place::File(file) => file.rows(),
        }
    }

    /// Bytes of memory that the rows keep allocated, also those that other segments share; else those of the file.
    pub(super) fn bytes(&self) -> u64 {
        match &self.place {
            Place::Memory(rows) => rows.bytes,
            Place::File(file) => file.bytes(),
        }
    }

    /// The rows in the columns of `schema`.
    pub(super) fn read(&self, schema: &SchemaRef) -> Result<Batches, Error> {
        self.read_in_batches(schema, BATCH_ROWS)
    }

    /// The same in batches of at most so many rows, if they are in a file.
    pub(super) fn read_in_batches(&self, schema: &SchemaRef, batch_rows: usize) -> Result<Batches, Error> {
        match &self.place {
            Place::Memory(rows) => {
                let fitted = fitted(schema, rows.batch().columns().to_vec(), rows.rows())?;
                Ok(Box::new(iter::once(Ok(fitted))))
            }
            Place::File(file) => file.read(schema, batch_rows),
        }
    }
}

impl Parts {
    fn find(&self, there: &HashMap<u64, &Arc<Segment>>, found: &mut Vec<Arc<Segment>>) -> Option<()> {
        for (id, below) in &self.ids {
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
