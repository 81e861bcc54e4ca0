//! The types of columns in durable tables: those of Delta Lake, so that everybody reads the files alike.
//! <https://github.com/delta-io/delta/blob/master/PROTOCOL.md#schema-serialization-format>

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, TimeUnit};
use serde_json::{Value, json};
use std::sync::Arc;

/// The type in which a durable table keeps a type, times in microseconds (nanoseconds must be zero). `None` if Delta has none.
pub fn durable_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32 => data_type.clone(),
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale)
            if *precision <= DECIMAL128_MAX_PRECISION && *scale >= 0 =>
        {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Dictionary(_, values) => durable_type(values)?,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => DataType::List(renamed(item, "element")?),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| renamed(field, field.name())).collect::<Option<_>>()?)
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(parts) = entries.data_type() else { return None };
            let [key, value] = parts.as_ref() else { return None };
            map_type(renamed(key, "key")?, renamed(value, "value")?)
        }
        _ => return None,
    })
}

fn renamed(field: &Field, name: &str) -> Option<FieldRef> {
    Some(Arc::new(Field::new(name, durable_type(field.data_type())?, field.is_nullable())))
}

fn map_type(key: FieldRef, value: FieldRef) -> DataType {
    let key = Arc::new(key.as_ref().clone().with_nullable(false));
    let entries = DataType::Struct(Fields::from(vec![key, value]));
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}

pub(super) fn to_json(data_type: &DataType) -> Option<Value> {
    Some(match data_type {
        DataType::Boolean => json!("boolean"),
        DataType::Int8 => json!("byte"),
        DataType::Int16 => json!("short"),
        DataType::Int32 => json!("integer"),
        DataType::Int64 => json!("long"),
        DataType::Float32 => json!("float"),
        DataType::Float64 => json!("double"),
        DataType::Date32 => json!("date"),
        DataType::Utf8 => json!("string"),
        DataType::Binary => json!("binary"),
        DataType::Timestamp(TimeUnit::Microsecond, None) => json!("timestamp_ntz"),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => json!("timestamp"),
        DataType::Decimal128(precision, scale) => json!(format!("decimal({precision},{scale})")),
        DataType::List(item) => json!({
            "type": "array",
            "elementType": to_json(item.data_type())?,
            "containsNull": item.is_nullable(),
        }),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| field_to_json(field, None));
            json!({"type": "struct", "fields": fields.collect::<Option<Vec<_>>>()?})
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(parts) = entries.data_type() else { return None };
            let [key, value] = parts.as_ref() else { return None };
            json!({
                "type": "map",
                "keyType": to_json(key.data_type())?,
                "valueType": to_json(value.data_type())?,
                "valueContainsNull": value.is_nullable(),
            })
        }
        _ => return None,
    })
}

pub(super) fn field_to_json(field: &Field, comment: Option<&str>) -> Option<Value> {
    let metadata = comment.map_or_else(|| json!({}), |comment| json!({"comment": comment}));
    Some(json!({
        "name": field.name(),
        "type": to_json(field.data_type())?,
        "nullable": field.is_nullable(),
        "metadata": metadata,
    }))
}

/// The reverse of [`field_to_json`], without the metadata.
pub(super) fn field_from_json(field: &Value) -> Option<Field> {
    Some(Field::new(field["name"].as_str()?, from_json(&field["type"])?, field["nullable"].as_bool()?))
}

fn from_json(data_type: &Value) -> Option<DataType> {
    if let Some(name) = data_type.as_str() {
        return from_name(name);
    }
    let nullable = |key: &str| data_type[key].as_bool();
    let part = |name: &str, key: &str, nullable: bool| {
        Some(Arc::new(Field::new(name, from_json(&data_type[key])?, nullable)))
    };
    Some(match data_type["type"].as_str()? {
        "array" => DataType::List(part("element", "elementType", nullable("containsNull")?)?),
        "struct" => {
            let fields = data_type["fields"].as_array()?.iter().map(field_from_json);
            DataType::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        "map" => map_type(
            part("key", "keyType", false)?,
            part("value", "valueType", nullable("valueContainsNull")?)?,
        ),
        _ => return None,
    })
}

fn from_name(name: &str) -> Option<DataType> {
    Some(match name {
        "boolean" => DataType::Boolean,
        "byte" => DataType::Int8,
        "short" => DataType::Int16,
        "integer" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "date" => DataType::Date32,
        "string" => DataType::Utf8,
        "binary" => DataType::Binary,
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        decimal => {
            let (precision, scale) = decimal.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
            DataType::Decimal128(precision.trim().parse().ok()?, scale.trim().parse().ok()?)
        }
    })
}

/// Whether a type contains time stamps without a zone, which Delta tables must declare.
pub(super) fn has_local_timestamps(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::List(item) | DataType::Map(item, _) => has_local_timestamps(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_local_timestamps(field.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durable_type_survives_its_text() {
        let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
        let nested = DataType::Struct(Fields::from(vec![
            field("a", DataType::LargeUtf8),
            field("b", DataType::List(field("item", DataType::UInt64))),
            field("c", DataType::Timestamp(TimeUnit::Nanosecond, Some("+02:00".into()))),
            field("d", DataType::Timestamp(TimeUnit::Second, None)),
            field("e", map_type(field("k", DataType::Int8), field("v", DataType::Decimal128(10, 2)))),
        ]));
        let kept = durable_type(&nested).unwrap();
        assert_eq!(durable_type(&kept).as_ref(), Some(&kept));
        let json = field_to_json(&Field::new("x", kept.clone(), false), Some("why")).unwrap();
        assert_eq!(field_from_json(&json).unwrap(), Field::new("x", kept.clone(), false));
        assert!(has_local_timestamps(&kept));
    }

    #[test]
    fn types_without_a_place_are_refused() {
        assert_eq!(durable_type(&DataType::Time64(TimeUnit::Microsecond)), None);
        assert_eq!(durable_type(&DataType::Decimal256(50, 2)), None);
    }
}
