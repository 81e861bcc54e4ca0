//! Values of types that files never show by themselves, such as maps, decimals and bytes: tables of our own have them, and
//! `COPY` fills them. They are kept as they are written, and made an array of when the batch is full.

use super::columns::Wrong;
use super::texts::Texts;
use arrow::array::{ArrayRef, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use std::sync::Arc;

/// The array of values as they are written.
pub(super) fn array(
    texts: &Texts,
    nulls: Option<&NullBuffer>,
    (name, data_type): (&str, &DataType),
) -> Result<ArrayRef, Wrong> {
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
    let values: Vec<&[u8]> = texts
        .iter()
        .enumerate()
        .map(|(row, text)| if is_null(row) { b"null".as_slice() } else { text })
        .collect();
    decode(&values, data_type).map_err(|error| {
        let row = values.iter().position(|value| decode(&[*value], data_type).is_err());
        Wrong { row, detail: format!("column `{name}`: {}", message(&error)) }
    })
}

/// Whether a value is one of a type.
pub(super) fn fits(value: &[u8], data_type: &DataType) -> bool {
    decode(&[value], data_type).is_ok()
}

fn decode(values: &[&[u8]], data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if values.is_empty() {
        return Ok(new_null_array(data_type, 0));
    }
    let field = Arc::new(Field::new("value", data_type.clone(), true));
    let builder = ReaderBuilder::new_with_field(field).with_batch_size(values.len());
    let mut decoder = builder.with_coerce_primitive(true).build_decoder()?;
    for value in values {
        decoder.decode(value)?;
        decoder.decode(b"\n")?;
    }
    let batch = decoder.flush()?;
    let array =
        batch.filter(|batch| batch.num_rows() == values.len()).map(|batch| Arc::clone(batch.column(0)));
    array.ok_or_else(|| ArrowError::JsonError("values are missing".to_owned()))
}

fn message(error: &ArrowError) -> String {
    let text = error.to_string();
    text.strip_prefix("Json error: ").map_or_else(|| text.clone(), str::to_owned)
}
