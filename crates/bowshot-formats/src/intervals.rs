//! Intervals of Parquet files: months, days and milliseconds, 32 bits of each. The library reads the months or the rest, and has no
//! way to what Arrow has for all of it. So a footer says that they are 12 bytes, and the bytes become intervals here.

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, FieldRef, Fields, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{BasicTypeInfo, GroupTypeBuilder, SchemaDescriptor, Type, TypePtr};
use std::sync::Arc;

/// Bytes of one in a file.
const WIDTH: i32 = 12;
const NANOS_OF_MILLI: i64 = 1_000_000;

/// The type of all intervals of files.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// A footer whose intervals are bytes.
pub fn as_bytes(metadata: Arc<ParquetMetaData>) -> parquet::errors::Result<Arc<ParquetMetaData>> {
    let file = metadata.file_metadata();
    let is_interval = |column: &Arc<parquet::schema::types::ColumnDescriptor>| {
        column.converted_type() == ConvertedType::INTERVAL
    };
    if !file.schema_descr().columns().iter().any(is_interval) {
        return Ok(metadata);
    }
    let schema = Arc::new(SchemaDescriptor::new(without_intervals(file.schema_descr().root_schema())?));
    let new = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        schema,
        file.column_orders().cloned(),
    );
    let new = ParquetMetaDataBuilder::new(new)
        .set_row_groups(metadata.row_groups().to_vec())
        .set_column_index(metadata.column_index().cloned())
        .set_offset_index(metadata.offset_index().cloned());
    Ok(Arc::new(new.build()))
}

fn without_intervals(of: &Type) -> parquet::errors::Result<TypePtr> {
    let info = of.get_basic_info();
    match of {
        Type::PrimitiveType { .. } if info.converted_type() == ConvertedType::INTERVAL => {
            let new = Type::primitive_type_builder(info.name(), Physical::FIXED_LEN_BYTE_ARRAY)
                .with_length(WIDTH)
                .with_repetition(info.repetition())
                .with_id(id(info));
            new.build().map(Arc::new)
        }
        Type::PrimitiveType { .. } => Ok(Arc::new(of.clone())),
        Type::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| without_intervals(field)).collect::<Result<_, _>>()?;
            let new = GroupTypeBuilder::new(info.name())
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(id(info))
                .with_fields(fields);
            let new = if info.has_repetition() { new.with_repetition(info.repetition()) } else { new };
            new.build().map(Arc::new)
        }
    }
}

fn id(info: &BasicTypeInfo) -> Option<i32> {
    info.has_id().then(|| info.id())
}

/// The columns as such a footer has them.
pub fn schema_as_bytes(columns: &SchemaRef) -> SchemaRef {
    if !columns.fields().iter().any(|field| has_intervals(field.data_type())) {
        return Arc::clone(columns);
    }
    let fields: Fields = columns.fields().iter().map(field_as_bytes).collect();
    Arc::new(Schema::new_with_metadata(fields, columns.metadata().clone()))
}

fn field_as_bytes(field: &FieldRef) -> FieldRef {
    let bytes = match field.data_type() {
        DataType::Interval(_) => DataType::FixedSizeBinary(WIDTH),
        DataType::List(item) => DataType::List(field_as_bytes(item)),
        DataType::LargeList(item) => DataType::LargeList(field_as_bytes(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field_as_bytes(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field_as_bytes(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_as_bytes).collect()),
        _ => return Arc::clone(field),
    };
    Arc::new(field.as_ref().clone().with_data_type(bytes))
}

pub(crate) fn has_intervals(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(_) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_intervals(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_intervals(field.data_type())),
        _ => false,
    }
}

/// Signed months and days, as other readers take them; milliseconds have no sign.
pub(crate) fn intervals(bytes: &ArrayRef) -> Result<IntervalMonthDayNanoArray, ArrowError> {
    let bytes = bytes.as_fixed_size_binary_opt().filter(|bytes| bytes.value_length() == WIDTH);
    let bytes =
        bytes.ok_or_else(|| ArrowError::CastError("an interval does not have 12 bytes".to_owned()))?;
    let one = |value: &[u8]| {
        let part = |at: usize| -> Option<[u8; 4]> { value.get(at..at + 4)?.try_into().ok() };
        let (months, days) = (i32::from_le_bytes(part(0)?), i32::from_le_bytes(part(4)?));
        let nanos = i64::from(u32::from_le_bytes(part(8)?)) * NANOS_OF_MILLI;
        Some(IntervalMonthDayNano::new(months, days, nanos))
    };
    Ok(bytes.iter().map(|value| value.and_then(one)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, FixedSizeBinaryArray};

    #[test]
    fn months_days_and_milliseconds_are_all_there() {
        let bytes = |months: i32, days: i32, millis: u32| {
            [months.to_le_bytes(), days.to_le_bytes(), millis.to_le_bytes()].concat()
        };
        let rows = [Some(bytes(1, 2, 3_000)), None, Some(bytes(0, 0, u32::MAX))];
        let rows = FixedSizeBinaryArray::try_from_sparse_iter_with_size(rows.into_iter(), WIDTH).unwrap();
        let read = intervals(&(Arc::new(rows) as ArrayRef)).unwrap();
        assert_eq!(read.value(0), IntervalMonthDayNano::new(1, 2, 3_000_000_000));
        assert!(read.is_null(1));
        assert_eq!(read.value(2), IntervalMonthDayNano::new(0, 0, 4_294_967_295_000_000));
    }
}
