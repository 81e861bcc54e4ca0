//! Filters above windows that want the first ranks alone. DataFusion sorts all rows and numbers them before the filter looks at them, and its
//! own rule for this takes column numbers from the wrong side of projections and drops rows that other functions of the window count.
//! Here the filter stays, and what is put below the window drops only rows that no function of the window counts for the ranks it keeps.

use super::ranked_rows::{Rank, RankedRowsExec, Ranks};
use crate::common_subplans::SharedWork;
use crate::join_order::statistics::Facts;
use crate::node_rule::Replacement;
use crate::physical_expressions::{can_move, is_plain};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr, split_conjunction};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use std::sync::Arc;

/// Rows of a partition up to which their keys are kept: each new one is put among them.
const MOST_RANKS: usize = 1_000;
/// The rows that remain have to be fewer than those that come by this factor.
const WORTHWHILE: f64 = 2.0;

/// Must run before the rules that add sorts.
pub(crate) fn ranked_rows(node: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Replacement {
    let is_wanted = config.extensions.get::<SharedWork>().is_some_and(|wanted| wanted.ranked_windows);
    let Some(filter) = node.downcast_ref::<FilterExec>().filter(|_| is_wanted) else { return Ok(None) };
    for condition in split_conjunction(filter.predicate()) {
        let Some((column, most)) = greatest_rank(condition) else { continue };
        if let Some(input) = above_ranked_rows(filter.input(), column, most)? {
            return replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some);
        }
    }
    Ok(None)
}

/// The column that a condition holds below a number, and that number.
fn greatest_rank(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let comparison = condition.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (comparison.left(), comparison.right());
    let (column, number, operator) = match (column(left), number(right)) {
        (Some(column), Some(number)) => (column, number, *comparison.op()),
        _ => (column(right)?, number(left)?, comparison.op().swap()?),
    };
    let most = match operator {
        Operator::LtEq | Operator::Eq => number,
        Operator::Lt => number.checked_sub(1)?,
        _ => return None,
    };
    (1..=MOST_RANKS).contains(&most).then_some((column, most))
}

/// The column that an expression is, also as the signed number that SQL has for ranks.
fn column(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let inner = match expression.downcast_ref::<CastExpr>() {
        Some(cast) if matches!(cast.cast_type(), DataType::Int64 | DataType::UInt64) => cast.expr(),
        Some(_) => return None,
        None => expression,
    };
    inner.downcast_ref::<Column>().map(Column::index)
}

fn number(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let value = expression.downcast_ref::<Literal>()?.value();
    if !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::UInt64).ok()? {
        ScalarValue::UInt64(Some(number)) => usize::try_from(number).ok(),
        _ => None,
    }
}

/// The plan with fewer rows below the window that such a column is of.
fn above_ranked_rows(plan: &Arc<dyn ExecutionPlan>, at: usize, most: usize) -> Replacement {
    let input = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        match projection.expr().get(at).and_then(|chosen| column(&chosen.expr)) {
            Some(below) => above_ranked_rows(projection.input(), below, most)?,
            None => None,
        }
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        below_window(window, at, most)?
    } else {
        None
    };
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// The input of a window without rows of higher ranks, where that changes none of the window's functions for the others.
fn below_window(window: &BoundedWindowAggExec, at: usize, most: usize) -> Replacement {
    let (input, functions) = (window.input(), window.window_expr());
    let place = at.checked_sub(input.schema().fields().len());
    let Some(chosen) = place.and_then(|place| functions.get(place)) else { return Ok(None) };
    let Some(rank) = Rank::of(chosen) else { return Ok(None) };
    let (keys, order) = (chosen.partition_by(), chosen.order_by());
    let is_alike = |other: &Arc<dyn WindowExpr>| {
        Rank::of(other).is_some() && other.partition_by() == keys && other.order_by() == order
    };
    if order.is_empty()
        || !functions.iter().all(is_alike)
        || !keys.iter().all(|key| is_plain_column(key, input))
        || !order.iter().all(|key| is_comparable(&key.expr, input))
        || is_sorted(input, keys, order)?
        || !has_large_partitions(input, keys, most)
    {
        return Ok(None);
    }
    let ranks = Ranks { keys: keys.to_vec(), order: order.to_vec(), rank, most };
    Ok(RankedRowsExec::new(Arc::clone(input), Arc::new(ranks))?.map(|rows| Arc::new(rows) as Arc<_>))
}

/// Whether a key is a column of which equal values are one partition to the window too.
pub(super) fn is_plain_column(key: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    let is_column = key.downcast_ref::<Column>().is_some();
    is_column && key.data_type(&input.schema()).is_ok_and(|of| is_plain(&of))
}

/// Whether keys of rows are in the order in which they are sorted, and the same each time they are computed.
fn is_comparable(key: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    let of = key.data_type(&input.schema());
    can_move(key) && of.is_ok_and(|of| is_plain(&of) || of.is_floating())
}

/// Whether nothing has to be sorted for the window.
fn is_sorted(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[Arc<dyn PhysicalExpr>],
    order: &[PhysicalSortExpr],
) -> Result<bool> {
    let keys = keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)));
    input.equivalence_properties().ordering_satisfy(keys.chain(order.iter().cloned()))
}

/// Whether rows would go, as far as statistics tell. The operator itself gives up where they are wrong.
fn has_large_partitions(input: &Arc<dyn ExecutionPlan>, keys: &[Arc<dyn PhysicalExpr>], most: usize) -> bool {
    Facts::of(input).is_none_or(|input| {
        let values = keys.iter().map(|key| input.column(key).distinct.unwrap_or(1.0).max(1.0));
        values.product::<f64>() * most as f64 * WORTHWHILE <= input.rows
    })
}
