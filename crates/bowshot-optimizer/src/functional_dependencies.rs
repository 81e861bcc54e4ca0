//! Removes wrong functional dependencies between group keys while rules use them. DataFusion keeps them above a join that repeats the
//! key: `GROUP BY a.k, l.v` over a join with `(SELECT DISTINCT v …) AS l` loses `a.k`, and DISTINCT is dropped.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, FunctionalDependencies, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule that leaves out what nobody needs, keys of groups among it. Projections of all columns are some of that.
pub(super) const LEAVES_OUT: &str = "optimize_projections";

/// The rule that leaves out joins which add no row and no column, and the one that makes groups of DISTINCT, or nothing where rows
/// are told to be distinct.
pub(super) const JOINS: &str = "eliminate_join";
pub(super) const DISTINCT: &str = "replace_distinct_aggregate";

/// Keeps keys of groups from being left out.
pub(super) fn all_keys(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = plan
        .transform_down_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(groups) if has_doubtful_keys(&groups) => independent(groups),
            node => Ok(Transformed::no(node)),
        })
        .data()?;
    rule.rewrite(plan, config)
}

/// Lets a rule see nothing that follows from groups by keys of which one is said to follow from the others.
pub(super) fn nothing_follows(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // A rule that is asked for each node believes something of DISTINCT alone.
    let is_meant = rule.apply_order().is_none() || matches!(plan, LogicalPlan::Distinct(_));
    if !is_meant || !has_doubtful_groups(&plan)? {
        return rule.rewrite(plan, config);
    }
    let plan = plan.transform_up(|node| {
        let node = match node {
            LogicalPlan::Aggregate(groups) if has_doubtful_keys(&groups) => independent(groups)?.data,
            node => node,
        };
        Ok(Transformed::yes(node.recompute_schema()?))
    });
    rule.rewrite(plan.data()?, config)
}

fn has_doubtful_groups(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(groups) if has_doubtful_keys(groups))))
}

fn has_doubtful_keys(groups: &Aggregate) -> bool {
    groups.group_expr.len() > 1 && !groups.input.schema().functional_dependencies().is_empty()
}

/// The same over all columns of its input, of which nothing else is known.
fn independent(mut groups: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = groups.input;
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    let schema =
        DFSchema::clone(input.schema()).with_functional_dependencies(FunctionalDependencies::empty())?;
    let projection = Projection::try_new_with_schema(columns, input, Arc::new(schema))?;
    groups.input = Arc::new(LogicalPlan::Projection(projection));
    Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
}
