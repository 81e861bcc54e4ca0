//! Whether rows that two transactions have put into a table have the same key: each has compared its own with those that it saw.

use super::key_lookup::has_plain_equality;
use super::segment::Segment;
use super::{Key, Table};
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows of both sides that are compared while other commits wait; of more it is taken that they share a key.
const MAX_ROWS: usize = 8192;

/// The rows of a segment that are new in a state of a table.
pub(super) struct NewRows {
    segment: Arc<Segment>,
    /// Which of the stored rows are; `None` for all.
    new: Option<Vec<bool>>,
}

impl NewRows {
    pub(super) fn new(segment: Arc<Segment>, new: Option<Vec<bool>>) -> Self {
        Self { segment, new }
    }

    pub(super) fn count(&self) -> usize {
        let Some(new) = &self.new else { return self.segment.rows() };
        (0..new.len()).filter(|row| self.has(*row)).count()
    }

    fn has(&self, row: usize) -> bool {
        let is_new = self.new.as_ref().is_none_or(|new| new.get(row) != Some(&false));
        is_new && !self.segment.deleted().contains(row)
    }

    fn stored(&self, table: &Table) -> Option<RecordBatch> {
        if let Some(memory) = self.segment.memory() {
            return Some(memory.batch().clone());
        }
        // The background may have moved rows since; a store that is far away is not asked.
        let is_near = self.segment.file().is_some_and(|file| file.disk().bucket().is_none());
        if !is_near || self.segment.stored_rows() > MAX_ROWS {
            return None;
        }
        let batches = self.segment.read_stored(&table.schema(), MAX_ROWS).ok()?;
        concat_batches(&table.schema(), &batches.collect::<Result<Vec<_>, _>>().ok()?).ok()
    }
}

/// Whether rows that two sides have put into a table may have the same key.
pub(super) fn may_share_key(table: &Table, ours: &[NewRows], theirs: &[NewRows]) -> bool {
    if ours.is_empty() || theirs.is_empty() {
        return false;
    }
    if ours.iter().chain(theirs).map(NewRows::count).sum::<usize>() > MAX_ROWS {
        return true;
    }
    let stored = |rows: &[NewRows]| rows.iter().map(|rows| rows.stored(table)).collect::<Option<Vec<_>>>();
    let (Some(our_rows), Some(their_rows)) = (stored(ours), stored(theirs)) else { return true };
    let (ours, theirs) = ((ours, our_rows.as_slice()), (theirs, their_rows.as_slice()));
    table.definition().keys().any(|key| share(table, key, (ours, theirs)).ok().flatten().unwrap_or(true))
}

/// New rows, and the stored ones among which they are.
type Stored<'a> = (&'a [NewRows], &'a [RecordBatch]);

/// `None` for keys whose equal values may have other bytes.
fn share(
    table: &Table,
    key: &Key,
    (ours, theirs): (Stored<'_>, Stored<'_>),
) -> Result<Option<bool>, ArrowError> {
    let (definition, schema) = (table.definition(), table.operator_schema());
    let (mut places, mut fields) = (Vec::new(), Vec::new());
    for name in &key.columns {
        let Some(place) = definition.position(name) else { return Ok(None) };
        let field = schema.field(place);
        if !field.metadata().is_empty() || !has_plain_equality(field.data_type()) {
            return Ok(None);
        }
        places.push(place);
        fields.push(SortField::new(field.data_type().clone()));
    }
    let converter = RowConverter::new(fields)?;
    let known: HashSet<OwnedRow> = keys(&converter, &places, ours)?.into_iter().collect();
    Ok(Some(keys(&converter, &places, theirs)?.iter().any(|key| known.contains(key))))
}

/// The keys of the rows. One with a null is nobody's equal.
fn keys(
    converter: &RowConverter,
    places: &[usize],
    (new, stored): Stored<'_>,
) -> Result<Vec<OwnedRow>, ArrowError> {
    let mut keys = Vec::new();
    for (rows, batch) in new.iter().zip(stored) {
        let columns: Vec<ArrayRef> =
            places.iter().filter_map(|place| batch.columns().get(*place)).cloned().collect();
        let converted = converter.convert_columns(&columns)?;
        let is_known = |row: &usize| rows.has(*row) && columns.iter().all(|column| column.is_valid(*row));
        keys.extend((0..batch.num_rows()).filter(is_known).map(|row| converted.row(row).owned()));
    }
    Ok(keys)
}
