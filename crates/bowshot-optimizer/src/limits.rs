//! `ORDER BY … LIMIT` above groups. The rule that removes sorts passes the limit of a removed sort down through everything that has
//! the order already, also through an aggregation, whose input then ends early: `SELECT DISTINCT x FROM (… UNION ALL …) ORDER BY x
//! LIMIT 2` loses rows. Below a limit, aggregations hide their order while it runs.

use super::drop_ordering::DropOrdering;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;

/// The rule that adds sorts and takes some away.
const ORDERS: &str = "EnsureRequirements";

/// The rules, that one kept from aggregations below limits.
pub(super) fn above_groups(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let rules = rules.into_iter();
    rules
        .map(|rule| if rule.name() == ORDERS { Arc::new(AboveGroups(rule)) as Arc<_> } else { rule })
        .collect()
}

#[derive(Debug)]
struct AboveGroups(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for AboveGroups {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(node.fetch().is_some()))? {
            return self.0.optimize(plan, config);
        }
        DropOrdering::lifted(self.0.optimize(below(plan, Above::Nothing)?, config)?)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// What stands above an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Nothing,
    Limit,
}

fn below(node: Arc<dyn ExecutionPlan>, above: Above) -> Result<Arc<dyn ExecutionPlan>> {
    let within = if node.fetch().is_some() { Above::Limit } else { above };
    let children = node.children().into_iter().map(|child| below(Arc::clone(child), within));
    let children = children.collect::<Result<Vec<_>>>()?;
    let node = replace_children_if_necessary(node, children)?;
    let gives_groups = node
        .downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| aggregate.mode().output_mode() == AggregateOutputMode::Final);
    Ok(if gives_groups && above == Above::Limit { DropOrdering::of_order(node) } else { node })
}
