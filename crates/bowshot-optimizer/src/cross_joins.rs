//! The order of the logical rules; and joins whose keys are all of one kind: DataFusion's rules that make joins of
//! `FROM a, b WHERE …`, and keys of conditions, mix `=` and IS NOT DISTINCT FROM.

use super::anti_joins::AntiJoins;
use super::constant_conditions::{DecidedAbove, FILTERS};
use super::constant_sides::ConstantsOnTheRight;
use super::dependencies::{AllKeys, DISTINCT, JOINS, LEAVES_OUT, NothingFollows};
use super::operators::BothZeros;
use super::recursions::NullableColumns;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::fmt;
use std::sync::Arc;

/// The rule that joins the tables of `FROM a, b` by the equalities of WHERE.
const CROSS_JOINS: &str = "eliminate_cross_join";

/// The rules of the logical optimiser, in DataFusion's order. Scratch sessions, which are compared with DataFusion, believe of groups
/// what it does.
pub fn logical(scratch: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let mut rules: Vec<_> = rules
        .map(|rule| match rule.name() {
            CROSS_JOINS => Arc::new(OnlyPlainEqualities(rule)) as Arc<dyn OptimizerRule + Send + Sync>,
            KEYS => Arc::new(OnlyOneKind(rule)) as Arc<_>,
            FILTERS => Arc::new(DecidedAbove(Arc::new(ConstantsOnTheRight(rule)))) as Arc<_>,
            LEAVES_OUT if !scratch => Arc::new(AllKeys(rule)) as Arc<_>,
            JOINS | DISTINCT if !scratch => Arc::new(NothingFollows(rule)) as Arc<_>,
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
struct OnlyOneKind(Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for OnlyOneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnlyOneKind").field(&self.0.name()).finish()
    }
}

impl OptimizerRule for OnlyOneKind {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let other =
            matches!(&plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull);
        if other { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}

/// Inner joins up to which the rule is asked although none of them lacks a key. Its time grows with the third power of their
/// number: 280 joins took 6.5 of the 7.4 seconds in which such a statement was planned, and nothing can interrupt it.
const MOST_JOINS_WITHOUT_NEED: usize = 32;

/// Leaves plans alone in which nulls equal one another in some join: the rule keeps one such setting for all the keys that it
/// collects, so that either `=` matches nulls too, or `IS NOT DISTINCT FROM` does not. Also long chains of joins that all have
/// keys: there is no cross join to eliminate.
struct OnlyPlainEqualities(Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for OnlyPlainEqualities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnlyPlainEqualities").field(&self.0.name()).finish()
    }
}

impl OptimizerRule for OnlyPlainEqualities {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if equals_nulls(&plan)? || is_long_without_need(&plan)? {
            return Ok(Transformed::no(plan));
        }
        self.0.rewrite(plan, config)
    }
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
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        // The rule touches inner joins only; those of INTERSECT and EXCEPT are none.
        found = matches!(node, LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull);
        if !found {
            node.apply_expressions(|expr| {
                found |= expr.exists(|expr| Ok(is_not_distinct(expr)))?;
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_not_distinct(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(binary) if binary.op == Operator::IsNotDistinctFrom)
}
