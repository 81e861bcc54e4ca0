//! Columns that are constant in only some rows are no longer reported as constant. A column that is constant below an outer join
//! may be NULL above it, but DataFusion does not sort by it and takes its groups for complete. A column with one value in each
//! part of a UNION is dropped from the sort keys of the parts, so that the first rows of one part hide those of another
//! (`SELECT 1, a … UNION ALL SELECT 2, a … ORDER BY 1 DESC, 2 LIMIT 1`).

use super::drop_ordering::DropOrdering;
use crate::node_rule::{Replacement, Rule, behind, node_rule};
use datafusion::common::{JoinSide, JoinType};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use std::sync::Arc;

/// The rule that brings conditions, and with them constants, below joins.
const BRINGS_CONSTANTS: &str = "FilterPushdown";

/// Must run before all rules that use orderings or groups.
pub(super) fn nothing_constant_of_parts() -> Rule {
    node_rule("NothingConstantOfParts", nothing_constant)
}

/// The rules, with this one behind that which brings constants.
pub(super) fn behind_filters(rules: Vec<Rule>) -> Vec<Rule> {
    behind(rules, BRINGS_CONSTANTS, nothing_constant_of_parts)
}

fn nothing_constant(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    if has_constants_of_parts(node.as_ref()) {
        return Ok(Some(DropOrdering::of_constants(Arc::clone(node))));
    }
    if let Some(once) = DropOrdering::once(node) {
        return Ok(Some(once));
    }
    let Some(join_type) = join_type(node.as_ref()) else { return Ok(None) };
    let children = node.children();
    let [left, right] = children.as_slice() else { return Ok(None) };
    let sides = [(JoinSide::Left, *left), (JoinSide::Right, *right)];
    let forgets = |(side, input): (JoinSide, &Arc<dyn ExecutionPlan>)| {
        may_be_missing(join_type, side) && !input.equivalence_properties().constants().is_empty()
    };
    if !sides.into_iter().any(forgets) {
        return Ok(None);
    }
    let children = sides.into_iter().map(|(side, input)| {
        let input = Arc::clone(input);
        if forgets((side, &input)) { DropOrdering::of_constants(input) } else { input }
    });
    let children = children.collect();
    replace_children_if_necessary(Arc::clone(node), children).map(Some)
}

fn has_constants_of_parts(node: &dyn ExecutionPlan) -> bool {
    let is_union = node.is::<UnionExec>() || node.is::<InterleaveExec>();
    is_union
        && node
            .equivalence_properties()
            .constants()
            .iter()
            .any(|constant| constant.across_partitions == AcrossPartitions::Heterogeneous)
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
