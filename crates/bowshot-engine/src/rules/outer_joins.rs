//! What is constant below an outer join may be NULL above it. DataFusion takes a column that has one value on the side whose rows
//! may be missing (`LEFT JOIN (SELECT 1 AS v …)`, `(… WHERE v = 1)`) for one that has it in all rows of the join, does not sort
//! by it, and takes groups for complete that are not. Here that side does not tell which columns are constant.

use super::forgetful::Forgetful;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use std::sync::Arc;

/// The rule that brings conditions, and with them constants, below joins.
const BRINGS_CONSTANTS: &str = "FilterPushdown";

/// See the module. Comes before all rules that look at orders and groups.
#[derive(Debug)]
pub(super) struct NothingConstantOfMissing;

/// The rules, with this one behind that which brings constants.
pub(super) fn behind_filters(
    rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let with_rule = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| {
        let brings = rule.name() == BRINGS_CONSTANTS;
        let forgets = brings.then(|| Arc::new(NothingConstantOfMissing) as Arc<_>);
        std::iter::once(rule).chain(forgets)
    };
    rules.into_iter().flat_map(with_rule).collect()
}

impl PhysicalOptimizerRule for NothingConstantOfMissing {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(join_type) = join_type(node.as_ref()) else { return Ok(Transformed::no(node)) };
            let children = node.children();
            let [left, right] = children.as_slice() else { return Ok(Transformed::no(node)) };
            let sides = [(JoinSide::Left, *left), (JoinSide::Right, *right)];
            let forgets = |(side, input): (JoinSide, &Arc<dyn ExecutionPlan>)| {
                may_be_missing(join_type, side) && !input.equivalence_properties().constants().is_empty()
            };
            if !sides.into_iter().any(forgets) {
                return Ok(Transformed::no(node));
            }
            let children = sides.into_iter().map(|(side, input)| {
                let input = Arc::clone(input);
                if forgets((side, &input)) { Forgetful::of_constants(input) } else { input }
            });
            let children = children.collect();
            replace_children_if_necessary(node, children).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "NothingConstantOfMissing"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn join_type(node: &dyn ExecutionPlan) -> Option<JoinType> {
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        Some(*join.join_type())
    } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        Some(join.join_type())
    } else if let Some(join) = node.downcast_ref::<SymmetricHashJoinExec>() {
        Some(*join.join_type())
    } else {
        node.downcast_ref::<PiecewiseMergeJoinExec>().map(PiecewiseMergeJoinExec::join_type)
    }
}

/// Whether rows of the join may lack one of this side.
fn may_be_missing(join_type: JoinType, side: JoinSide) -> bool {
    match join_type {
        JoinType::Full => true,
        JoinType::Left => side == JoinSide::Right,
        JoinType::Right => side == JoinSide::Left,
        _ => false,
    }
}
