//! Rows of `GROUP BY ROLLUP (a, b)` and other grouping sets have NULL in columns that their set does not group by. DataFusion applies
//! what it knows of the input columns (constants, ordering, partitioning) to the output, and takes groups for complete that are
//! not. Here that is dropped.

use super::drop_ordering::DropOrdering;
use crate::node_rule::Replacement;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use std::sync::Arc;

/// Must run before all rules that use orderings or partitioning.
pub(super) fn nothing_known(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    Ok(makes_sets(node.as_ref()).then(|| DropOrdering::of_all(Arc::clone(node))))
}

fn makes_sets(node: &dyn ExecutionPlan) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.mode().input_mode() == AggregateInputMode::Raw && aggregate.group_expr().has_grouping_set()
    })
}
