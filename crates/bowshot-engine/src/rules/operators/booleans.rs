//! A text that is written out beside a truth value is one itself, as in `WHERE indisprimary = 't'` of ODBC: the words are those of
//! PostgreSQL. DataFusion compares no truth value with a text.

use crate::rules::expressions::type_of;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// See the module. It changes what is planned, and leaves the planning to others.
#[derive(Debug)]
pub(in crate::rules) struct BooleanLiterals;

impl ExprPlanner for BooleanLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let compares = matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq);
        let (left, right) = match (word(&left), word(&right)) {
            (Some(truth), None) if compares && is_truth(&right, schema) => (literal(truth), right),
            (None, Some(truth)) if compares && is_truth(&left, schema) => (left, literal(truth)),
            _ => (left, right),
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn is_truth(expr: &Expr, schema: &DFSchema) -> bool {
    type_of(expr, schema).is_ok_and(|of| of == DataType::Boolean)
}

fn literal(truth: bool) -> Expr {
    Expr::Literal(ScalarValue::Boolean(Some(truth)), None)
}

/// The truth value that a text is, if it is one.
fn word(expr: &Expr) -> Option<bool> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expr else { return None };
    match text.trim().to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
