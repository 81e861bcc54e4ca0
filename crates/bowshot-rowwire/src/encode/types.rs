//! Types of columns: those beyond their Arrow type, and those to which a column is brought before it is written.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field};
use bowshot_api::variant::{is_variant_type, json_texts};
use std::sync::Arc;

/// Whether a column has a type beyond its Arrow type: as a canonical extension type of Arrow, or as a table declares it.
pub fn has_type(field: &Field, name: &str) -> bool {
    let extension = field.metadata().get("ARROW:extension:name").and_then(|name| name.strip_prefix("arrow."));
    let declared = field.metadata().get("bowshot:type");
    extension == Some(name) || declared.is_some_and(|declared| declared.eq_ignore_ascii_case(name))
}

/// The wider or plainer type that has the same values, if there is one that every protocol writes alike.
pub fn plain_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::ListView(item) => DataType::List(Arc::clone(item)),
        DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
        // VARIANT goes as JSON text.
        of if is_variant_type(of) => DataType::Utf8,
        _ => return None,
    })
}

/// The column as another type.
///
/// # Errors
/// With the message for the client, when a value does not fit.
pub fn convert(array: &ArrayRef, field: &Field, to: &DataType) -> Result<(ArrayRef, Field), String> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let converted = match array.data_type() {
        of if is_variant_type(of) => json_texts(array).map(|texts| Arc::new(texts) as ArrayRef),
        _ => cast_with_options(array, to, &strict),
    };
    match converted {
        Ok(array) => Ok((array, field.clone().with_data_type(to.clone()))),
        Err(error) => {
            Err(format!("column `{}` of type {} cannot be sent: {error}", field.name(), field.data_type()))
        }
    }
}
