//! The scalars within JSON, which stand there as the texts that they are as columns.

use super::{Column, Kind, PgType, scalars};
use crate::status::Failure;
use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use bowshot_rowwire::encode::{JsonForm, JsonScalars, fallible_encoder, json_writer};
use std::sync::Arc;

/// The encoder of a column that comes as JSON, in text and in binary.
pub(super) fn json_encoder(array: &ArrayRef, field: &Field) -> Result<Column, Failure> {
    let text = json_writer(array, field, &Scalars)?;
    let binary = Arc::clone(&text);
    Ok(fallible_encoder(
        Arc::clone(array),
        move |_, row, out| text(row, out),
        move |_, row, out| binary(row, out),
    ))
}

struct Scalars;

impl JsonScalars for Scalars {
    type Error = Failure;

    fn encoder(&self, array: &ArrayRef, field: &Field) -> Result<Column, Failure> {
        scalars::column_encoder(array, field)
    }

    fn form(&self, field: &Field) -> JsonForm {
        match PgType::from_field(field).kind {
            Kind::Json | Kind::Jsonb => JsonForm::Plain,
            _ => JsonForm::Quoted,
        }
    }

    fn internal(&self, message: &str) -> Failure {
        Failure::new("XX000", message)
    }
}
