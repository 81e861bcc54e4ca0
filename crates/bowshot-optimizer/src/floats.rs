//! Floating-point numbers in groups follow IEEE 754's total order, NaN above all, as everywhere else. DataFusion's grouped `min`
//! and `max` mix up numbers and NaN, so that answers depend on the order of rows, and give the largest finite number where all
//! are infinite. Its top-k of groups does not find a NaN among its keys again, and panics.

use crate::node_rule::{Replacement, call_again};
use bowshot_kernels::floats;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::min_max::{Max, Min, max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use std::sync::Arc;

/// Skips aggregates without groups: DataFusion compares in this order there.
pub(super) fn in_order(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    Ok(node.downcast_ref::<AggregateExec>().map(in_aggregate).transpose()?.flatten())
}

/// The aggregation with such functions, and without a bound on its groups that takes floating-point numbers for an order.
fn in_aggregate(aggregate: &AggregateExec) -> Replacement {
    if aggregate.group_expr().is_true_no_grouping() {
        return Ok(None);
    }
    let mut functions = Vec::with_capacity(aggregate.aggr_expr().len());
    let mut replaced = false;
    for function in aggregate.aggr_expr() {
        let new = extreme_in_order(function, aggregate.input_schema())?;
        replaced |= new.is_some();
        functions.push(new.unwrap_or_else(|| Arc::clone(function)));
    }
    let schema = aggregate.input().schema();
    let mut keys = aggregate.group_expr().expr().iter();
    let bound = aggregate.limit_options();
    let by_keys = bound.is_some_and(|bound| bound.descending().is_some())
        && keys.any(|(key, _)| key.data_type(&schema).is_ok_and(|of| of.is_floating()));
    if !replaced && !by_keys {
        return Ok(None);
    }
    Ok(Some(Arc::new(aggregate.with_new_aggr_exprs(functions).with_new_limit_options(None))))
}

/// The function with numbers in order, if it is one of floating-point numbers whose order counts.
pub(super) fn extreme_in_order(
    function: &AggregateFunctionExpr,
    input: SchemaRef,
) -> Result<Option<Arc<AggregateFunctionExpr>>> {
    let inner = function.fun().inner();
    let greatest = inner.downcast_ref::<Max>().is_some();
    if !(greatest || inner.downcast_ref::<Min>().is_some()) || !function.field().data_type().is_floating() {
        return Ok(None);
    }
    let extreme = Extreme { greatest, of: Arc::new(function.fun().clone()) };
    let extreme = Arc::new(AggregateUDF::from(extreme));
    call_again(function, extreme, function.expressions(), input).map(Some)
}

/// Whether it is the greatest number that a function of floating-point numbers in order gives, if it is one.
pub fn extreme(function: &AggregateUDF) -> Option<bool> {
    function.inner().downcast_ref::<Extreme>().map(|extreme| extreme.greatest)
}

pub fn extreme_of(greatest: bool) -> Arc<AggregateUDF> {
    let of = if greatest { max_udaf() } else { min_udaf() };
    Arc::new(AggregateUDF::from(Extreme { greatest, of }))
}

/// `max` or `min` of floating-point numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    greatest: bool,
    of: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Extreme {
    bowshot_functions::stock_methods!(of: name, signature, return_type);

    bowshot_api::delegate! { of:
        fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>>;
        fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>>;
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match floats::extremes(arguments.return_field.data_type(), self.greatest) {
            Some(extremes) => Ok(extremes),
            None => self.of.create_groups_accumulator(arguments),
        }
    }
}
