//! Rows of `GROUP BY ROLLUP (a, b)` and other grouping sets have NULL in columns that their set does not group by. DataFusion
//! takes what it knows of a column of the input (that it has one value, since WHERE says so; how rows are ordered and
//! partitioned by it) for known of the output, too, and then takes groups for complete that are not. Here it forgets that.

use super::forgetful::Forgetful;
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
                Transformed::yes(Forgetful::of_all(node))
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
