//! The order of the logical rules; and joins whose keys are all of one kind: DataFusion's rules that make joins of
//! `FROM a, b WHERE …`, and keys of conditions, mix `=` and IS NOT DISTINCT FROM.

use super::anti_joins::AntiJoins;
use super::constant_conditions::{FILTERS, decided_above};
use super::constant_sides::constants_on_the_right;
use super::expressions::{any_expression, any_node};
use super::functional_dependencies::{DISTINCT, JOINS, LEAVES_OUT, all_keys, nothing_follows};
use super::operators::BothZeros;
use super::recursions::NullableColumns;
use super::wrapped_rule::{Rule, wrapped};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule that joins the tables of `FROM a, b` by the equalities of WHERE.
const CROSS_JOINS: &str = "eliminate_cross_join";

/// The rules of the logical optimiser, in DataFusion's order. Scratch sessions, which are compared with DataFusion, believe of groups
/// what it does.
pub fn logical(scratch: bool) -> Vec<Rule> {
    let rules = Optimizer::new().rules.into_iter();
    let mut rules: Vec<_> = rules
        .map(|rule| match rule.name() {
            CROSS_JOINS => wrapped(rule, only_plain_equalities),
            KEYS => wrapped(rule, only_one_kind),
            FILTERS => wrapped(wrapped(rule, constants_on_the_right), decided_above),
            LEAVES_OUT if !scratch => wrapped(rule, all_keys),
            JOINS | DISTINCT if !scratch => wrapped(rule, nothing_follows),
            _ => rule,
        })
        .collect();
    if let Some(pushed) = rules.iter().position(|rule| rule.name() == FILTERS) {
        rules.insert(pushed + 1, Arc::new(AntiJoins));
    }
    rules.push(Arc::new(BothZeros));
    rules.push(Arc::new(NullableColumns));
    rules
}

/// The rule that makes keys of a join's conditions. It adds `a.j = b.j` to keys that are joined by `IS NOT DISTINCT FROM`,
/// where such a condition comes later, and nulls equal one another there too.
const KEYS: &str = "extract_equijoin_predicate";

/// Leaves joins alone whose keys are of the other kind: the rule itself adds no more of those.
fn only_one_kind(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let other =
        matches!(&plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull);
    if other { Ok(Transformed::no(plan)) } else { rule.rewrite(plan, config) }
}

/// Inner joins up to which the rule is asked although none of them lacks a key. Its time grows with the third power of their
/// number: 280 joins took 6.5 of the 7.4 seconds in which such a statement was planned, and nothing can interrupt it.
const MOST_JOINS_WITHOUT_NEED: usize = 32;

/// Leaves plans alone in which nulls equal one another in some join: the rule keeps one such setting for all the keys that it
/// collects, so that either `=` matches nulls too, or `IS NOT DISTINCT FROM` does not. Also long chains of joins that all have
/// keys: there is no cross join to eliminate.
fn only_plain_equalities(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if equals_nulls(&plan)? || is_long_without_need(&plan)? {
        return Ok(Transformed::no(plan));
    }
    rule.rewrite(plan, config)
}

fn is_long_without_need(plan: &LogicalPlan) -> Result<bool> {
    let (mut joins, mut crossed) = (0_usize, false);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node
            && join.join_type == JoinType::Inner
        {
            joins += 1;
            crossed |= join.on.is_empty();
        }
        Ok(if crossed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(!crossed && joins > MOST_JOINS_WITHOUT_NEED)
}

/// In subqueries too, which the rule goes into by itself.
fn equals_nulls(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        // The rule touches inner joins only; those of INTERSECT and EXCEPT are none.
        let joins = matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        Ok(joins || any_expression(node, |expr| expr.exists(|expr| Ok(is_not_distinct(expr))))?)
    })
}

fn is_not_distinct(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(binary) if binary.op == Operator::IsNotDistinctFrom)
}
