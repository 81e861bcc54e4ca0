//! `DATE ± INTERVAL` is a TIMESTAMP, as in PostgreSQL and DuckDB: `DATE '2020-01-01' - INTERVAL '1 hour'` is no date. Compared
//! with a date, whole days and months may stay dates, and do, since files are read by conditions on dates.
//! `TIMESTAMP - TIMESTAMP` is an INTERVAL of days and time.

use super::functions;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Between;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

pub(super) fn arithmetic(binary: BinaryExpr, (left, right): (&DataType, &DataType)) -> Transformed<Expr> {
    let interval = |of: &DataType| matches!(of, DataType::Interval(_));
    let BinaryExpr { left: one, op, right: other } = binary;
    let new = match op {
        Operator::Plus | Operator::Minus if is_date(left) && interval(right) => {
            BinaryExpr::new(as_timestamp(one), op, other)
        }
        Operator::Plus if interval(left) && is_date(right) => BinaryExpr::new(as_timestamp(other), op, one),
        Operator::Plus if interval(left) && matches!(right, DataType::Timestamp(..)) => {
            BinaryExpr::new(other, op, one)
        }
        Operator::Minus if is_moment(left) && is_moment(right) && !(is_date(left) && is_date(right)) => {
            let side = |of: &DataType, side| if is_date(of) { as_timestamp(side) } else { side };
            let duration = BinaryExpr::new(side(left, one), op, side(right, other));
            return Transformed::yes(functions::interval_of(Expr::BinaryExpr(duration)));
        }
        _ => return Transformed::no(Expr::BinaryExpr(BinaryExpr::new(one, op, other))),
    };
    Transformed::yes(Expr::BinaryExpr(new))
}

/// A comparison of days alone, where that is what it is.
pub(super) fn compared(binary: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let days = days(&binary.left, schema).zip(days(&binary.right, schema));
    match days {
        Some(((left, one), (right, other))) if one || other => {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), binary.op, Box::new(right))))
        }
        _ => Transformed::no(Expr::BinaryExpr(binary)),
    }
}

pub(super) fn between(between: Between, schema: &DFSchema) -> Transformed<Expr> {
    let sides = [&between.expr, &between.low, &between.high].map(|side| days(side, schema));
    match sides {
        [Some((expr, one)), Some((low, two)), Some((high, three))] if one || two || three => {
            Transformed::yes(Expr::Between(Between::new(
                Box::new(expr),
                between.negated,
                Box::new(low),
                Box::new(high),
            )))
        }
        _ => Transformed::no(Expr::Between(between)),
    }
}

/// The expression as a date, if it is one or has become a timestamp here without getting a time of day; and whether it had.
fn days(expr: &Expr, schema: &DFSchema) -> Option<(Expr, bool)> {
    if expr.get_type(schema).is_ok_and(|of| of == DataType::Date32) {
        return Some((expr.clone(), false));
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) => {
            if !is_of_whole_days(right) {
                return None;
            }
            let inner = match left.as_ref() {
                Expr::Cast(Cast { expr, field }) if *field.data_type() == TIMESTAMP => days(expr, schema)?.0,
                other => days(other, schema).filter(|(_, had)| *had)?.0,
            };
            let days = BinaryExpr::new(Box::new(inner), *op, right.clone());
            Some((Expr::BinaryExpr(days), true))
        }
        _ => None,
    }
}

fn is_of_whole_days(interval: &Expr) -> bool {
    match interval {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) => value.nanoseconds == 0,
        Expr::Literal(ScalarValue::IntervalDayTime(Some(value)), _) => value.milliseconds == 0,
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(_)), _) => true,
        _ => false,
    }
}

fn is_date(of: &DataType) -> bool {
    matches!(of, DataType::Date32 | DataType::Date64)
}

fn is_moment(of: &DataType) -> bool {
    is_date(of) || matches!(of, DataType::Timestamp(..))
}

fn as_timestamp(date: Box<Expr>) -> Box<Expr> {
    Box::new(Expr::Cast(Cast::new(date, TIMESTAMP)))
}
