//! Columns that are constant in only some rows are no longer reported as constant. A column that is constant below an outer join
//! may be NULL above it, but DataFusion does not sort by it and takes its groups for complete. A column with one value in each
//! part of a UNION is dropped from the sort keys of the parts, so that the first rows of one part hide those of another
//! (`SELECT 1, a … UNION ALL SELECT 2, a … ORDER BY 1 DESC, 2 LIMIT 1`). And rows are not grouped in order because one of the keys
//! is constant.

use super::drop_ordering::DropOrdering;
use crate::node_rule::{Replacement, Rule, behind, node_rule};
use datafusion::common::{JoinSide, JoinType};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::equivalence::AcrossPartitions;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec, SymmetricHashJoinExec,
};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, replace_children_if_necessary,
};
use std::sync::Arc;

/// The rule that brings conditions, and with them constants, below joins.
const BRINGS_CONSTANTS: &str = "FilterPushdown";

/// Must run before all rules that use orderings or groups.
pub(super) fn nothing_constant_of_parts() -> Rule {
    node_rule("NothingConstantOfParts", nothing_constant)
}

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

/// DataFusion takes rows with a constant key for ordered by it, and groups ordered rows one by one: no group ends early, keys are not
/// compared in batches, and the first step goes on where each row is a group of its own. Comes behind the rules that look for joins
/// below groups, in front of those that sort.
pub(super) fn unordered_groups(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let InputOrderMode::PartiallySorted(ordered) = aggregate.input_order_mode() else { return Ok(None) };
    let (input, keys) = (aggregate.input(), aggregate.group_expr().input_exprs());
    let properties = input.equivalence_properties();
    let is_constant = |key: &Arc<dyn PhysicalExpr>| properties.is_expr_constant(key).is_some();
    if input.output_ordering().is_some()
        || !ordered.iter().all(|place| keys.get(*place).is_some_and(is_constant))
    {
        return Ok(None);
    }
    replace_children_if_necessary(Arc::clone(node), vec![DropOrdering::of_constants(Arc::clone(input))])
        .map(Some)
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

#[cfg(test)]
mod tests {
    use crate::test_sessions::{answer, physical_plan, session};
    use datafusion::prelude::SessionConfig;

    #[tokio::test]
    async fn constants_put_no_groups_in_order() {
        let config = || SessionConfig::new().with_target_partitions(2);
        let (ours, stock) =
            (session(config(), crate::physical(false)), session(config(), crate::physical(true)));
        for context in [&ours, &stock] {
            let table =
                "CREATE TABLE t AS SELECT value % 3 AS d, value % 50 AS k, value AS v FROM range(0, 900)";
            context.sql(table).await.unwrap().collect().await.unwrap();
        }
        for sql in [
            "SELECT d, k, sum(v), count(*) FROM t WHERE d = 1 GROUP BY d, k",
            "SELECT k, d, max(v) FROM t WHERE d = 1 GROUP BY k, d ORDER BY d, k LIMIT 3",
            "SELECT a.d, b.k, sum(a.v) FROM t a JOIN t b ON a.v = b.v WHERE a.d = 2 GROUP BY a.d, b.k",
        ] {
            let (new, old) = (physical_plan(&ours, sql).await, physical_plan(&stock, sql).await);
            assert!(old.contains("PartiallySorted") && !new.contains("PartiallySorted"), "{new}");
            assert_eq!(answer(&ours, sql).await, answer(&stock, sql).await, "{sql}");
        }
    }
}
