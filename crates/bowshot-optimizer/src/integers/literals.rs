//! Integer literals are INT beside an INT or another such literal, as in PostgreSQL and DuckDB, so that `2147483647 + 1` and
//! `i - 10` are errors where the result is no INT. DataFusion makes them BIGINT, which they stay alone and where they do not fit.

use crate::expressions::type_of;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Changes the expression and leaves its planning to the other planners.
#[derive(Debug)]
pub(crate) struct IntegerLiterals;

impl ExprPlanner for IntegerLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let is_arithmetic = matches!(
            op,
            BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Modulo
        );
        let (left, right) = if is_arithmetic && is_small(&left, schema) && is_small(&right, schema) {
            (as_integer(left), as_integer(right))
        } else {
            (left, right)
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// Whether it is of a type up to INT, or may be.
fn is_small(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => i32::try_from(*value).is_ok(),
        expr => type_of(expr, schema)
            .is_ok_and(|of| matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32)),
    }
}

fn as_integer(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
            Ok(value) => Expr::Literal(ScalarValue::Int32(Some(value)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(value)), metadata),
        },
        other => other,
    }
}
