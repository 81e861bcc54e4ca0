//! Intervals of Parquet files: months, days and milliseconds, 32 bits of each. The library reads the months or the rest, and has no
//! way to what Arrow has for all of it. So a footer says that they are 12 bytes, and the bytes become intervals here. In the same way
//! VARIANT values are put together of their parts ([`variants`](crate::variants)).

use crate::schema::Places;
use crate::variants::{are_parts, assembled};
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, IntervalMonthDayNanoArray, make_array};
use arrow::datatypes::{DataType, FieldRef, Fields, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef};
use arrow::error::ArrowError;
use bowshot_api::variant::{has_variants, is_variant_type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{BasicTypeInfo, GroupTypeBuilder, SchemaDescriptor, Type, TypePtr};
use std::sync::{Arc, LazyLock};

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

/// Whether there are values of types that the library has no arrays of.
pub(crate) fn are_made_here(data_type: &DataType) -> bool {
    has_intervals(data_type) || has_variants(data_type)
}

/// The values in the type `to`, whose intervals are bytes in them, and whose VARIANT values are in parts.
pub(crate) fn from_bytes(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    converted(&values.to_data(), to).map(make_array)
}

fn converted(values: &ArrayData, to: &DataType) -> Result<ArrayData, ArrowError> {
    if values.data_type() == to || !are_made_here(to) {
        return Ok(values.clone());
    }
    if is_variant_type(to) {
        // As what is wrong with a page, so that the error names the file.
        let whole = assembled(&make_array(values.clone()));
        return Ok(whole.map_err(|error| ArrowError::ParquetError(error.to_string()))?.to_data());
    }
    if *to == INTERVAL {
        return Ok(intervals(&make_array(values.clone()))?.into_data());
    }
    let inner: Vec<&FieldRef> = match to {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    };
    let parts = values.child_data().iter().zip(inner);
    let parts =
        parts.map(|(part, field)| converted(part, field.data_type())).collect::<Result<Vec<_>, _>>()?;
    values.clone().into_builder().data_type(to.clone()).child_data(parts).build()
}

/// Signed months and days, as other readers take them; milliseconds have no sign.
fn intervals(bytes: &ArrayRef) -> Result<IntervalMonthDayNanoArray, ArrowError> {
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

/// Gives the expressions of a scan the intervals and VARIANT values of its table where a file has bytes and parts.
#[derive(Debug)]
pub(crate) struct IntervalAdapters;

impl PhysicalExprAdapterFactory for IntervalAdapters {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let fields = fields_of_file(&logical, &physical);
        if fields.iter().zip(logical.fields()).all(|(one, other)| Arc::ptr_eq(one, other)) {
            return DefaultPhysicalExprAdapterFactory.create(logical, physical);
        }
        let bytes = Arc::new(Schema::new_with_metadata(fields, logical.metadata().clone()));
        let stock = DefaultPhysicalExprAdapterFactory.create(bytes, Arc::clone(&physical))?;
        Ok(Arc::new(IntervalAdapter { stock, logical, physical }))
    }
}

/// The fields of a table, with bytes where a file has bytes for their intervals.
fn fields_of_file(table: &Schema, file: &Schema) -> Vec<FieldRef> {
    let places = Places::of(file);
    let of_file = |(place, field): (usize, &FieldRef)| {
        let there = places.find(field.name(), place).map(|place| file.field(place));
        match there.filter(|there| are_bytes_of(there.data_type(), field.data_type())) {
            Some(there) => Arc::new(field.as_ref().clone().with_data_type(there.data_type().clone())),
            None => Arc::clone(field),
        }
    };
    table.fields().iter().enumerate().map(of_file).collect()
}

/// Whether values of `there` are those of `wanted` but for intervals that are bytes, and VARIANT values in parts.
pub(crate) fn are_bytes_of(there: &DataType, wanted: &DataType) -> bool {
    if is_variant_type(wanted) {
        return there != wanted && are_parts(there);
    }
    let both = |there: &FieldRef, wanted: &FieldRef| {
        there.data_type() == wanted.data_type() || are_bytes_of(there.data_type(), wanted.data_type())
    };
    match (there, wanted) {
        (DataType::FixedSizeBinary(WIDTH), wanted) => *wanted == INTERVAL,
        (DataType::List(there), DataType::List(wanted))
        | (DataType::LargeList(there), DataType::LargeList(wanted))
        | (DataType::Map(there, _), DataType::Map(wanted, _)) => both(there, wanted),
        (DataType::FixedSizeList(there, of_there), DataType::FixedSizeList(wanted, of_wanted)) => {
            of_there == of_wanted && both(there, wanted)
        }
        (DataType::Struct(there), DataType::Struct(wanted)) => {
            there.len() == wanted.len()
                && there
                    .iter()
                    .zip(wanted)
                    .all(|(there, wanted)| there.name() == wanted.name() && both(there, wanted))
        }
        _ => false,
    }
}

#[derive(Debug)]
struct IntervalAdapter {
    stock: Arc<dyn PhysicalExprAdapter>,
    logical: SchemaRef,
    physical: SchemaRef,
}

impl PhysicalExprAdapter for IntervalAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let config = Arc::new(ConfigOptions::default());
        let expr = self.stock.rewrite(expr)?;
        let rewritten = expr.transform_up(|node| {
            let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
            let there = self.physical.fields().get(column.index());
            let wanted = self.logical.field_with_name(column.name()).ok();
            let (Some(there), Some(wanted)) = (there, wanted) else { return Ok(Transformed::no(node)) };
            if !are_bytes_of(there.data_type(), wanted.data_type()) {
                return Ok(Transformed::no(node));
            }
            let (function, field) = (Arc::clone(&FUNCTION), Arc::new(wanted.clone()));
            let call =
                ScalarFunctionExpr::new(FromBytes::NAME, function, vec![node], field, Arc::clone(&config));
            Ok(Transformed::yes(Arc::new(call) as Arc<dyn PhysicalExpr>))
        });
        rewritten.data()
    }
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(FromBytes { signature: Signature::any(1, Volatility::Immutable) }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct FromBytes {
    signature: Signature,
}

impl FromBytes {
    const NAME: &'static str = "__intervals_of_bytes";
}

impl ScalarUDFImpl for FromBytes {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        internal_err!("`{}` is called by scans alone", Self::NAME)
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        internal_err!("`{}` is called by scans alone", Self::NAME)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        match values.as_slice() {
            [values] => Ok(ColumnarValue::Array(from_bytes(values, args.return_field.data_type())?)),
            _ => internal_err!("`{}` takes one column", Self::NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{FixedSizeBinaryArray, StructArray};
    use arrow::datatypes::{Field, IntervalMonthDayNanoType};

    #[test]
    fn months_days_and_milliseconds_are_all_there() {
        let bytes = |months: i32, days: i32, millis: u32| {
            [months.to_le_bytes(), days.to_le_bytes(), millis.to_le_bytes()].concat()
        };
        let rows = [Some(bytes(1, 2, 3_000)), None, Some(bytes(0, 0, u32::MAX))];
        let rows = FixedSizeBinaryArray::try_from_sparse_iter_with_size(rows.into_iter(), WIDTH).unwrap();
        let rows: ArrayRef = Arc::new(rows);
        let read = from_bytes(&rows, &INTERVAL).unwrap();
        let read = read.as_primitive::<IntervalMonthDayNanoType>();
        assert_eq!(read.value(0), IntervalMonthDayNano::new(1, 2, 3_000_000_000));
        assert!(read.is_null(1));
        assert_eq!(read.value(2), IntervalMonthDayNano::new(0, 0, 4_294_967_295_000_000));

        let within = StructArray::from(vec![(
            Arc::new(Field::new("i", DataType::FixedSizeBinary(WIDTH), true)),
            rows,
        )]);
        let wanted = DataType::Struct(vec![Field::new("i", INTERVAL, true)].into());
        assert!(are_bytes_of(within.data_type(), &wanted));
        let within = from_bytes(&(Arc::new(within) as ArrayRef), &wanted).unwrap();
        assert_eq!(within.data_type(), &wanted);
    }
}
