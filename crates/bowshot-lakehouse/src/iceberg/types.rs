//! Iceberg's types as Arrow's (specification, "Schemas and Data Types").

use super::super::columns::{LakeColumn, numbered};
use super::metadata::{IcebergField, IcebergType, NestedType};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use datafusion::common::ScalarValue;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of a value of `fixed[L]`; longer ones are not read, since rows without a value take as much room.
const MAX_FIXED: i32 = 64 << 10;

/// The columns of a table.
///
/// # Errors
/// Names the column whose type, or whose value of before it was added, is not known here.
pub(super) fn columns(fields: &[IcebergField]) -> Result<Vec<LakeColumn>, String> {
    fields.iter().map(column).collect()
}

/// What rows that are added have in columns that they do not name.
///
/// # Errors
/// Names the column whose value is not known here.
pub(super) fn write_defaults(
    fields: &[IcebergField],
    columns: &[LakeColumn],
) -> Result<Vec<ScalarValue>, String> {
    let of_column = |(field, column): (&IcebergField, &LakeColumn)| {
        default_of(field.write_default.as_ref(), column.field.data_type())
            .map_err(|detail| format!("column `{}` has an unsupported write default: {detail}", field.name))
    };
    fields.iter().zip(columns).map(of_column).collect()
}

/// The numbers of nested fields that have a value other than NULL in rows of before they were added.
pub(super) fn with_default(fields: &[IcebergField]) -> HashSet<i32> {
    let mut found = HashSet::new();
    fields.iter().for_each(|field| add_with_default(&field.data_type, &mut found));
    found
}

fn add_with_default(data_type: &IcebergType, found: &mut HashSet<i32>) {
    match data_type {
        IcebergType::Primitive(_) => {}
        IcebergType::Nested(NestedType::Struct { fields }) => {
            for field in fields {
                if field.initial_default.as_ref().is_some_and(|value| !value.is_null()) {
                    found.insert(field.id);
                }
                add_with_default(&field.data_type, found);
            }
        }
        IcebergType::Nested(NestedType::List { element, .. }) => add_with_default(element, found),
        IcebergType::Nested(NestedType::Map { key, value, .. }) => {
            add_with_default(key, found);
            add_with_default(value, found);
        }
    }
}

fn column(field: &IcebergField) -> Result<LakeColumn, String> {
    let name = field.name.as_str();
    let arrow = arrow_field(field)
        .map_err(|unknown| format!("column `{name}` has the unsupported type {unknown}"))?;
    let default = default_of(field.initial_default.as_ref(), arrow.data_type())
        .map_err(|detail| format!("column `{name}` has an unsupported initial default: {detail}"))?;
    Ok(LakeColumn { field: arrow, number: field.id, default })
}

/// NULL where there is none.
fn default_of(value: Option<&Value>, data_type: &DataType) -> Result<ScalarValue, String> {
    match value {
        None | Some(Value::Null) => ScalarValue::try_from(data_type).map_err(|error| error.to_string()),
        Some(value) => default(value, data_type),
    }
}

/// A default of JSON (specification, "JSON single-value serialization").
fn default(value: &Value, data_type: &DataType) -> Result<ScalarValue, String> {
    let text = match value {
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(it) if !matches!(data_type, DataType::Binary | DataType::FixedSizeBinary(_)) => {
            it.clone()
        }
        other => return Err(other.to_string()),
    };
    ScalarValue::try_from_string(text, data_type).map_err(|error| error.to_string())
}

fn arrow_field(field: &IcebergField) -> Result<FieldRef, String> {
    nested(&field.name, field.id, &field.data_type, field.required)
}

fn nested(name: &str, number: i32, data_type: &IcebergType, required: bool) -> Result<FieldRef, String> {
    let mut metadata = numbered(number);
    if matches!(data_type, IcebergType::Primitive(text) if text == "uuid") {
        metadata.insert(EXTENSION.to_owned(), UUID.to_owned());
    }
    Ok(Arc::new(Field::new(name, arrow_type(data_type)?, !required).with_metadata(metadata)))
}

fn arrow_type(data_type: &IcebergType) -> Result<DataType, String> {
    match data_type {
        IcebergType::Primitive(text) => primitive(text).ok_or_else(|| format!("`{text}`")),
        IcebergType::Nested(NestedType::Struct { fields }) => {
            Ok(DataType::Struct(fields.iter().map(arrow_field).collect::<Result<_, _>>()?))
        }
        IcebergType::Nested(NestedType::List { element_id, element, element_required }) => {
            Ok(DataType::List(nested("element", *element_id, element, *element_required)?))
        }
        IcebergType::Nested(NestedType::Map { key_id, key, value_id, value, value_required }) => {
            let entries =
                [nested("key", *key_id, key, true)?, nested("value", *value_id, value, *value_required)?];
            let entries = Field::new("key_value", DataType::Struct(entries.into_iter().collect()), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
    }
}

fn primitive(text: &str) -> Option<DataType> {
    Some(match text {
        "boolean" => DataType::Boolean,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "timestamptz_ns" => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        "string" => DataType::Utf8,
        "uuid" => DataType::FixedSizeBinary(16),
        "binary" => DataType::Binary,
        _ => return with_size(text),
    })
}

/// `fixed[L]` and `decimal(P, S)`.
fn with_size(text: &str) -> Option<DataType> {
    if let Some(length) = text.strip_prefix("fixed[").and_then(|rest| rest.strip_suffix(']')) {
        return length
            .trim()
            .parse()
            .ok()
            .filter(|length| (1..=MAX_FIXED).contains(length))
            .map(DataType::FixedSizeBinary);
    }
    let (precision, scale) = text.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale): (u8, i8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let fits = (1..=38).contains(&precision) && scale >= 0 && i16::from(scale) <= i16::from(precision);
    fits.then_some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<LakeColumn, String> {
        column(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn types_are_arrows() {
        let of = |data_type: &str| {
            let json = format!(r#"{{"id": 1, "name": "x", "required": false, "type": {data_type}}}"#);
            parsed(&json).map(|column| column.field.data_type().clone())
        };
        assert_eq!(of(r#""decimal(10, 2)""#).unwrap(), DataType::Decimal128(10, 2));
        assert_eq!(of(r#""fixed[3]""#).unwrap(), DataType::FixedSizeBinary(3));
        assert!(matches!(
            of(r#"{"type": "list", "element-id": 2, "element": "int", "element-required": false}"#).unwrap(),
            DataType::List(_)
        ));
        assert!(matches!(
            of(r#"{"type": "map", "key-id": 2, "key": "string", "value-id": 3, "value": "long", "value-required": true}"#)
                .unwrap(),
            DataType::Map(..)
        ));
        for unknown in [
            r#""variant""#,
            r#""decimal(50,2)""#,
            r#""geometry(srid:0)""#,
            r#""fixed[0]""#,
            r#""fixed[2000000000]""#,
        ] {
            assert!(of(unknown).unwrap_err().contains("unsupported"), "{unknown}");
        }
    }

    #[test]
    fn rows_of_before_have_the_initial_default() {
        let with = |data_type: &str, value: &str| {
            let json = format!(
                r#"{{"id": 1, "name": "x", "required": true, "type": "{data_type}", "initial-default": {value}}}"#
            );
            parsed(&json).map(|column| column.default.to_string())
        };
        assert_eq!(with("int", "7").unwrap(), "7");
        assert_eq!(with("decimal(5,2)", "\"1.50\"").unwrap(), "1.50");
        assert_eq!(with("date", "\"2020-02-01\"").unwrap(), "2020-02-01");
        assert!(with("binary", "\"00ff\"").is_err());
    }

    #[test]
    fn nested_fields_with_a_default_are_known() {
        let json = r#"[{"id": 1, "name": "l", "required": false, "initial-default": 5, "type": {"type": "list", "element-id": 2,
            "element-required": false, "element": {"type": "struct", "fields": [
                {"id": 3, "name": "x", "required": false, "type": "int", "initial-default": null},
                {"id": 4, "name": "y", "required": false, "type": "int", "initial-default": 0}]}}}]"#;
        let fields: Vec<IcebergField> = serde_json::from_str(json).unwrap();
        assert_eq!(with_default(&fields), HashSet::from([4]));
    }
}
