//! Which rows two sets of rows have more of than the other: of a table before and after a commit, what came and what went. Rows
//! that were only moved are in both as often, and cancel each other.

use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

/// The last column of the plan: how many more there are on the first side; below zero, on the second.
pub(crate) const BALANCE: &str = "__bowshot_balance";
/// Counts a row of the first side, and takes away one of the second.
const SIGN: &str = "__bowshot_sign";

/// Each row of either side once, with its [`BALANCE`]. Both have the same columns.
///
/// # Errors
/// When the plan cannot be made.
pub(crate) fn balanced(more: LogicalPlan, less: LogicalPlan) -> Result<LogicalPlan> {
    let both = LogicalPlanBuilder::from(counted(more, 1, SIGN)?).union(counted(less, -1, SIGN)?)?;
    let both = both.build()?;
    let (sign, columns) = split(&both)?;
    let balance = sum(Expr::Column(sign)).alias(BALANCE);
    LogicalPlanBuilder::from(both).aggregate(columns, [balance])?.build()
}

/// The rows with the same number in one more, last, column.
///
/// # Errors
/// When the plan cannot be made.
pub(crate) fn counted(rows: LogicalPlan, number: i64, name: &str) -> Result<LogicalPlan> {
    let columns = rows.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = columns.chain([lit(number).alias(name)]).collect();
    LogicalPlanBuilder::from(rows).project(columns)?.build()
}

/// The last column of a plan, and those before it.
///
/// # Errors
/// For a plan without columns.
pub(crate) fn split(plan: &LogicalPlan) -> Result<(Column, Vec<Expr>)> {
    let mut columns = plan.schema().columns();
    let last = columns.pop();
    let last = last.ok_or_else(|| DataFusionError::Internal("a table has no columns".to_owned()))?;
    Ok((last, columns.into_iter().map(Expr::Column).collect()))
}
