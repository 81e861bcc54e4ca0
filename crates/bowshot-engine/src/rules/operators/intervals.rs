//! Intervals are compared by how long they are, a month for 30 days, as in PostgreSQL and DuckDB; DataFusion compares months
//! first, and then days, so that 25 hours are less than a day. They can be multiplied by numbers and divided.

use super::functions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Comparisons of two intervals.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = expr else { return Transformed::no(expr) };
    if !(is_interval(&binary.left, schema) && is_interval(&binary.right, schema)) {
        return Transformed::no(Expr::BinaryExpr(binary));
    }
    let left = functions::length_of(*binary.left);
    let right = functions::length_of(*binary.right);
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), binary.op, Box::new(right))))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| matches!(of, DataType::Interval(_)))
}

/// Plans `interval * number`, `number * interval` and `interval / number`, which have no type without us.
#[derive(Debug)]
pub(in crate::rules) struct IntervalPlanner;

impl ExprPlanner for IntervalPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let number = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_numeric());
        let (left, right) = (is_interval(&expr.left, schema), is_interval(&expr.right, schema));
        Ok(match expr.op {
            BinaryOperator::Multiply if left && number(&expr.right) => {
                PlannerResult::Planned(functions::times(expr.left, expr.right))
            }
            BinaryOperator::Multiply if right && number(&expr.left) => {
                PlannerResult::Planned(functions::times(expr.right, expr.left))
            }
            BinaryOperator::Divide if left && number(&expr.right) => {
                PlannerResult::Planned(functions::divided(expr.left, expr.right))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}
