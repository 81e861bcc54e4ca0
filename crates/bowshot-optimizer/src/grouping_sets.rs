//! Rows of `GROUP BY ROLLUP (a, b)` and other grouping sets have NULL in columns that their set does not group by. DataFusion applies
//! what it knows of the input columns (constants, ordering, partitioning) to the output, and takes groups for complete that are
//! not. Here that is dropped.

use super::drop_ordering::DropOrdering;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use std::sync::Arc;

/// See the module. Comes before all rules that look at orders and partitions.
#[derive(Debug)]
pub(super) struct NothingKnownOfSets;

impl PhysicalOptimizerRule for NothingKnownOfSets {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(if makes_sets(node.as_ref()) {
                Transformed::yes(DropOrdering::of_all(node))
            } else {
                Transformed::no(node)
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "NothingKnownOfSets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn makes_sets(node: &dyn ExecutionPlan) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        aggregate.mode().input_mode() == AggregateInputMode::Raw && aggregate.group_expr().has_grouping_set()
    })
}
