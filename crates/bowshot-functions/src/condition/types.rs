//! Names of types, as DuckDB and PostgreSQL write them.

use crate::values::{Arguments, Str, fill};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, TimeUnit};
use bowshot_api::variant::is_variant_type;
use datafusion::common::Result;

/// The name of the argument's type, for each row.
pub(super) fn name(arguments: &Arguments, names: fn(&DataType) -> String) -> Result<ArrayRef> {
    let name = names(arguments.data_type(0)?);
    fill::<Str, _>(arguments, |_| name.clone())
}

pub(super) fn of_duckdb(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Null => "\"NULL\"",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float16 | DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BLOB"
        }
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            return format!("DECIMAL({precision},{scale})");
        }
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            return format!("DECIMAL({precision},{scale})");
        }
        DataType::Dictionary(_, value) => return of_duckdb(value),
        DataType::List(field) | DataType::LargeList(field) => {
            return format!("{}[]", of_duckdb(field.data_type()));
        }
        DataType::FixedSizeList(field, length) => {
            return format!("{}[{length}]", of_duckdb(field.data_type()));
        }
        of if is_variant_type(of) => "VARIANT",
        DataType::Struct(fields) => {
            let parts =
                fields.iter().map(|field| format!("{} {}", field.name(), of_duckdb(field.data_type())));
            return format!("STRUCT({})", parts.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(entries, _) => return of_map(entries.data_type()),
        other => return other.to_string().to_uppercase(),
    };
    fixed.to_owned()
}

fn of_map(entries: &DataType) -> String {
    match entries {
        of if is_variant_type(of) => "VARIANT".to_owned(),
        DataType::Struct(fields) => {
            let parts = fields.iter().map(|field| of_duckdb(field.data_type()));
            format!("MAP({})", parts.collect::<Vec<_>>().join(", "))
        }
        _ => "MAP".to_owned(),
    }
}

pub(super) fn of_postgresql(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Null => "unknown",
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => "smallint",
        DataType::UInt16 | DataType::Int32 => "integer",
        DataType::UInt32 | DataType::Int64 => "bigint",
        DataType::UInt64 => "numeric",
        of if of.is_decimal() => "numeric",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        of if of.is_binary() => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        DataType::Dictionary(_, value) => return of_postgresql(value),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            return format!("{}[]", of_postgresql(field.data_type()));
        }
        of if is_variant_type(of) => "variant",
        DataType::Struct(_) => "record",
        other => return other.to_string().to_lowercase(),
    };
    fixed.to_owned()
}
