//! Which part of the rows a condition leaves, guessed. Where statistics say nothing, the parts are those that database
//! systems have used since System R (Selinger et al., "Access Path Selection in a Relational Database Management System",
//! SIGMOD 1979).

use super::statistics::{ColumnFacts, Facts, number};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A column equals a value, of which nothing is known.
const EQUAL: f64 = 0.1;
/// A column is less or greater than something.
const ONE_SIDED: f64 = 1.0 / 3.0;
/// A text has a pattern.
const LIKE: f64 = 0.1;
/// Anything else.
const UNKNOWN: f64 = 0.25;

/// The facts of the rows for which a condition holds.
pub(super) fn filtered(mut facts: Facts, predicate: &Arc<dyn PhysicalExpr>) -> Facts {
    let mut share = 1.0;
    let mut bounds: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for conjunct in split_conjunction(predicate) {
        match bound(conjunct, &facts) {
            // Both ends of a range tell more together.
            Some((column, least, greatest)) => {
                let ends = bounds.entry(column).or_insert((f64::NEG_INFINITY, f64::INFINITY));
                *ends = (ends.0.max(least), ends.1.min(greatest));
            }
            None => {
                share *= selectivity(conjunct, &facts);
                if let Some((column, values)) = pinned(conjunct)
                    && let Some(known) = facts.columns.get_mut(column)
                {
                    *known = known.pinned(values);
                }
            }
        }
    }
    for (column, (least, greatest)) in bounds {
        let (within, part) = facts.columns[column].within(least, greatest);
        share *= part * (1.0 - within.nulls.unwrap_or(0.0));
        facts.columns[column] = ColumnFacts { nulls: Some(0.0), ..within };
    }
    facts.rows = (facts.rows * share.clamp(0.0, 1.0)).max(1.0);
    facts
}

/// The range of a column's values that a condition leaves, if it compares a column whose range is known with a number.
fn bound(conjunct: &Arc<dyn PhysicalExpr>, facts: &Facts) -> Option<(usize, f64, f64)> {
    let binary = conjunct.downcast_ref::<BinaryExpr>()?;
    let (column, op, value) = match (binary.left().downcast_ref(), literal(binary.right())) {
        (Some(column), Some(value)) => (column, *binary.op(), value),
        _ => {
            let column: &Column = binary.right().downcast_ref()?;
            (column, binary.op().swap()?, literal(binary.left())?)
        }
    };
    let known = facts.columns.get(column.index())?;
    known.range?;
    let value = number(value)?;
    let (least, greatest) = match op {
        Operator::Eq if known.step > 0.0 => (value, value),
        Operator::Lt => (f64::NEG_INFINITY, value - known.step),
        Operator::LtEq => (f64::NEG_INFINITY, value),
        Operator::Gt => (value + known.step, f64::INFINITY),
        Operator::GtEq => (value, f64::INFINITY),
        _ => return None,
    };
    Some((column.index(), least, greatest))
}

/// The column of which a condition leaves so many values.
fn pinned(conjunct: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    if let Some(list) = conjunct.downcast_ref::<InListExpr>() {
        let column: &Column = list.expr().downcast_ref()?;
        return (!list.negated()).then_some((column.index(), list.list().len()));
    }
    let binary = conjunct.downcast_ref::<BinaryExpr>()?;
    match binary.op() {
        Operator::Eq => {}
        // As short lists are.
        Operator::Or => {
            let ((column, one), (same, other)) = (pinned(binary.left())?, pinned(binary.right())?);
            return (column == same).then_some((column, one + other));
        }
        Operator::And => return pinned(binary.left()).or_else(|| pinned(binary.right())),
        _ => return None,
    }
    let (column, other) = match binary.left().downcast_ref::<Column>() {
        Some(column) => (column, binary.right()),
        None => (binary.right().downcast_ref()?, binary.left()),
    };
    literal(other).map(|_| (column.index(), 1))
}

fn literal(expression: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expression.downcast_ref::<Literal>().map(Literal::value)
}

/// The part of rows for which a condition holds.
pub(super) fn selectivity(condition: &Arc<dyn PhysicalExpr>, facts: &Facts) -> f64 {
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        return of_binary(binary, facts);
    }
    if let Some(list) = condition.downcast_ref::<InListExpr>() {
        let any = (equal(list.expr(), facts) * list.list().len() as f64).min(0.5);
        return if list.negated() { 1.0 - any } else { any };
    }
    if let Some(like) = condition.downcast_ref::<LikeExpr>() {
        return if like.negated() { 1.0 - LIKE } else { LIKE };
    }
    if let Some(not) = condition.downcast_ref::<NotExpr>() {
        return 1.0 - selectivity(not.arg(), facts);
    }
    if let Some(is_null) = condition.downcast_ref::<IsNullExpr>() {
        return nulls(is_null.arg(), facts);
    }
    if let Some(is_not_null) = condition.downcast_ref::<IsNotNullExpr>() {
        return 1.0 - nulls(is_not_null.arg(), facts);
    }
    match literal(condition) {
        Some(ScalarValue::Boolean(Some(true))) => 1.0,
        Some(_) => 0.0,
        None => UNKNOWN,
    }
}

fn of_binary(binary: &BinaryExpr, facts: &Facts) -> f64 {
    let (left, right) = (binary.left(), binary.right());
    match binary.op() {
        Operator::And => selectivity(left, facts) * selectivity(right, facts),
        Operator::Or => {
            let (one, other) = (selectivity(left, facts), selectivity(right, facts));
            one + other - one * other
        }
        Operator::Eq | Operator::IsNotDistinctFrom => equal(left, facts).min(equal(right, facts)),
        Operator::NotEq | Operator::IsDistinctFrom => 1.0 - equal(left, facts).min(equal(right, facts)),
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => ONE_SIDED,
        _ => UNKNOWN,
    }
}

/// The part of rows in which an expression has one value.
fn equal(expression: &Arc<dyn PhysicalExpr>, facts: &Facts) -> f64 {
    match facts.column(plain(expression)).distinct {
        Some(distinct) => 1.0 / distinct.max(1.0),
        None if literal(expression).is_some() => 1.0,
        None => EQUAL,
    }
}

fn nulls(expression: &Arc<dyn PhysicalExpr>, facts: &Facts) -> f64 {
    facts.column(plain(expression)).nulls.unwrap_or(EQUAL)
}

/// The expression below a change of type.
fn plain(expression: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    expression.downcast_ref::<CastExpr>().map_or(expression, CastExpr::expr)
}
