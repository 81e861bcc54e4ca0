//! Columns of a file under the names and in the types that its table has for them. Of Parquet files DataFusion casts what it can by
//! itself; it knows no way from one kind of list to another, into maps, and to intervals and VARIANT values.

use crate::intervals::{INTERVAL, has_intervals, intervals};
use crate::schema::{Places, named_as_in};
use crate::variants::{are_parts, assembled};
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
    new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
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
use std::sync::{Arc, LazyLock};

/// The values in the type of their table. Fields of structs go by name, keys and values of maps by their place.
///
/// # Errors
/// When a value does not fit the type.
pub(crate) fn cast_to(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    use DataType as T;
    let from = values.data_type();
    if from == to {
        return Ok(Arc::clone(values));
    }
    if is_variant_type(to) && are_parts(from) {
        // As what is wrong with a page, so that the error names the file.
        return assembled(values).map_err(|error| ArrowError::ParquetError(error.to_string()));
    }
    let cast: ArrayRef = match (from, to) {
        (T::Null, _) => new_null_array(to, values.len()),
        (T::FixedSizeBinary(_), to) if *to == INTERVAL => Arc::new(intervals(values)?),
        (T::Struct(_), T::Struct(fields)) => Arc::new(cast_struct(values.as_struct(), fields)?),
        (T::Map(..), T::Map(entries, sorted)) => Arc::new(cast_map(values.as_map(), entries, *sorted)?),
        (T::FixedSizeList(_, size), T::FixedSizeList(item, same)) if size == same => {
            let lists = values.as_fixed_size_list();
            let (items, nulls) = (cast_to(lists.values(), item.data_type())?, lists.nulls().cloned());
            let item = Arc::clone(item);
            Arc::new(FixedSizeListArray::try_new_with_length(item, *size, items, nulls, lists.len())?)
        }
        (_, T::List(item)) => cast_list::<i32>(values, item)?,
        (_, T::LargeList(item)) => cast_list::<i64>(values, item)?,
        _ => strictly(values, to)?,
    };
    Ok(cast)
}

fn strictly(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if is_date_to_moment(values.data_type(), to) {
        // The library casts to a finer unit without a check.
        let moments = cast_with_options(values, &DataType::Timestamp(TimeUnit::Millisecond, None), &options)?;
        return cast_with_options(&moments, to, &options);
    }
    cast_with_options(values, to, &options)
}

fn is_date_to_moment(from: &DataType, to: &DataType) -> bool {
    matches!((from, to), (DataType::Date64, DataType::Timestamp(_, None)))
}

/// First another kind of list with the items as they are, then the items.
fn cast_list<O: OffsetSizeTrait>(values: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let there = match values.data_type() {
        DataType::List(there)
        | DataType::LargeList(there)
        | DataType::ListView(there)
        | DataType::LargeListView(there)
        | DataType::FixedSizeList(there, _) => Arc::clone(there),
        other => return Err(ArrowError::CastError(format!("{other} is no list"))),
    };
    let lists = strictly(values, &GenericListArray::<O>::DATA_TYPE_CONSTRUCTOR(there))?;
    let lists = lists.as_list::<O>();
    let (items, nulls) = (cast_to(lists.values(), item.data_type())?, lists.nulls().cloned());
    let lists = GenericListArray::<O>::try_new(Arc::clone(item), lists.offsets().clone(), items, nulls)?;
    Ok(Arc::new(lists))
}

fn cast_struct(values: &StructArray, fields: &Fields) -> Result<StructArray, ArrowError> {
    let column = |field: &FieldRef| match values.column_by_name(field.name()) {
        Some(column) => cast_to(column, field.data_type()),
        None => Ok(new_null_array(field.data_type(), values.len())),
    };
    let columns = fields.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, values.nulls().cloned(), values.len())
}

fn cast_map(values: &MapArray, entries: &FieldRef, sorted: bool) -> Result<MapArray, ArrowError> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(ArrowError::CastError("the entries of a map are no structs".to_owned()));
    };
    let there = values.entries();
    let columns =
        there.columns().iter().zip(fields).map(|(column, field)| cast_to(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let pairs = StructArray::try_new(fields.clone(), columns, there.nulls().cloned())?;
    MapArray::try_new(Arc::clone(entries), values.offsets().clone(), pairs, values.nulls().cloned(), sorted)
}

/// Whether there are values of types that the library has no arrays of.
pub(crate) fn are_made_here(data_type: &DataType) -> bool {
    has_intervals(data_type) || has_variants(data_type)
}

/// Whether a Parquet file has columns of types that DataFusion does not bring to those of the table.
pub(crate) fn needs_casts(table: &Schema, file: &Schema) -> bool {
    let fields = fields_of_file(table, file);
    !fields.iter().zip(table.fields()).all(|(one, other)| Arc::ptr_eq(one, other))
}

fn is_cast_here(from: &DataType, to: &DataType) -> bool {
    let are_nested = from.is_nested() && to.is_nested();
    (are_nested || *to == INTERVAL) && !is_cast_by_datafusion(from, to)
}

fn is_cast_by_datafusion(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let is_plain = |from: &FieldRef, to: &FieldRef| {
        let (from, to) = (from.data_type(), to.data_type());
        from == to || !from.is_nested() && !has_intervals(to) && !is_date_to_moment(from, to)
    };
    match (from, to) {
        _ if from == to => true,
        _ if is_variant_type(to) || is_date_to_moment(from, to) => false,
        (T::Struct(from), T::Struct(to)) => {
            let find = |field: &FieldRef| from.iter().find(|there| there.name() == field.name());
            let is_known = |there: &FieldRef, field: &FieldRef| {
                is_cast_by_datafusion(there.data_type(), field.data_type())
            };
            to.iter().any(|field| find(field).is_some())
                && to.iter().all(|field| find(field).is_none_or(|there| is_known(there, field)))
        }
        (T::List(from), T::List(to)) | (T::LargeList(from), T::LargeList(to)) => {
            is_cast_by_datafusion(from.data_type(), to.data_type())
        }
        (T::FixedSizeList(from, size), T::FixedSizeList(to, same)) if size == same => {
            is_cast_by_datafusion(from.data_type(), to.data_type())
        }
        (T::Map(from, sorted), T::Map(to, same)) if sorted == same => {
            match (from.data_type(), to.data_type()) {
                (T::Struct(from), T::Struct(to)) => from.iter().zip(to).all(|(from, to)| is_plain(from, to)),
                _ => false,
            }
        }
        _ => !from.is_nested() && !to.is_nested() && *to != INTERVAL,
    }
}

/// The columns of a table, as the file has those that [`cast_to`] has to bring to the table's types.
fn fields_of_file(table: &Schema, file: &Schema) -> Vec<FieldRef> {
    let places = Places::of(file);
    let of_file = |(place, field): (usize, &FieldRef)| {
        let there = places.find(field.name(), place).and_then(|place| file.fields().get(place));
        let there = there.filter(|there| is_cast_here(there.data_type(), field.data_type()));
        Arc::clone(there.unwrap_or(field))
    };
    table.fields().iter().enumerate().map(of_file).collect()
}

/// Gives the expressions of a scan the columns of the table where DataFusion's own adapter does not.
#[derive(Debug)]
pub(crate) struct ColumnAdapters {
    /// Whether names are the same if only the case of letters differs.
    pub(crate) any_case: bool,
}

impl PhysicalExprAdapterFactory for ColumnAdapters {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let named = self.any_case.then(|| named_as_in(&table, &file)).flatten();
        let named = named.unwrap_or_else(|| Arc::clone(&table));
        let fields = fields_of_file(&named, &file);
        let known = Arc::new(Schema::new_with_metadata(fields, table.metadata().clone()));
        let stock = DefaultPhysicalExprAdapterFactory.create(known, Arc::clone(&file))?;
        Ok(Arc::new(ColumnAdapter { stock, table, named, file }))
    }
}

#[derive(Debug)]
struct ColumnAdapter {
    stock: Arc<dyn PhysicalExprAdapter>,
    table: SchemaRef,
    /// The columns of the table under the names of the file.
    named: SchemaRef,
    file: SchemaRef,
}

impl PhysicalExprAdapter for ColumnAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let named = expr.transform_up(|node| Ok(self.rename(node))).data()?;
        self.stock.rewrite(named)?.transform_up(|node| Ok(self.cast(node))).data()
    }
}

impl ColumnAdapter {
    fn rename(&self, node: Arc<dyn PhysicalExpr>) -> Transformed<Arc<dyn PhysicalExpr>> {
        let column = node.downcast_ref::<Column>();
        let place = column.and_then(|column| self.table.index_of(column.name()).ok());
        let name = place.and_then(|place| self.named.fields().get(place)).map(|field| field.name());
        match (column, name) {
            (Some(column), Some(name)) if column.name() != name => {
                Transformed::yes(Arc::new(Column::new(name, column.index())) as Arc<dyn PhysicalExpr>)
            }
            _ => Transformed::no(node),
        }
    }

    fn cast(&self, node: Arc<dyn PhysicalExpr>) -> Transformed<Arc<dyn PhysicalExpr>> {
        let Some(column) = node.downcast_ref::<Column>() else { return Transformed::no(node) };
        let there = self.file.fields().get(column.index());
        let wanted = self.named.field_with_name(column.name()).ok();
        let (Some(there), Some(wanted)) = (there, wanted) else { return Transformed::no(node) };
        if !is_cast_here(there.data_type(), wanted.data_type()) {
            return Transformed::no(node);
        }
        let (function, field) = (Arc::clone(&FUNCTION), Arc::new(wanted.clone()));
        let config = Arc::new(ConfigOptions::default());
        let call = ScalarFunctionExpr::new(CastToTable::NAME, function, vec![node], field, config);
        Transformed::yes(Arc::new(call) as Arc<dyn PhysicalExpr>)
    }
}

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(CastToTable { signature: Signature::any(1, Volatility::Immutable) }))
});

/// [`cast_to`] the type that its call says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CastToTable {
    signature: Signature,
}

impl CastToTable {
    const NAME: &'static str = "__cast_to_table";
}

impl ScalarUDFImpl for CastToTable {
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
            [values] => Ok(ColumnarValue::Array(cast_to(values, args.return_field.data_type())?)),
            _ => internal_err!("`{}` takes one column", Self::NAME),
        }
    }
}
