//! Columns of text formats: named in the text, with the types of the table, or inferred for columns that it does not
//! have.

use super::MAX_COLUMNS;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use bowshot_api::variant::has_variants;
use bowshot_api::{Error, ErrorKind, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// The columns to read. `can_parse` returns whether the reader can parse a type; the session casts strings to others.
///
/// # Errors
/// `Invalid` for a name that is there twice, `LimitReached` for too many columns.
pub(super) fn resolve(
    seen: &Schema,
    table: Option<&Schema>,
    can_parse: impl Fn(&DataType) -> bool,
) -> Result<SchemaRef> {
    let count = seen.fields().len();
    if count > MAX_COLUMNS {
        let message = format!("the rows have {count} columns, and the limit is {MAX_COLUMNS}");
        return Err(Error::new(ErrorKind::LimitReached, message).with_hint("send an Arrow stream"));
    }
    let mut names = HashSet::new();
    let mut fields = Vec::with_capacity(count);
    for field in seen.fields() {
        if !names.insert(field.name()) {
            return Err(Error::invalid(format!("the column `{}` is there twice", field.name())));
        }
        let table = table.and_then(|table| table.field_with_name(field.name()).ok());
        let data_type = match table.map(Field::data_type) {
            // JSON text becomes VARIANT in the session.
            Some(data_type) if !has_variants(data_type) && can_parse(data_type) => data_type.clone(),
            Some(_) => DataType::Utf8,
            None => without_null_types(field.data_type()),
        };
        fields.push(Field::new(field.name(), data_type, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn without_null_types(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(without_null_types(field.data_type())))
    };
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Fields>()),
        other => other.clone(),
    }
}
