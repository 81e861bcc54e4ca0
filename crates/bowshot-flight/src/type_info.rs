//! SQL types: names and properties for `CommandGetXdbcTypeInfo` and for the column metadata of `CommandGetTables`.
//! Codes are those of ODBC and JDBC as in `FlightSql.proto`.

mod rows;

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::metadata::XdbcTypeInfoDataBuilder;
use bowshot_api::{Error, Result};
use rows::{TYPES, TypeRow};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnType {
    /// SQL name; a `type_name` of the type table.
    pub(crate) name: &'static str,
    /// Digits of numbers, longest text of others; `None` if neither applies.
    pub(crate) precision: Option<i32>,
    /// Digits after the decimal point, of numbers and of seconds.
    pub(crate) scale: Option<i32>,
    pub(crate) case_sensitive: bool,
}

/// The schema of the answer to `CommandGetXdbcTypeInfo`.
pub(crate) fn schema() -> SchemaRef {
    XdbcTypeInfoDataBuilder::new().schema()
}

/// All types, or those of one XDBC code, by code and name.
pub(crate) fn answer(data_type: Option<i32>) -> Result<RecordBatch> {
    let mut builder = XdbcTypeInfoDataBuilder::new();
    TYPES.iter().map(TypeRow::info).for_each(|info| builder.append(info));
    let answer = builder.build().and_then(|types| types.record_batch(data_type));
    answer.map_err(|error| Error::internal("the types do not fit their table").with_source(error))
}

pub(crate) fn column_type(data_type: &DataType) -> ColumnType {
    let plain = |name, precision, scale| ColumnType { name, precision, scale, case_sensitive: false };
    match data_type {
        DataType::Null => plain("NULL", None, None),
        DataType::Boolean => plain("BOOLEAN", Some(1), None),
        DataType::Int8 => plain("TINYINT", Some(3), Some(0)),
        DataType::Int16 => plain("SMALLINT", Some(5), Some(0)),
        DataType::Int32 => plain("INTEGER", Some(10), Some(0)),
        DataType::Int64 => plain("BIGINT", Some(19), Some(0)),
        DataType::UInt8 => plain("TINYINT UNSIGNED", Some(3), Some(0)),
        DataType::UInt16 => plain("SMALLINT UNSIGNED", Some(5), Some(0)),
        DataType::UInt32 => plain("INTEGER UNSIGNED", Some(10), Some(0)),
        DataType::UInt64 => plain("BIGINT UNSIGNED", Some(20), Some(0)),
        DataType::Float16 | DataType::Float32 => plain("REAL", Some(7), None),
        DataType::Float64 => plain("DOUBLE", Some(15), None),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            plain("DECIMAL", Some(i32::from(*precision)), Some(i32::from(*scale)))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ColumnType { case_sensitive: true, ..plain("VARCHAR", Some(i32::MAX), None) }
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            plain("VARBINARY", Some(i32::MAX), None)
        }
        DataType::FixedSizeBinary(size) => plain("VARBINARY", Some(*size), None),
        DataType::Date32 | DataType::Date64 => plain("DATE", Some(10), None),
        DataType::Time32(unit) | DataType::Time64(unit) => temporal("TIME", 8, unit),
        DataType::Timestamp(unit, None) => temporal("TIMESTAMP", 19, unit),
        DataType::Timestamp(unit, Some(_)) => temporal("TIMESTAMP WITH TIME ZONE", 25, unit),
        DataType::Interval(_) | DataType::Duration(_) => plain("INTERVAL", None, None),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => plain("ARRAY", None, None),
        DataType::Struct(_) => plain("STRUCT", None, None),
        DataType::Map(_, _) => plain("MAP", None, None),
        DataType::Union(_, _) => plain("UNION", None, None),
        DataType::Dictionary(_, value) => column_type(value),
        DataType::RunEndEncoded(_, value) => column_type(value.data_type()),
    }
}

/// Length of the text form: the whole seconds, and a point with the digits of the unit behind it.
fn temporal(name: &'static str, whole: i32, unit: &TimeUnit) -> ColumnType {
    let digits = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    let precision = if digits == 0 { whole } else { whole + 1 + digits };
    ColumnType { name, precision: Some(precision), scale: Some(digits), case_sensitive: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{Field, Int32Type, IntervalUnit};
    use std::sync::Arc;

    #[test]
    fn rows_are_ordered_by_code_then_name() {
        let batch = answer(None).unwrap();
        let names = batch.column(0).as_string::<i32>();
        let codes = batch.column(1).as_primitive::<Int32Type>();
        let pairs: Vec<(i32, &str)> =
            (0..batch.num_rows()).map(|row| (codes.value(row), names.value(row))).collect();
        let mut sorted = pairs.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(pairs, sorted);
        assert_eq!(batch.num_columns(), 19);
    }

    #[test]
    fn filter_keeps_one_code() {
        let batch = answer(Some(12)).unwrap();
        assert_eq!(batch.num_rows(), 1);
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "VARCHAR");
        assert_eq!(answer(Some(4711)).unwrap().num_rows(), 0);
    }

    #[test]
    fn every_arrow_type_has_a_row() {
        let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        for data_type in [
            DataType::Null,
            DataType::Boolean,
            DataType::Int8,
            DataType::UInt64,
            DataType::Float16,
            DataType::Float64,
            DataType::Decimal256(76, 3),
            DataType::Utf8View,
            DataType::FixedSizeBinary(16),
            DataType::Date32,
            DataType::Time64(TimeUnit::Nanosecond),
            DataType::Timestamp(TimeUnit::Second, Some("UTC".into())),
            DataType::Interval(IntervalUnit::MonthDayNano),
            DataType::List(Arc::clone(&item)),
            DataType::Struct(vec![item].into()),
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ] {
            let name = column_type(&data_type).name;
            assert!(TYPES.iter().any(|row| row.name == name), "{name} of {data_type}");
        }
    }

    #[test]
    fn precision_and_scale_of_columns() {
        let of = |data_type| {
            let column = column_type(&data_type);
            (column.name, column.precision, column.scale)
        };
        assert_eq!(of(DataType::Decimal128(15, 2)), ("DECIMAL", Some(15), Some(2)));
        assert_eq!(of(DataType::Timestamp(TimeUnit::Microsecond, None)), ("TIMESTAMP", Some(26), Some(6)));
        assert_eq!(of(DataType::Time32(TimeUnit::Second)), ("TIME", Some(8), Some(0)));
    }
}
