//! Physical rules that look at one operator after the other, from the leaves up.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// What comes in the place of an operator, if anything.
type Change = fn(&Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Option<Arc<dyn ExecutionPlan>>>;

#[derive(Debug)]
struct NodeRule {
    name: &'static str,
    change: Change,
}

/// A rule with this name.
pub(super) fn node_rule(name: &'static str, change: Change) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(NodeRule { name, change })
}

impl PhysicalOptimizerRule for NodeRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let changed = (self.change)(&node, config)?;
            Ok(changed.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
