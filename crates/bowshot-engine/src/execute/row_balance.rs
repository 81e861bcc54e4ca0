//! Which rows two sets of rows have more of than the other: of a table before and after a commit, what came and what went. Rows
//! that were only moved are in both as often, and cancel each other.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::math::expr_fn::atan2;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};

/// The last column of the plan: how many more there are on the first side; below zero, on the second.
pub(crate) const BALANCE: &str = "__bowshot_balance";
/// Counts a row of the first side, and takes away one of the second.
const SIGN: &str = "__bowshot_sign";
/// Whether the floating-point number in the column of this number is -0.0, which a grouping makes 0.0.
const NEGATIVE_ZERO: &str = "__bowshot_negative_zero_";

/// Each row of either side once, with its [`BALANCE`]. Both have the same columns.
///
/// # Errors
/// When the plan cannot be made.
pub(crate) fn balanced(more: LogicalPlan, less: LogicalPlan) -> Result<LogicalPlan> {
    let [more, less] = [with_zero_signs(more)?, with_zero_signs(less)?];
    let both = LogicalPlanBuilder::from(counted(more, 1, SIGN)?).union(counted(less, -1, SIGN)?)?;
    let both = both.build()?;
    let (sign, columns) = split(&both)?;
    let balance = sum(Expr::Column(sign)).alias(BALANCE);
    let rows = LogicalPlanBuilder::from(both).aggregate(columns, [balance])?.build()?;
    with_signed_zeros(rows)
}

/// The rows with a column [`NEGATIVE_ZERO`] for each floating-point number. It stands below the grouping: the optimizer drops a
/// group that is computed from another one.
fn with_zero_signs(rows: LogicalPlan) -> Result<LogicalPlan> {
    let mut columns = Vec::new();
    let mut signs = Vec::new();
    for (at, column) in rows.schema().columns().into_iter().enumerate() {
        let column = Expr::Column(column);
        if rows.schema().field(at).data_type().is_floating() {
            // The angle of a point left of the origin is negative below the axis.
            let number = cast(column.clone(), DataType::Float64);
            let is_below = atan2(number.clone(), lit(-1.0_f64)).lt(lit(0.0_f64));
            let is_zero = number.eq(lit(0.0_f64));
            signs.push(is_zero.and(is_below).alias(format!("{NEGATIVE_ZERO}{at}")));
        }
        columns.push(column);
    }
    columns.extend(signs);
    LogicalPlanBuilder::from(rows).project(columns)?.build()
}

/// The grouped rows with each -0.0 as it was, and without the columns that tell.
fn with_signed_zeros(rows: LogicalPlan) -> Result<LogicalPlan> {
    let mut columns = Vec::new();
    for (at, column) in rows.schema().columns().into_iter().enumerate() {
        let data_type = rows.schema().field(at).data_type();
        if data_type.is_floating() {
            let is_negative = Expr::Column(Column::from_name(format!("{NEGATIVE_ZERO}{at}")));
            let zero = cast(lit(-0.0_f64), data_type.clone());
            let signed = when(is_negative, zero).otherwise(Expr::Column(column.clone()))?;
            columns.push(signed.alias_qualified(column.relation, column.name));
        } else if !column.name.starts_with(NEGATIVE_ZERO) {
            columns.push(Expr::Column(column));
        }
    }
    LogicalPlanBuilder::from(rows).project(columns)?.build()
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
