//! Aggregation before joins. `SELECT c.name, sum(s.price) FROM sales s JOIN customers c ON … GROUP BY c.name` groups every sale by a
//! text; here sales are grouped by the key of the join first, and the states of those groups go through the join. A group that
//! meets several rows goes on as often as its rows would have, so answers do not depend on keys being unique.

mod build;
mod cost;
mod levels;
#[cfg(test)]
mod tests;

use crate::coarser_sets::is_mergeable;
use crate::common_subplans::SharedWork;
use crate::node_rule::Replacement;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use levels::Level;
use std::sync::Arc;

/// Must run after the rule that chooses the order and the sides of joins.
pub(super) fn before_joins(node: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Replacement {
    if !config.extensions.get::<SharedWork>().is_some_and(|wanted| wanted.eager_aggregation) {
        return Ok(None);
    }
    let partitions = config.execution.target_partitions;
    in_steps(node, &|partial, levels| cost::best(partial, levels, partitions))
}

/// Which of the levels below an aggregation is grouped first.
type Choose<'a> = &'a dyn Fn(&AggregateExec, &[Level]) -> Option<usize>;

/// The first step of an aggregation as two, the first of them at the chosen level.
fn in_steps(node: &Arc<dyn ExecutionPlan>, choose: Choose<'_>) -> Replacement {
    let Some(partial) = node.downcast_ref::<AggregateExec>().filter(|aggregate| is_splittable(aggregate))
    else {
        return Ok(None);
    };
    let levels = levels::below(partial)?;
    choose(partial, &levels).map_or(Ok(None), |chosen| build::plan(partial, &levels, chosen))
}

/// Whether it is a first step whose states can be put together once more. Grouping sets have one below them that is.
fn is_splittable(partial: &AggregateExec) -> bool {
    *partial.mode() == AggregateMode::Partial
        && partial.group_expr().is_single()
        && !partial.group_expr().is_empty()
        && !partial.aggr_expr().is_empty()
        && partial.limit_options().is_none()
        && partial.aggr_expr().iter().all(|function| is_mergeable(function))
}
