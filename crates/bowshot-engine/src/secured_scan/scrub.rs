//! Rows as they leave a secured scan: without what their buffers still hold of hidden rows and values. Clients get buffers as they
//! are, and casts of a dictionary run over all of its values.

use arrow_select::dictionary::garbage_collect_any_dictionary;
use bowshot_kernels::nulls;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use std::sync::Arc;

/// What passes a guard.
#[derive(Debug, Clone)]
pub(super) struct Scrub {
    pub(super) schema: SchemaRef,
    /// Which of its columns are masked.
    pub(super) masked: Vec<bool>,
    /// Whether a policy hides rows.
    pub(super) has_hidden_rows: bool,
}

impl Scrub {
    /// The same rows with the fields of the guard, and with nothing else in their buffers.
    pub(super) fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().iter().zip(&self.masked).map(|(column, is_masked)| match is_masked {
            true => without_hidden_rows(&without_values_below_nulls(column)?),
            false if self.has_hidden_rows => without_hidden_rows(column),
            false => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The same values; dictionaries have those alone that are pointed at, views those bytes that are seen.
fn without_hidden_rows(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Dictionary(..) => garbage_collect_any_dictionary(array.as_any_dictionary())?,
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        nested if may_share(nested) => with_children(array, without_hidden_rows)?,
        _ => Arc::clone(array),
    })
}

/// The same array over other children, which have as many values.
fn with_children(
    array: &ArrayRef,
    of: fn(&ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    let data = array.to_data();
    let children = data.child_data().iter().map(|child| Ok(of(&make_array(child.clone()))?.to_data()));
    let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
    Ok(make_array(data.into_builder().child_data(children).build()?))
}

/// Whether values of a type lie in buffers that several arrays may share, in a field of it at least.
fn may_share(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) | DataType::Utf8View | DataType::BinaryView => true,
        DataType::Struct(fields) => fields.iter().any(|field| may_share(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| may_share(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => may_share(field.data_type()),
        DataType::RunEndEncoded(_, values) => may_share(values.data_type()),
        _ => false,
    }
}

/// The same values, with nothing below those that are NULL, nor below fields and items that are.
fn without_values_below_nulls(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let seen = nulls::nothing_below(array)?;
    // The values of a dictionary are looked through by `without_hidden_rows`, which leaves out those that nobody points at.
    match seen.data_type() {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => Ok(seen),
        nested if nested.is_nested() => with_children(&seen, without_values_below_nulls),
        _ => Ok(seen),
    }
}
