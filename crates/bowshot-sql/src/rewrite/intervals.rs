//! Intervals that are written out become texts whose parts are all whole: the planner reads no other forms of PostgreSQL's.

use crate::intervals::{self, Fields, Unit, read_interval};
use crate::literal::quoted_text;
use crate::template;
use bowshot_api::{Error, Reason, Result};
use sqlparser::ast::{CastKind, DataType, Expr, Interval, UnaryOperator, Value};

/// `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL 3 DAY`, and `INTERVAL (n) DAY` with something else than a literal.
pub(super) fn interval(interval: &Interval) -> Result<Option<Expr>> {
    match (written(&interval.value), fields(interval)) {
        (Some((text, negative)), Some(fields)) => literal(&text, fields, negative).map(Some),
        (None, Some(Fields { first: Some(_), last: None, .. })) => times(interval).map(Some),
        _ => Ok(None),
    }
}

/// `- INTERVAL '1 day 2 hours'`: the sign is that of all parts.
pub(super) fn negative(op: UnaryOperator, expr: &Expr) -> Result<Option<Expr>> {
    match (op, expr) {
        (UnaryOperator::Minus, Expr::Nested(inner)) => negative(op, inner),
        (UnaryOperator::Minus, Expr::Interval(interval)) => match written(&interval.value) {
            Some((text, sign)) => literal(&text, Fields::default(), !sign).map(Some),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// `'1 day'::interval`.
pub(super) fn cast(kind: &CastKind, expr: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    let DataType::Interval { fields, precision } = data_type else { return Ok(None) };
    let (Some(text), CastKind::Cast | CastKind::DoubleColon) = (quoted_text(expr), kind) else {
        return Ok(None);
    };
    let named = fields.as_ref().map_or_else(String::new, ToString::to_string).to_ascii_lowercase();
    let mut units = named.split(" to ").map(Unit::named);
    let fields = Fields { first: units.next().flatten(), last: units.next().flatten(), digits: *precision };
    literal(text, fields, false).map(Some)
}

fn literal(text: &str, fields: Fields, negative: bool) -> Result<Expr> {
    let read = intervals::read(text, fields)?;
    let read = if negative { read.negated() } else { Some(read) };
    let read =
        read.ok_or_else(|| Error::invalid("interval out of range").with_reason(Reason::DatetimeOutOfRange))?;
    Ok(Expr::Interval(Interval {
        value: Box::new(Expr::value(Value::SingleQuotedString(read.text()))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

/// The text of a literal, and whether it has a minus before it.
fn written(expr: &Expr) -> Option<(String, bool)> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some((text.clone(), false)),
            Value::Number(text, _) => Some((text.clone(), false)),
            _ => None,
        },
        Expr::Nested(inner) => written(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            written(expr).map(|(text, negative)| (text, !negative))
        }
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => written(expr),
        _ => None,
    }
}

/// The units behind a literal; `None` for those that are none of an interval's.
fn fields(interval: &Interval) -> Option<Fields> {
    let unit = |field: &Option<sqlparser::ast::DateTimeField>| match field {
        None => Some(None),
        Some(field) => Unit::named(&field.to_string().to_ascii_lowercase()).map(Some),
    };
    let (first, last) = (unit(&interval.leading_field)?, unit(&interval.last_field)?);
    // `SECOND(3)` is read as if it were a precision of what stands before the point.
    let of_seconds = interval.leading_precision.filter(|_| first == Some(Unit::Second));
    Some(Fields { first, last, digits: interval.fractional_seconds_precision.or(of_seconds) })
}

/// `n * INTERVAL '1 day'`.
fn times(interval: &Interval) -> Result<Expr> {
    let Some(unit) = &interval.leading_field else {
        return Err(Error::internal("an interval without a unit is counted"));
    };
    let one = read_interval(&format!("1 {unit}"))?.text();
    let text = format!("n * INTERVAL '{one}'");
    let expr = template::expression(&text, &[("n", &interval.value)])?;
    Ok(Expr::Nested(Box::new(expr)))
}
