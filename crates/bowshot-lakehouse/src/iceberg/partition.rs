//! The values that files are grouped by, in the types that they have now: a manifest has them in those of the time at which it
//! was written, and values of two times are compared.

use super::super::columns::LakeColumn;
use super::metadata::PartitionField;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

const MAX_DIGITS: u8 = 38;

/// The values of one file.
///
/// # Errors
/// Names the column that one is none of.
pub(super) fn present(
    values: Vec<ScalarValue>,
    fields: &[PartitionField],
    columns: &[LakeColumn],
) -> Result<Vec<ScalarValue>, String> {
    let value_of = |(place, value): (usize, ScalarValue)| match fields.get(place) {
        Some(field) => of_field(value, field, columns),
        None => Ok(value),
    };
    values.into_iter().enumerate().map(value_of).collect()
}

fn of_field(
    value: ScalarValue,
    field: &PartitionField,
    columns: &[LakeColumn],
) -> Result<ScalarValue, String> {
    let column = columns.iter().find(|column| field.source_id == Some(column.number));
    let kind = field.transform.split('[').next().unwrap_or_default();
    let wanted = match (kind, column) {
        ("identity" | "truncate", Some(column)) => column.field.data_type().clone(),
        // The column is gone, and with it its type.
        ("identity" | "truncate", None) => widest(value.data_type()),
        ("bucket" | "year" | "month" | "day" | "hour", _) => DataType::Int32,
        ("void", _) => return Ok(ScalarValue::Null),
        _ => return Ok(value),
    };
    value.cast_to(&wanted).map_err(|error| {
        let of = column.map_or("a dropped column", |column| column.field.name().as_str());
        format!("invalid partition value of type `{kind}`, expected `{of}`: {error}")
    })
}

/// The type that all those can become which a column had before.
fn widest(data_type: DataType) -> DataType {
    match data_type {
        DataType::Int32 => DataType::Int64,
        DataType::Float32 => DataType::Float64,
        DataType::Decimal128(_, scale) => DataType::Decimal128(MAX_DIGITS, scale),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use std::sync::Arc;

    fn now(value: ScalarValue, transform: &str, data_type: DataType) -> Result<ScalarValue, String> {
        let field: PartitionField =
            serde_json::from_value(serde_json::json!({"source-id": 1, "transform": transform})).unwrap();
        let default = ScalarValue::try_from(&data_type).unwrap();
        let column = LakeColumn { field: Arc::new(Field::new("p", data_type, true)), number: 1, default };
        Ok(present(vec![value], &[field], &[column])?.remove(0))
    }

    #[test]
    fn values_have_the_types_of_now() {
        let seven = || ScalarValue::Int32(Some(7));
        assert_eq!(now(seven(), "identity", DataType::Int64).unwrap(), ScalarValue::Int64(Some(7)));
        assert_eq!(now(seven(), "truncate[5]", DataType::Int64).unwrap(), ScalarValue::Int64(Some(7)));
        assert_eq!(now(seven(), "bucket[8]", DataType::Utf8).unwrap(), seven());
        assert_eq!(now(ScalarValue::Date32(Some(7)), "day", DataType::Date32).unwrap(), seven());
        assert_eq!(now(seven(), "void", DataType::Int64).unwrap(), ScalarValue::Null);
        let error = now(ScalarValue::Int64(Some(1 << 40)), "identity", DataType::Int32).unwrap_err();
        assert!(error.contains("`p`"), "{error}");
        let gone: PartitionField =
            serde_json::from_str(r#"{"source-id": 9, "transform": "identity"}"#).unwrap();
        let of_gone = |value| present(vec![value], std::slice::from_ref(&gone), &[]).unwrap();
        assert_eq!(of_gone(seven()), of_gone(ScalarValue::Int64(Some(7))));
    }
}
