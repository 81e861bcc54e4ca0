//! Type names that the parser does not know.

use super::declared::Declared;
use super::planner::{DIGITS_OF_128_BITS, Types, decimal, map, plain, refused, timestamp};
use bowshot_api::Error;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, ObjectName};

/// A type by its name and what stands in parentheses behind it.
pub(super) fn field(types: &Types, name: &ObjectName, modifiers: &[String], depth: usize) -> Result<Field> {
    let last =
        name.0.last().and_then(|part| part.as_ident()).map_or_else(String::new, |part| part.value.clone());
    let upper = last.to_ascii_uppercase();
    let number = |at: usize| modifiers.get(at).and_then(|text| text.parse::<u64>().ok());
    if let Some(data_type) = without_parts(&upper) {
        return Ok(plain(data_type));
    }
    let limited = |declared: fn(u64) -> Declared, data_type: DataType| match number(0) {
        Some(length) if length > 0 => declared(length).field(data_type),
        _ => plain(data_type),
    };
    Ok(match upper.as_str() {
        "NCHAR" | "BPCHAR" => limited(Declared::Char, DataType::Utf8),
        "VARCHAR2" | "NVARCHAR2" | "VARCHAR_IGNORECASE" => limited(Declared::Varchar, DataType::Utf8),
        "RAW" | "VARBYTE" => limited(Declared::Varbinary, DataType::Binary),
        "NUMBER" | "DECIMALV3" | "DECIMAL32" | "DECIMAL64" | "DECIMAL128" | "FIXED" => {
            decimal(&exact(modifiers))?
        }
        "DATETIME2" | "DATETIMEV2" => timestamp(number(0), None)?,
        "TIMESTAMP_LTZ" | "TIMESTAMP_TZ" | "DATETIMEOFFSET" => timestamp(number(0), Some("UTC".into()))?,
        "LIST" => types.array(&parsed(&modifiers.join(", "))?, depth, DataType::List)?,
        "MAP" => match modifiers {
            [key, value] => {
                map(types.part("key", &parsed(key)?, depth)?, types.part("value", &parsed(value)?, depth)?)
            }
            _ => return Err(refused(Error::invalid("MAP takes the types of its keys and values"))),
        },
        _ => match parsed(&spelled(&last, modifiers)) {
            // A name in quotes.
            Ok(known) if !matches!(known, SqlType::Custom(..)) => types.field(&known, depth + 1)?,
            _ => return Err(unknown(&last, &upper)),
        },
    })
}

fn spelled(name: &str, modifiers: &[String]) -> String {
    if modifiers.is_empty() { name.to_owned() } else { format!("{name}({})", modifiers.join(", ")) }
}

fn without_parts(name: &str) -> Option<DataType> {
    Some(match name {
        "INT1" | "BYTE" => DataType::Int8,
        "SHORT" | "YEAR" => DataType::Int16,
        "INT24" => DataType::Int32,
        "LONG" | "OID" => DataType::Int64,
        "UINTEGER" | "UINT" => DataType::UInt32,
        "LARGEINT" => DataType::Decimal256(DIGITS_OF_128_BITS, 0),
        "LOGICAL" => DataType::Boolean,
        "NAME" | "TEXT" | "NTEXT" | "LONGVARCHAR" | "NCLOB" => DataType::Utf8,
        "IMAGE" | "LONGVARBINARY" => DataType::Binary,
        "DATEV2" => DataType::Date32,
        "VARIANT" => bowshot_api::variant::data_type(),
        "SMALLDATETIME" | "TIMESTAMP_US" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMP_S" => DataType::Timestamp(TimeUnit::Second, None),
        "TIMESTAMP_MS" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "TIMESTAMP_NS" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        _ => return None,
    })
}

fn exact(modifiers: &[String]) -> ExactNumberInfo {
    let number = |at: usize| modifiers.get(at).map(|text| text.parse::<u64>().unwrap_or(0));
    match (number(0), number(1)) {
        (None, _) => ExactNumberInfo::None,
        (Some(precision), None) => ExactNumberInfo::Precision(precision),
        (Some(precision), Some(scale)) => {
            ExactNumberInfo::PrecisionAndScale(precision, i64::try_from(scale).unwrap_or(i64::MAX))
        }
    }
}

fn parsed(text: &str) -> Result<SqlType> {
    bowshot_sql::read_type(text).ok_or_else(|| refused(Error::invalid(format!("`{text}` is no type"))))
}

fn unknown(name: &str, upper: &str) -> datafusion::error::DataFusionError {
    let hint = match upper {
        "MONEY" | "SMALLMONEY" => "use DECIMAL(18, 2)",
        "OBJECT" | "SUPER" | "DYNAMIC" | "SQL_VARIANT" => "use VARIANT, JSON or a STRUCT",
        "SERIAL" | "BIGSERIAL" | "SMALLSERIAL" | "SERIAL4" | "SERIAL8" | "SERIAL2" => {
            "only columns of CREATE TABLE are numbered by themselves: use INTEGER or BIGINT here"
        }
        "INET" | "CIDR" | "MACADDR" | "XML" | "CITEXT" | "HSTORE" | "UNIQUEIDENTIFIER" => "use VARCHAR",
        "GEOMETRY" | "GEOGRAPHY" | "POINT" => "use BYTEA with well-known binary",
        "BITMAP" | "HLL" | "QUANTILE_STATE" | "AGG_STATE" => "keep the values themselves",
        _ => "the types are listed in docs/how-to/tables.md",
    };
    refused(Error::unsupported(format!("type `{name}` is not known")).with_hint(hint))
}
