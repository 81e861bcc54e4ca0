//! Rows in memory.

use super::Error;
use super::account::{Account, Claim, retained_bytes};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use std::fmt;
use std::sync::Arc;

/// Some rows of a table: one record batch in memory, counted against the store's limit until the last user drops it.
pub struct Segment {
    /// Unique in the store.
    id: u64,
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

impl Segment {
    /// Takes the rows over without a copy, so they must be the store's own.
    pub(super) fn new(id: u64, rows: RecordBatch, account: &Arc<Account>) -> Result<Self, Error> {
        let claim = account.claim(&rows)?;
        let bytes = retained_bytes(&rows);
        let columns = rows.columns().iter().map(ColumnFacts::of).collect();
        Ok(Self { id, _claim: claim, rows, bytes, columns })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn batch(&self) -> &RecordBatch {
        &self.rows
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// Bytes that the rows keep allocated, also those that other segments share.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
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
