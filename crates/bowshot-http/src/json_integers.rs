//! Exact integers from JSON. Arrow's reader truncates `1.5` to an integer, so integers are read as strings first and
//! then parsed.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use std::sync::Arc;

pub(crate) fn carrier(data_type: &DataType) -> DataType {
    match data_type {
        whole if whole.is_integer() => DataType::Utf8,
        DataType::List(item) => DataType::List(carried(item)),
        DataType::LargeList(item) => DataType::LargeList(carried(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(carried).collect()),
        other => other.clone(),
    }
}

fn carried(field: &FieldRef) -> FieldRef {
    Arc::new(field.as_ref().clone().with_data_type(carrier(field.data_type())))
}

/// The columns that rows are read as which are to have these.
pub(crate) fn carriers(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(carried).collect::<Fields>()))
}

/// Values of the type that they are to be of.
pub(crate) fn fit(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    cast_with_options(column, data_type, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Rows with the columns that they are to have.
pub(crate) fn fit_rows(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = rows.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| fit(column, field.data_type())).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}
