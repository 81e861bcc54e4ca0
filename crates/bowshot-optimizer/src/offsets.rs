//! `ORDER BY … OFFSET` of a subquery, without LIMIT. Where its sort columns are dropped above, DataFusion removes the sort, as
//! nothing above requires an order, and skips arbitrary rows. Here the skip requires the order itself.

use crate::node_rule::Replacement;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::{Distribution, LexOrdering};
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;

/// Must run before the rule that removes sorts; the later rule for output requirements removes the ones added here.
pub(super) fn skipped_in_order(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    let skips =
        node.downcast_ref::<GlobalLimitExec>().filter(|limit| limit.skip() > 0 && limit.fetch().is_none());
    let input = skips.map(|limit| needed(limit.input())).transpose()?.flatten();
    input.map(|input| replace_children_if_necessary(Arc::clone(node), vec![input])).transpose()
}

/// The input with a sort that is needed; `None` if there is none.
fn needed(input: &Arc<dyn ExecutionPlan>) -> Replacement {
    if let Some(order) = order_of(input.as_ref()) {
        let (input, order) = (Arc::clone(input), Some(order.clone().into()));
        let required = OutputRequirementExec::new(input, order, Distribution::SinglePartition, None);
        return Ok(Some(Arc::new(required)));
    }
    let Some(projection) = input.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let below = needed(projection.input())?;
    below.map(|below| replace_children_if_necessary(Arc::clone(input), vec![below])).transpose()
}

fn order_of(node: &dyn ExecutionPlan) -> Option<&LexOrdering> {
    if let Some(sort) = node.downcast_ref::<SortExec>() {
        Some(sort.expr())
    } else {
        node.downcast_ref::<SortPreservingMergeExec>().map(SortPreservingMergeExec::expr)
    }
}
