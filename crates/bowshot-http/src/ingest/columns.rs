//! The columns of rows that come as text: their names are in the text, and their types those of the table, where it has such a
//! column, else what the first rows look like.

use super::MAX_COLUMNS;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use bowshot_api::{Error, ErrorKind, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// The columns to read. `is_read` tells which types a text can be read as; the session casts texts to the others.
///
/// # Errors
/// `Invalid` for a name that is there twice, `LimitReached` for too many columns.
pub(super) fn settle(
    seen: &Schema,
    known: Option<&Schema>,
    is_read: impl Fn(&DataType) -> bool,
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
        let known = known.and_then(|known| known.field_with_name(field.name()).ok());
        let data_type = match known.map(Field::data_type) {
            Some(data_type) if is_read(data_type) => data_type.clone(),
            Some(_) => DataType::Utf8,
            None => plain(field.data_type()),
        };
        fields.push(Field::new(field.name(), data_type, true));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A type with texts where nothing but nulls was seen.
fn plain(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(plain(field.data_type())));
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect::<Fields>()),
        other => other.clone(),
    }
}
