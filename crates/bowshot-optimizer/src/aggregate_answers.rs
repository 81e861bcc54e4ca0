//! Aggregates without groups that DataFusion answers from statistics alone. Two kinds must not see any while that rule runs:
//! `count(DISTINCT …)`, since distinct counts are estimates, and 1 for a column that a condition fixes, even without rows; and
//! extremes of casts that change the order, since bounds cast are not bounds (as text, `9` is more than `10`).

use super::barrier::{Barrier, with_barriers};
use super::node_rule::Rule;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;

/// The rule that answers aggregates by statistics.
const ANSWERS: &str = "aggregate_statistics";

/// The rules, that one kept from aggregates whose statistics are doubtful.
pub(super) fn beyond_doubt(rules: Vec<Rule>) -> Vec<Rule> {
    with_barriers(rules, &[ANSWERS], without_doubtful_statistics)
}

fn without_doubtful_statistics(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let input = match node.downcast_ref::<AggregateExec>() {
        Some(aggregate) if is_doubtful(aggregate)? => Arc::clone(aggregate.input()),
        _ => return Ok(Transformed::no(node)),
    };
    let input = Barrier::without_statistics(input);
    replace_children_if_necessary(node, vec![input]).map(Transformed::yes)
}

fn is_doubtful(aggregate: &AggregateExec) -> Result<bool> {
    let mut functions = aggregate.aggr_expr().iter();
    if !aggregate.group_expr().is_empty() {
        return Ok(false);
    }
    Ok(functions.any(|function| function.is_distinct()) || aggregate.input().exists(changes_order)?)
}

fn changes_order(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(false) };
    let schema = projection.input().schema();
    for projected in projection.expr() {
        if projected.expr.exists(|expr| Ok(is_reordering_cast(expr, &schema)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_reordering_cast(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else { return false };
    cast.expr().data_type(schema).map_or(true, |from| !keeps_order(&from, cast.cast_type()))
}

/// Whether of two values of a type the greater one is not the lesser one in another type.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    let of_both = |is: fn(&DataType) -> bool| is(from) && is(to);
    from == to
        || of_both(DataType::is_numeric)
        || of_both(DataType::is_string)
        || of_both(|of| matches!(of, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None)))
}
