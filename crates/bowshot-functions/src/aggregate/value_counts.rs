//! Counts of each value.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The first place of each different value and how often it is there, in the order of first places.
pub(crate) fn counted(values: &ArrayRef) -> Result<Vec<(usize, usize)>> {
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let rows = converter.convert_columns(&[std::sync::Arc::clone(values)])?;
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut counts: Vec<(usize, usize)> = Vec::new();
    let rows: Vec<_> = rows.iter().collect();
    for (index, row) in rows.iter().enumerate() {
        match places.entry(row.data()) {
            Entry::Vacant(new) => {
                new.insert(counts.len());
                counts.push((index, 1));
            }
            Entry::Occupied(known) => {
                if let Some((_, count)) = counts.get_mut(*known.get()) {
                    *count += 1;
                }
            }
        }
    }
    Ok(counts)
}
