//! Aggregates whose frame is the whole partition, as `avg(x) OVER (PARTITION BY p)`. DataFusion sorts all rows by the keys, holds them in
//! memory that it does not count, and cuts them up partition by partition; here they are grouped by a hash table. Windows stay as they are
//! where the rows are wanted in that order anyway, and in queries that memory has not sufficed for.

use super::below_filter::is_plain_column;
use super::partition_totals::{PartitionTotalsExec, Totals};
use crate::coarser_sets::is_mergeable;
use crate::common_subplans::SharedWork;
use crate::floats::extreme_in_order;
use crate::join_order::SessionJoinOrder;
use crate::node_rule::{Rule, plan_rule};
use datafusion::common::Result;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, WindowExpr};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;

/// Must run before the rules that add sorts.
pub(crate) fn rule() -> Rule {
    plan_rule("HashedWindows", |plan, config| {
        let extensions = &config.extensions;
        let is_wanted = extensions.get::<SharedWork>().is_some_and(|wanted| wanted.hashed_windows);
        let has_failed = extensions.get::<SessionJoinOrder>().is_some_and(|order| order.failures > 0);
        if is_wanted && !has_failed { hashed(plan, &[]) } else { Ok(plan) }
    })
}

/// The plan with such windows; its rows are wanted in the order of these columns.
fn hashed(node: Arc<dyn ExecutionPlan>, order: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(window) = node.downcast_ref::<WindowAggExec>()
        && let Some(totals) = totals(window, order)?
    {
        let input = hashed(Arc::clone(window.input()), &[])?;
        return Ok(Arc::new(PartitionTotalsExec::new(input, Arc::new(totals))?));
    }
    let children = node.children().into_iter().enumerate();
    let children = children.map(|(at, child)| hashed(Arc::clone(child), &order_below(&node, at, order)));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(node, children)
}

/// The columns in whose order an operator needs one of its inputs, for itself or for what is above it.
fn order_below(node: &Arc<dyn ExecutionPlan>, at: usize, order: &[usize]) -> Vec<usize> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        return leading_columns(sort.expr().iter().map(|key| &key.expr));
    }
    if let Some(Some(required)) = node.required_input_ordering().get(at) {
        return leading_columns(required.first().iter().map(|key| &key.expr));
    }
    if node.maintains_input_order().get(at) != Some(&true) {
        return Vec::new();
    }
    order.iter().map_while(|column| column_below(node, *column)).collect()
}

fn leading_columns<'a>(keys: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>) -> Vec<usize> {
    keys.map_while(|key| key.downcast_ref::<Column>().map(Column::index)).collect()
}

/// Which column of its input an operator passes on there.
fn column_below(node: &Arc<dyn ExecutionPlan>, at: usize) -> Option<usize> {
    let children = node.children();
    let [input] = children.as_slice() else { return None };
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        return projection.expr().get(at)?.expr.downcast_ref::<Column>().map(Column::index);
    }
    if let Some(chosen) = node.downcast_ref::<FilterExec>().and_then(|filter| filter.projection().as_ref()) {
        return chosen.get(at).copied();
    }
    let is_window = node.downcast_ref::<WindowAggExec>().is_some()
        || node.downcast_ref::<BoundedWindowAggExec>().is_some();
    let fields = input.schema().fields().len();
    ((is_window || node.schema() == input.schema()) && at < fields).then_some(at)
}

/// What a window computes, if that is the same for all rows of a partition and they are not wanted in the order of its keys.
fn totals(window: &WindowAggExec, order: &[usize]) -> Result<Option<Totals>> {
    let Some(first) = window.window_expr().first() else { return Ok(None) };
    let keys = first.partition_by();
    let columns = leading_columns(keys.iter());
    let is_sorted_anyway =
        order.get(..columns.len()).is_some_and(|leading| leading.iter().all(|at| columns.contains(at)));
    if keys.is_empty() || is_sorted_anyway || !keys.iter().all(|key| is_plain_column(key, window.input())) {
        return Ok(None);
    }
    let mut functions = Vec::with_capacity(window.window_expr().len());
    for function in window.window_expr() {
        let Some(plain) = of_whole_partition(function).filter(|plain| plain.partition_by() == keys) else {
            return Ok(None);
        };
        let aggregate = plain.get_aggregate_expr();
        let in_order = extreme_in_order(aggregate, window.input().schema())?;
        functions.push(in_order.unwrap_or_else(|| Arc::new(aggregate.clone())));
    }
    Ok(Some(Totals { keys: keys.to_vec(), functions, schema: window.schema() }))
}

fn of_whole_partition(function: &Arc<dyn WindowExpr>) -> Option<&PlainAggregateWindowExpr> {
    let plain = function.as_any().downcast_ref::<PlainAggregateWindowExpr>()?;
    let is_whole = is_whole(plain.get_window_frame(), plain.order_by().is_empty());
    (is_whole && is_mergeable(plain.get_aggregate_expr()) && has_no_filter(plain)).then_some(plain)
}

/// Whether a frame has all rows of the partition. Without an order all of them are peers.
fn is_whole(frame: &WindowFrame, are_peers: bool) -> bool {
    let to_current = are_peers && frame.units == WindowFrameUnits::Range;
    let is_end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => to_current,
        WindowFrameBound::Preceding(_) | WindowFrameBound::Following(_) => bound.is_unbounded(),
    };
    is_end(&frame.start_bound) && is_end(&frame.end_bound)
}

/// Whether a function takes all rows. DataFusion shows its FILTER to nobody but the derived `Debug`, where it is the last field: what ends
/// in another way has one, or is of a version that this does not know.
fn has_no_filter(function: &PlainAggregateWindowExpr) -> bool {
    format!("{function:?}").ends_with(", filter: None }")
}
