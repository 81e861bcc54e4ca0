//! The types that SQL names, as files can be read in them.

use super::Types;
use arrow::datatypes::{DataType, TimeUnit};
use bowshot_api::{Error, Result};

pub(super) fn by_place<'a>(names: impl Iterator<Item = &'a str>) -> Result<Types> {
    Ok(Types::ByPlace(names.map(type_named).collect::<Result<_>>()?))
}

pub(super) fn typed(pairs: &[(String, String)]) -> Result<Vec<(String, DataType)>> {
    pairs.iter().map(|(name, text)| Ok((name.clone(), type_named(text)?))).collect()
}

/// Types of columns that folders give; `auto` for those that are found out.
pub(super) fn of_folders(pairs: &[(String, String)]) -> Result<Vec<(String, Option<DataType>)>> {
    let read = |(name, text): &(String, String)| match text.eq_ignore_ascii_case("auto") {
        true => Ok((name.clone(), None)),
        false => Ok((name.clone(), Some(type_named(text)?))),
    };
    pairs.iter().map(read).collect()
}

fn type_named(text: &str) -> Result<DataType> {
    let upper = text.trim().to_ascii_uppercase();
    if let Some(inside) = upper.strip_prefix("DECIMAL").or_else(|| upper.strip_prefix("NUMERIC")) {
        return decimal(inside).ok_or_else(|| no_type(text));
    }
    Ok(match upper.split('(').next().unwrap_or_default().trim() {
        "BOOLEAN" | "BOOL" | "LOGICAL" => DataType::Boolean,
        "TINYINT" | "INT1" => DataType::Int8,
        "SMALLINT" | "INT2" | "SHORT" => DataType::Int16,
        "INTEGER" | "INT" | "INT4" | "SIGNED" => DataType::Int32,
        "BIGINT" | "INT8" | "LONG" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "HUGEINT" => DataType::Decimal128(38, 0),
        "REAL" | "FLOAT" | "FLOAT4" => DataType::Float32,
        "DOUBLE" | "FLOAT8" | "DOUBLE PRECISION" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" | "CHAR" | "BPCHAR" => DataType::Utf8,
        "BLOB" | "BYTEA" | "BINARY" | "VARBINARY" => DataType::Binary,
        "DATE" => DataType::Date32,
        "TIME" => DataType::Time64(TimeUnit::Microsecond),
        "TIMESTAMP" | "DATETIME" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMP_S" => DataType::Timestamp(TimeUnit::Second, None),
        "TIMESTAMP_MS" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "TIMESTAMP_NS" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        _ => return Err(no_type(text)),
    })
}

fn no_type(text: &str) -> Error {
    Error::invalid(format!("`{text}` is not a column type of files")).with_hint(
        "write BOOLEAN, an integer type, REAL, DOUBLE, DECIMAL(p, s), VARCHAR, BLOB, DATE, TIME, TIMESTAMP or TIMESTAMPTZ",
    )
}

fn decimal(inside: &str) -> Option<DataType> {
    if inside.trim().is_empty() {
        return Some(DataType::Decimal128(18, 3));
    }
    let inside = inside.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (precision, scale) = inside.split_once(',').unwrap_or((inside, "0"));
    let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
    let fits = (1..=38).contains(&precision) && scale >= 0 && u8::try_from(scale).ok()? <= precision;
    fits.then_some(DataType::Decimal128(precision, scale))
}
