//! Intervals are compared by length, with a month of 30 days, as in PostgreSQL and DuckDB; DataFusion compares months first, then
//! days, so that 25 hours are less than a day. Intervals can be multiplied and divided by numbers.

use super::functions;
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Values that one is chosen of; each is there more often with every one more.
const MAX_CHOICES: usize = 4;

pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = expr else { return Transformed::no(expr) };
    if !(is_interval(&binary.left, schema) && is_interval(&binary.right, schema)) {
        return Transformed::no(Expr::BinaryExpr(binary));
    }
    let left = functions::length_of(*binary.left);
    let right = functions::length_of(*binary.right);
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), binary.op, Box::new(right))))
}

pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    let all = std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect();
    if lengths(all, schema) { Transformed::yes(list) } else { Transformed::no(list) }
}

pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = vec![between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    if lengths(all, schema) { Transformed::yes(between) } else { Transformed::no(between) }
}

/// The lengths of values that are compared with one another, if they are intervals; says whether they are.
pub(super) fn lengths(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    if !are_intervals(values.iter().map(|value| &**value), schema) {
        return false;
    }
    for value in values {
        *value = functions::length_of(interval(std::mem::take(value)));
    }
    true
}

/// Whether values are compared as intervals: one of them is, and the others are too, or are written out.
fn are_intervals<'a>(mut values: impl Iterator<Item = &'a Expr> + Clone, schema: &DFSchema) -> bool {
    values.clone().any(|value| is_interval(value, schema))
        && values.all(|value| is_written(value) || is_interval(value, schema))
}

fn is_written(value: &Expr) -> bool {
    matches!(value, Expr::Literal(value, _) if value.data_type().is_string() || value.data_type().is_null())
}

fn interval(value: Expr) -> Expr {
    if is_written(&value) { Expr::Cast(Cast::new(Box::new(value), INTERVAL)) } else { value }
}

/// Functions that look for an interval among others; says whether it is one.
pub(super) fn sought(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let ("array_has" | "array_position" | "array_positions") = call.name() else { return false };
    let [Expr::ScalarFunction(list), value, ..] = call.args.as_mut_slice() else { return false };
    list.name() == "make_array" && lengths(list.args.iter_mut().chain([value]).collect(), schema)
}

/// `nullif`, `greatest` and `least` of intervals.
pub(super) fn chosen(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let op = match call.name() {
        "nullif" => Operator::Eq,
        "greatest" => Operator::Gt,
        "least" => Operator::Lt,
        _ => return None,
    };
    if !(2..=MAX_CHOICES).contains(&call.args.len()) || !are_intervals(call.args.iter(), schema) {
        return None;
    }
    let choice = |holds: Expr, then: Expr, other: Expr| {
        Expr::Case(Case::new(None, vec![(Box::new(holds), Box::new(then))], Some(Box::new(other))))
    };
    call.args.iter().cloned().map(interval).reduce(|first, next| {
        let (left, right) = (functions::length_of(next.clone()), functions::length_of(first.clone()));
        let holds = Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
        match op {
            Operator::Eq => {
                choice(holds, Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None), first)
            }
            _ => choice(first.clone().is_null().or(holds), next, first),
        }
    })
}

pub(super) fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| matches!(of, DataType::Interval(_)))
}

/// Plans `interval * number`, `number * interval` and `interval / number`, which have no type without us, and `timestamp + NULL`,
/// where NULL is an interval.
#[derive(Debug)]
pub(crate) struct IntervalPlanner;

impl ExprPlanner for IntervalPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let number = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_numeric());
        let (left, right) = (is_interval(&expr.left, schema), is_interval(&expr.right, schema));
        let is_null = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Null, _));
        let is_timestamp =
            |expr: &Expr| expr.get_type(schema).is_ok_and(|of| matches!(of, DataType::Timestamp(..)));
        let untyped = || Expr::Literal(ScalarValue::IntervalMonthDayNano(None), None);
        Ok(match expr.op {
            BinaryOperator::Plus if is_null(&expr.right) && is_timestamp(&expr.left) => {
                PlannerResult::Original(RawBinaryExpr { right: untyped(), ..expr })
            }
            BinaryOperator::Plus if is_null(&expr.left) && is_timestamp(&expr.right) => {
                PlannerResult::Original(RawBinaryExpr { left: untyped(), ..expr })
            }
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
