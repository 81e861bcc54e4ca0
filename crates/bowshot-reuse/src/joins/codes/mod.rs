//! Codes for repeated texts: a text column of a cached join with few different values has a dictionary beside it, so that queries group and
//! compare numbers of two bytes. [`encode`] makes the codes, [`condition`] evaluates a condition once for each different text, [`group`] groups
//! by codes and puts the texts back. A code stands for exactly one text, and a text has one code.

mod condition;
mod encode;
mod functions;
mod group;

pub(super) use condition::over_codes;
pub(super) use encode::{add_codes, without_codes};
pub(super) use group::grouped_by_codes;

use crate::cache::Loaded;
use crate::deep_copy;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt16Type};
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// What the name of a column of codes begins with, where that of its texts has `#`.
const MARK: char = '@';

/// The name of the codes of a cached column; `None` for what is none.
fn code_name(column: &str) -> Option<String> {
    column.strip_prefix('#').map(|rest| format!("{MARK}{rest}"))
}

fn is_code(field: &Field) -> bool {
    field.name().starts_with(MARK)
}

/// The different texts of a cached column, each at the place that its code says, if it has codes.
fn texts(rows: &Loaded, column: &str) -> Option<ArrayRef> {
    let codes = rows.batches.first()?.column_by_name(&code_name(column)?)?;
    let texts = codes.as_dictionary_opt::<UInt16Type>()?.values();
    // They are read when the last rows have been, after which nobody looks whether a mapped file is still what it was.
    if rows.is_mapped() { deep_copy::column(texts).ok() } else { Some(Arc::clone(texts)) }
}

/// The schema of cached rows as plans see them: codes are numbers.
pub(super) fn shown_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        if is_code(field) {
            Arc::new(Field::new(field.name(), DataType::UInt16, field.is_nullable()))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// A cached batch as one of [`shown_schema`], without a copy.
pub(super) fn shown(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let fields = batch.schema_ref().fields().iter().zip(batch.columns());
    let columns = fields.map(|(field, column)| match column.as_dictionary_opt::<UInt16Type>() {
        Some(codes) if is_code(field) => Arc::new(codes.keys().clone()) as ArrayRef,
        _ => Arc::clone(column),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect(), &options)
}
