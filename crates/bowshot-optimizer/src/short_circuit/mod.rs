//! `x <> 0 AND 10 / x > 1` must not divide by zero: where evaluating both sides of AND or OR fails, the right side is evaluated
//! only for rows that the left side leaves open. DataFusion evaluates both for whole batches, also those of `CASE WHEN x <> 0
//! THEN 10 / x > 1 END`, which it turns into AND and OR. In WHERE and HAVING, parts that cannot fail come first.

mod expression;
mod failure;

use crate::node_rule::{Replacement, change_arguments, change_projection};
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
pub use expression::{guard, guarded, guarded_operator};
use failure::can_fail;
use std::sync::Arc;

/// Must run after all rules that analyze expressions.
pub(super) fn guarded_conditions(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        in_filter(filter)
    } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        Ok(change_projection(projection, guarded)?.map(|new| Arc::new(new) as Arc<_>))
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        change_arguments(aggregate, guarded)
    } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        in_hash_join(join)
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        in_nested_loop_join(join)
    } else {
        Ok(None)
    }
}

fn in_filter(filter: &FilterExec) -> Replacement {
    let schema = filter.input().schema();
    let Some(predicate) = in_condition(filter.predicate(), &schema)? else { return Ok(None) };
    let known = split_conjunction(filter.predicate()).into_iter().filter(|part| is_equality(part, &schema));
    let predicate = conjunction(known.map(Arc::clone).chain([predicate]));
    let new = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
    Ok(Some(Arc::new(new)))
}

/// Whether a filter tells by it what is constant, or equal to something else. Sorted windows above rely on that, and nobody sees
/// it in a guarded condition.
fn is_equality(part: &Arc<dyn PhysicalExpr>, schema: &arrow::datatypes::Schema) -> bool {
    let equal = part.downcast_ref::<BinaryExpr>().is_some_and(|binary| *binary.op() == Operator::Eq);
    equal && !can_fail(part, schema)
}

/// A condition of rows: what cannot fail goes to the front.
fn in_condition(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &arrow::datatypes::Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let (failing, safe): (Vec<_>, Vec<_>) =
        split_conjunction(predicate).into_iter().partition(|part| can_fail(part, schema));
    if failing.is_empty() {
        return Ok(None);
    }
    let ordered = conjunction(safe.into_iter().chain(failing).map(Arc::clone));
    guarded(ordered, schema).map(|guarded| Some(guarded.data))
}

fn in_hash_join(join: &HashJoinExec) -> Replacement {
    let filter = join.filter().map(in_join_filter).transpose()?.flatten();
    filter.map(|filter| join.builder().with_filter(Some(filter)).build_exec()).transpose()
}

fn in_nested_loop_join(join: &NestedLoopJoinExec) -> Replacement {
    let Some(filter) = join.filter().map(in_join_filter).transpose()?.flatten() else { return Ok(None) };
    let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
    let projection = join.projection().as_ref().map(|columns| columns.to_vec());
    let new = NestedLoopJoinExec::try_new(left, right, Some(filter), join.join_type(), projection)?;
    Ok(Some(Arc::new(new)))
}

fn in_join_filter(filter: &JoinFilter) -> Result<Option<JoinFilter>> {
    let changed = in_condition(filter.expression(), filter.schema())?;
    Ok(changed.map(|condition| {
        JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }))
}
