//! An aggregate over columns of an outer query only belongs to that query, not to the subquery in which it is written:
//! `SELECT (SELECT max(o.a) FROM i) FROM o` has one row. DataFusion computes it in the subquery, so it is refused.

use super::plans;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Refuses a plan with such an aggregate in one of its subqueries.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            for expr in &aggregate.aggr_expr {
                if is_of_outer_query(expr)? {
                    return not_impl_err!(
                        "the aggregate `{}` has columns of an outer query alone and belongs to that one, which is not supported; compute it in a subquery in FROM",
                        expr.human_display()
                    );
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn is_of_outer_query(expr: &Expr) -> Result<bool> {
    Ok(expr.contains_outer() && expr.column_refs().is_empty() && !plans::contains_subquery(expr)?)
}
