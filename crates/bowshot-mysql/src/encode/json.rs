//! The scalars within JSON, which stand there as the texts that they are as columns; bytes are hexadecimal digits.

use super::{ColumnType, Encoder, Kind, scalars};
use crate::status::Failure;
use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use bowshot_rowwire::encode::{JsonForm, JsonScalars, json_writer};
use std::sync::Arc;

/// The encoder of a column that comes as JSON.
pub(super) fn json_encoder(array: &ArrayRef, field: &Field, zone: &str) -> Result<Encoder, Failure> {
    let text = json_writer(array, field, &Scalars { zone })?;
    Ok(scalars::text_encoder(Arc::clone(array), move |_, row, out| text(row, out)))
}

struct Scalars<'a> {
    zone: &'a str,
}

impl JsonScalars for Scalars<'_> {
    type Error = Failure;

    fn encoder(&self, array: &ArrayRef, field: &Field) -> Result<Encoder, Failure> {
        scalars::column_encoder(array, field, self.zone)
    }

    fn form(&self, field: &Field) -> JsonForm {
        match ColumnType::from_field(field).kind {
            Kind::Json => JsonForm::Plain,
            Kind::Bytes => JsonForm::Hex,
            _ => JsonForm::Quoted,
        }
    }

    fn internal(&self, message: &str) -> Failure {
        Failure::new(1105, "HY000", message)
    }
}
