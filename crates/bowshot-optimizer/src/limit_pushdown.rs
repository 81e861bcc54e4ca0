//! `ORDER BY … LIMIT` above groups. The rule that removes sorts passes the limit of a removed sort down through everything that has
//! the order already, also through an aggregation, whose input then ends early: `SELECT DISTINCT x FROM (… UNION ALL …) ORDER BY x
//! LIMIT 2` loses rows. Below a limit, aggregations hide their order while it runs.

use super::drop_ordering::DropOrdering;
use super::node_rule::{Rule, run_by};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;

/// The rule that adds sorts and takes some away.
const ORDERS: &str = "EnsureRequirements";

/// The rules, that one kept from aggregations below limits.
pub(super) fn above_groups(rules: Vec<Rule>) -> Vec<Rule> {
    run_by(rules, &[ORDERS], |rule, plan, config| {
        if !plan.exists(|node| Ok(node.fetch().is_some()))? {
            return rule.optimize(plan, config);
        }
        DropOrdering::lifted(rule.optimize(below(plan, Above::Nothing)?, config)?)
    })
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
