//! Whether rows that two transactions have put into a table have the same key: each has compared its own with those that it saw.

use super::key_lookup::has_plain_equality;
use super::segment::{MemoryRows, Segment};
use super::{Key, Table};
use arrow::array::{Array, ArrayRef};
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
        let new = self.new.as_ref();
        new.map_or(self.segment.rows(), |new| new.iter().filter(|is_new| **is_new).count())
    }

    fn has(&self, row: usize) -> bool {
        self.new.as_ref().is_none_or(|new| new.get(row) != Some(&false))
    }
}

/// Whether rows that two sides have put into a table may have the same key.
pub(super) fn may_share_key(table: &Table, ours: &[NewRows], theirs: &[NewRows]) -> bool {
    if ours.is_empty() || theirs.is_empty() {
        return false;
    }
    let all = || ours.iter().chain(theirs);
    let is_known = all().all(|rows| rows.segment.memory().is_some());
    if !is_known || all().map(NewRows::count).sum::<usize>() > MAX_ROWS {
        return true;
    }
    table.definition().keys().any(|key| share(table, key, (ours, theirs)).ok().flatten().unwrap_or(true))
}

/// `None` for keys whose equal values may have other bytes.
fn share(
    table: &Table,
    key: &Key,
    (ours, theirs): (&[NewRows], &[NewRows]),
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
fn keys(converter: &RowConverter, places: &[usize], new: &[NewRows]) -> Result<Vec<OwnedRow>, ArrowError> {
    let mut keys = Vec::new();
    for rows in new {
        let Some(batch) = rows.segment.memory().map(MemoryRows::batch) else { continue };
        let columns: Vec<ArrayRef> =
            places.iter().filter_map(|place| batch.columns().get(*place)).cloned().collect();
        let converted = converter.convert_columns(&columns)?;
        let is_known = |row: &usize| rows.has(*row) && columns.iter().all(|column| column.is_valid(*row));
        keys.extend((0..batch.num_rows()).filter(is_known).map(|row| converted.row(row).owned()));
    }
    Ok(keys)
}
