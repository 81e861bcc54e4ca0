//! Aggregates over the elements of a list: `list_aggregate(l, 'sum')` and `list_sum(l)`, `list_median(l)` …

use super::list_arguments::{arrays, element, lists};
use crate::define::{Body, Function};
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, internal_err, plan_datafusion_err, plan_err};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use std::sync::Arc;

/// A row of the table for an aggregate over a list.
macro_rules! over {
    ($name:literal, $aggregate:literal, $also:expr) => {
        crate::define::made($name, concat!("`", $aggregate, "` of the elements of a list"), || {
            made($name, $aggregate)
        })
        .aliases($also)
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    crate::define::made(
        "list_aggregate",
        "the aggregate that a constant names, over the elements of a list",
        || made("list_aggregate", ""),
    )
    .aliases(&["array_aggregate", "list_aggr", "array_aggr"]),
    over!("list_any_value", "any_value", &[]),
    over!("list_approx_count_distinct", "approx_distinct", &[]),
    over!("list_avg", "avg", &["array_avg", "list_mean"]),
    over!("list_bit_and", "bit_and", &[]),
    over!("list_bit_or", "bit_or", &[]),
    over!("list_bit_xor", "bit_xor", &[]),
    over!("list_bool_and", "bool_and", &[]),
    over!("list_bool_or", "bool_or", &[]),
    over!("list_count", "count", &[]),
    over!("list_entropy", "entropy", &[]),
    over!("list_first", "first_value", &[]),
    over!("list_histogram", "histogram", &[]),
    over!("list_kurtosis", "kurtosis", &[]),
    over!("list_last", "last_value", &[]),
    over!("list_mad", "mad", &[]),
    over!("list_max", "max", &["array_max"]),
    over!("list_median", "median", &[]),
    over!("list_min", "min", &["array_min"]),
    over!("list_mode", "mode", &[]),
    over!("list_product", "product", &["array_product"]),
    over!("list_sem", "sem", &[]),
    over!("list_skewness", "skewness", &[]),
    over!("list_stddev_pop", "stddev_pop", &[]),
    over!("list_stddev_samp", "stddev", &[]),
    over!("list_string_agg", "string_agg", &[]),
    over!("list_sum", "sum", &["array_sum"]),
    over!("list_var_pop", "var_pop", &[]),
    over!("list_var_samp", "var", &[]),
];

#[derive(Debug, PartialEq, Eq, Hash)]
struct Over {
    name: &'static str,
    /// The aggregate; none where a constant argument names it.
    of: Option<Arc<AggregateUDF>>,
    signature: Signature,
}

fn made(name: &'static str, aggregate: &str) -> Arc<ScalarUDF> {
    let over = Over { name, of: named(aggregate), signature: Signature::user_defined(Volatility::Immutable) };
    Arc::new(ScalarUDF::from(over))
}

/// The aggregate of that name, ours before DataFusion's.
fn named(name: &str) -> Option<Arc<AggregateUDF>> {
    let ours = crate::aggregate::FUNCTIONS.iter().flat_map(|group| group.iter());
    let wanted = |function: &&Function| function.name == name || function.aliases.contains(&name);
    let stock = match ours.clone().find(wanted).map(|function| function.body) {
        Some(Body::Aggregate(make)) => return Some(make()),
        Some(Body::Stock(stock)) => stock,
        _ => name,
    };
    let known =
        |of: &Arc<AggregateUDF>| of.name() == stock || of.aliases().iter().any(|alias| alias == stock);
    all_default_aggregate_functions().into_iter().find(known)
}

/// The aggregate of a call, the field of what it takes, and that of what it gives.
struct Reduction {
    of: Arc<AggregateUDF>,
    takes: Vec<FieldRef>,
    gives: FieldRef,
}

impl Over {
    /// Where the arguments of the aggregate begin behind the list.
    fn rest(&self) -> usize {
        if self.of.is_some() { 1 } else { 2 }
    }

    fn reduction(
        &self,
        list: &DataType,
        rest: &[FieldRef],
        named_by: Option<&ScalarValue>,
    ) -> Result<Reduction> {
        let of = match &self.of {
            Some(of) => Arc::clone(of),
            None => {
                let name = named_by.and_then(|name| name.try_as_str().flatten()).unwrap_or_default();
                named(&name.to_lowercase()).ok_or_else(|| {
                    plan_datafusion_err!("aggregate `{name}` does not exist for {}", self.name)
                })?
            }
        };
        let Some(element) = element(list) else { return no_overload(self.name, std::slice::from_ref(list)) };
        let mut fields = vec![Arc::new(element.as_ref().clone().with_name("item").with_nullable(true))];
        fields.extend(rest.iter().map(Arc::clone));
        let takes = fields_with_udf(&fields, of.as_ref())?;
        let gives = of.return_field(&takes)?;
        Ok(Reduction { of, takes, gives })
    }
}

impl ScalarUDFImpl for Over {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [list, rest @ ..] if self.of.is_some() || !rest.is_empty() => {
                let Some(list) = super::list_arguments::plain(list) else {
                    return no_overload(self.name, given);
                };
                Ok(std::iter::once(list).chain(rest.iter().cloned()).collect())
            }
            _ => no_overload(self.name, given),
        }
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        internal_err!("the result of {} depends on more than types", self.name)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(list) = given.arg_fields.first() else { return plan_err!("{} takes a list", self.name) };
        let rest = given.arg_fields.get(self.rest()..).unwrap_or_default();
        let named_by = given.scalar_arguments.get(1).copied().flatten();
        let reduction = self.reduction(list.data_type(), rest, named_by)?;
        Ok(Arc::new(reduction.gives.as_ref().clone().with_name(self.name).with_nullable(true)))
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(list) = given.arg_fields.first() else { return plan_err!("{} takes a list", self.name) };
        let rest = given.arg_fields.get(self.rest()..).unwrap_or_default();
        let named_by = match given.args.get(1) {
            Some(ColumnarValue::Scalar(name)) => Some(name),
            _ => None,
        };
        let reduction = self.reduction(list.data_type(), rest, named_by)?;
        let constants =
            given.args.get(self.rest()..).unwrap_or_default().iter().zip(reduction.takes.iter().skip(1));
        let constants = constants.map(|(value, field)| match value {
            ColumnarValue::Scalar(value) => value.cast_to(field.data_type()),
            ColumnarValue::Array(_) => {
                plan_err!("the further arguments of {} have to be constants", self.name)
            }
        });
        reduce(&reduction, &arrays(&given)?, constants.collect::<Result<_>>()?)
    }
}

fn reduce(reduction: &Reduction, arrays: &[ArrayRef], constants: Vec<ScalarValue>) -> Result<ColumnarValue> {
    let lists = lists(arrays, 0)?;
    let Some(field) = reduction.takes.first() else { return internal_err!("no list") };
    let values = cast(lists.values(), field.data_type())?;
    let mut results = Vec::with_capacity(lists.len());
    for row in 0..lists.len() {
        if lists.is_null(row) {
            results.push(ScalarValue::try_from(reduction.gives.data_type())?);
            continue;
        }
        let range = super::list_arguments::elements(lists, row);
        let mut columns = vec![values.slice(range.start, range.len())];
        for constant in &constants {
            columns.push(constant.to_array_of_size(range.len())?);
        }
        let mut accumulator = accumulator(reduction, &constants)?;
        accumulator.update_batch(&columns)?;
        results.push(accumulator.evaluate()?);
    }
    if results.is_empty() {
        return Ok(ColumnarValue::Array(new_empty_array(reduction.gives.data_type())));
    }
    Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
}

fn accumulator(reduction: &Reduction, constants: &[ScalarValue]) -> Result<Box<dyn Accumulator>> {
    let fields: Vec<Field> = reduction.takes.iter().map(|field| field.as_ref().clone()).collect();
    let schema = Schema::new(fields);
    let mut exprs: Vec<Arc<dyn PhysicalExpr>> = vec![Arc::new(Column::new("item", 0))];
    exprs
        .extend(constants.iter().map(|value| Arc::new(Literal::new(value.clone())) as Arc<dyn PhysicalExpr>));
    reduction.of.accumulator(AccumulatorArgs {
        return_field: Arc::clone(&reduction.gives),
        schema: &schema,
        ignore_nulls: false,
        order_bys: &[],
        is_reversed: false,
        name: reduction.of.name(),
        is_distinct: false,
        exprs: &exprs,
        expr_fields: &reduction.takes,
    })
}
