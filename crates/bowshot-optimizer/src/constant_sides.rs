//! Filter pushdown takes `c = 2 AND 2 = c` for a contradiction, since it compares conditions as they are written. Joins, subqueries and
//! constant columns make the second form after the rule that swaps sides has run. Here sides are swapped before.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

pub(super) fn constants_on_the_right(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Filter(filter) if to_be_turned(&filter) => {
            let mut rewritten = rule.rewrite(LogicalPlan::Filter(turned(filter)?), config)?;
            rewritten.transformed = true;
            Ok(rewritten)
        }
        plan => rule.rewrite(plan, config),
    }
}

/// Whether a filter, or one right below it, which the rule puts together with it, has such a condition.
fn to_be_turned(filter: &Filter) -> bool {
    split_conjunction(&filter.predicate).into_iter().any(|condition| other_way(condition).is_some())
        || matches!(filter.input.as_ref(), LogicalPlan::Filter(below) if to_be_turned(below))
}

fn turned(filter: Filter) -> Result<Filter> {
    let conditions = split_conjunction_owned(filter.predicate);
    let conditions = conditions.into_iter().map(|condition| other_way(&condition).unwrap_or(condition));
    let Some(predicate) = conjunction(conditions) else { return internal_err!("a filter has a condition") };
    let input = match filter.input.as_ref() {
        LogicalPlan::Filter(below) => Arc::new(LogicalPlan::Filter(turned(below.clone())?)),
        _ => filter.input,
    };
    Filter::try_new(predicate, input)
}

/// `2 < c` as `c > 2`; `None` for what is not of that kind.
fn other_way(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let constant = |side: &Expr| matches!(side, Expr::Literal(..));
    if !constant(left) || constant(right) {
        return None;
    }
    Some(Expr::BinaryExpr(BinaryExpr::new(right.clone(), op.swap()?, left.clone())))
}
