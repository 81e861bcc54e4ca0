//! `max(x) OVER (ORDER BY y)` only grows, so DataFusion takes its rows for ordered by it, NULLS LAST: but it is NULL first while
//! there is no `x` yet, and NULL last where frames shrink. Here the order is not reported, so that an ORDER BY above sorts.

use super::drop_ordering::DropOrdering;
use crate::node_rule::Replacement;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::SetMonotonicity;
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use std::sync::Arc;

/// Must run before all rules that use orderings.
pub(super) fn without_order(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    Ok(is_taken_for_ordered(node.as_ref()).then(|| DropOrdering::of_constants(Arc::clone(node))))
}

fn is_taken_for_ordered(node: &dyn ExecutionPlan) -> bool {
    let exprs = match (node.downcast_ref::<BoundedWindowAggExec>(), node.downcast_ref::<WindowAggExec>()) {
        (Some(window), _) => window.window_expr(),
        (_, Some(window)) => window.window_expr(),
        _ => return false,
    };
    exprs.iter().any(|expr| grows_from_null(expr.as_ref()))
}

/// Whether it is an aggregate that only grows, or only shrinks, and may be NULL.
fn grows_from_null(expr: &dyn WindowExpr) -> bool {
    let aggregate = match (
        expr.as_any().downcast_ref::<PlainAggregateWindowExpr>(),
        expr.as_any().downcast_ref::<SlidingAggregateWindowExpr>(),
    ) {
        (Some(plain), _) => plain.get_aggregate_expr(),
        (_, Some(sliding)) => sliding.get_aggregate_expr(),
        _ => return false,
    };
    aggregate.set_monotonicity() != SetMonotonicity::NotMonotonic && aggregate.field().is_nullable()
}
