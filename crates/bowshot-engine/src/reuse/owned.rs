//! Rows that are to be kept, without the memory of others.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_empty_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use std::sync::Arc;

/// Bytes of a column that are not worth a copy.
const SMALL_WASTE: usize = 1 << 10;

/// The batch in the columns of `schema`, without texts that no row shows and without memory that no row fills.
pub(super) fn owned(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| -> Result<ArrayRef> {
        if let Some(texts) = column.as_string_view_opt() {
            return Ok(Arc::new(texts.gc()));
        }
        if let Some(texts) = column.as_binary_view_opt() {
            return Ok(Arc::new(texts.gc()));
        }
        let used = column.to_data().get_slice_memory_size()?;
        if column.get_array_memory_size() < used.saturating_mul(2).saturating_add(SMALL_WASTE) {
            return Ok(Arc::clone(column));
        }
        // Two arrays are copied, one would be handed back as it is.
        Ok(concat(&[column.as_ref(), &new_empty_array(column.data_type())])?)
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
