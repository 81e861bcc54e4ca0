//! A text that is written out has no type of its own: beside a number, a date or an interval it is one, as in `i + '1'` and
//! `d - '2024-01-01'`. DataFusion takes it for text, which has no arithmetic.

use crate::rules::expressions::type_of;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, IntervalUnit};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::sqlparser::ast::BinaryOperator;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Digits behind the point of a text that is compared with a decimal.
const COMPARED_DIGITS: i8 = 15;

/// See the module.
#[derive(Debug)]
pub(in crate::rules) struct UntypedTexts;

impl ExprPlanner for UntypedTexts {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        for is_right in [false, true] {
            let (side, other) = if is_right { (&expr.right, &expr.left) } else { (&expr.left, &expr.right) };
            let meant = match side {
                Expr::Literal(ScalarValue::Utf8(Some(text)), _) if !is_text(other) => {
                    let Ok(other) = type_of(other, schema) else { continue };
                    wanted(&expr.op, &other, text).map(|to| cast(side, to))
                }
                Expr::Literal(ScalarValue::Decimal128(Some(_), _, scale), _) if is_comparison(&expr.op) => {
                    let of_text = type_of(other, schema).is_ok_and(|of| is_text_type(&of));
                    let wide = DataType::Decimal128(DECIMAL128_MAX_PRECISION, COMPARED_DIGITS.max(*scale));
                    of_text.then(|| cast(side, wide))
                }
                _ => None,
            };
            if let Some(meant) = meant {
                *(if is_right { &mut expr.right } else { &mut expr.left }) = meant;
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

fn cast(text: &Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(text.clone()), to))
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(_), _))
}

fn is_text_type(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The type of a text beside a value of another type, as PostgreSQL infers it; `None` where it stays a text.
fn wanted(op: &BinaryOperator, other: &DataType, text: &str) -> Option<DataType> {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    let is_interval = matches!(other, DataType::Interval(_) | DataType::Duration(_));
    match op {
        Plus | Minus | Multiply | Divide | Modulo if other.is_integer() || other.is_floating() => {
            Some(other.clone())
        }
        Plus | Minus | Multiply | Divide | Modulo if other.is_decimal() => Some(decimal(text)),
        Multiply | Divide if is_interval => Some(DataType::Float64),
        Plus | Minus if is_interval => Some(INTERVAL),
        Plus if matches!(other, DataType::Timestamp(..) | DataType::Time64(_)) => Some(INTERVAL),
        Minus if other.is_temporal() => Some(other.clone()),
        op if is_comparison(op) && is_interval => Some(INTERVAL),
        op if is_comparison(op) && matches!(other, DataType::Time32(_) | DataType::Time64(_)) => {
            Some(other.clone())
        }
        _ => None,
    }
}

/// A decimal with the digits that are written.
fn decimal(text: &str) -> DataType {
    let number = text.trim().trim_start_matches(['+', '-']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let precision = u8::try_from(whole.len().saturating_add(fraction.len()).max(1));
    match (precision, i8::try_from(fraction.len())) {
        (Ok(precision), Ok(scale))
            if precision <= DECIMAL128_MAX_PRECISION && digits(whole) && digits(fraction) =>
        {
            DataType::Decimal128(precision, scale)
        }
        _ => DataType::Float64,
    }
}
