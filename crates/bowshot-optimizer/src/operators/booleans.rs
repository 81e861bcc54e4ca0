//! A text literal beside a boolean is a boolean, as in `WHERE indisprimary = 't'` of ODBC, with PostgreSQL's words. A boolean literal
//! beside an integer is 1 or 0, as in `WHERE i = TRUE` of MySQL and DuckDB; an integer beside a date is a date as MySQL writes it:
//! `d = 20240102`. DataFusion compares none of these.

use crate::expressions::type_of;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Changes the expression and leaves its planning to the other planners.
#[derive(Debug)]
pub(crate) struct BooleanLiterals;

impl ExprPlanner for BooleanLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let compares = matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq);
        let (left, right) = match (word(&left), word(&right)) {
            (Some(truth), None) if compares && is_truth(&right, schema) => (literal(truth), right),
            (None, Some(truth)) if compares && is_truth(&left, schema) => (left, literal(truth)),
            _ => (left, right),
        };
        if !compares && !is_order(&op) {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        }
        let (new_left, new_right) =
            (beside(&left, &right, schema, compares), beside(&right, &left, schema, compares));
        let (left, right) = (new_left.unwrap_or(left), new_right.unwrap_or(right));
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn is_order(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq)
}

/// A literal as it is meant beside another value; `None` if it is meant as it stands.
fn beside(literal: &Expr, other: &Expr, schema: &DFSchema, compares: bool) -> Option<Expr> {
    let Expr::Literal(value, _) = literal else { return None };
    match value {
        ScalarValue::Boolean(Some(truth)) if compares && type_of(other, schema).ok()?.is_integer() => {
            Some(Expr::Literal(ScalarValue::Int64(Some(i64::from(*truth))), None))
        }
        ScalarValue::Int64(Some(number)) => match type_of(other, schema).ok()? {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => day(*number),
            _ => None,
        },
        _ => None,
    }
}

/// The day of a number such as 20240102; `None` for a number that is no day.
fn day(number: i64) -> Option<Expr> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    if !(1_000..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let text = format!("{year:04}-{month:02}-{day:02}");
    let text = ScalarValue::Utf8(Some(text));
    text.cast_to(&DataType::Date32).ok().map(|day| Expr::Literal(day, None))
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
