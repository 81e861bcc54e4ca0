//! `timestamptz ± interval`: months and days follow the clock of the session's zone, hours are absolute time, as in PostgreSQL.
//! Arrow's own uses the zone of the column, and fails where the clock changes. What is subtracted from an instant, or the reverse,
//! is one of the session's zone.

use super::casts::Columns;
use super::zone::{as_instant, is_utc};
use bowshot_api::{Error, Reason};
use bowshot_functions::{PlanFunction, add_in_zone, plan_function};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Operator, ScalarUDF, Signature, Volatility,
};
use std::sync::Arc;

/// Sums and differences with an instant in them, on the clock of the session's zone.
pub(super) fn arithmetic(expr: Expr, columns: &Columns, zone: &Arc<str>) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) = expr
    else {
        return Transformed::no(expr);
    };
    // Long sums lean to the left, where it takes long to tell a type.
    let of_right = right.get_type(columns.all());
    if !matches!(
        of_right,
        Ok(DataType::Interval(_) | DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
    ) {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right)));
    }
    match (left.get_type(columns.all()), of_right) {
        (Ok(of @ DataType::Timestamp(_, Some(_))), Ok(DataType::Interval(_))) => {
            moved((left, &of), (op, right), zone)
        }
        (Ok(DataType::Interval(_)), Ok(of @ DataType::Timestamp(_, Some(_)))) if op == Operator::Plus => {
            moved((right, &of), (op, left), zone)
        }
        (Ok(DataType::Timestamp(unit, Some(one))), Ok(DataType::Timestamp(other_unit, Some(other))))
            if one != other =>
        {
            // How far they are apart is the same in any zone, which has to be one.
            let (left, right) = (labelled(*left, unit, zone), labelled(*right, other_unit, zone));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        (Ok(instant @ DataType::Timestamp(_, Some(_))), Ok(other))
            if op == Operator::Minus && has_no_zone(&other) =>
        {
            let right = Box::new(as_instant(*right, (&other, &instant), zone));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
        }
        (Ok(other), Ok(instant @ DataType::Timestamp(_, Some(_))))
            if op == Operator::Minus && has_no_zone(&other) =>
        {
            let left = Box::new(as_instant(*left, (&other, &instant), zone));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right)))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
    }
}

fn has_no_zone(time: &DataType) -> bool {
    matches!(time, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64)
}

fn labelled(instant: Expr, unit: TimeUnit, zone: &Arc<str>) -> Expr {
    let shown = DataType::Timestamp(unit, Some(Arc::clone(zone)));
    Expr::Cast(Cast::new(Box::new(instant), shown))
}

fn moved(
    (instant, of): (Box<Expr>, &DataType),
    (op, interval): (Operator, Box<Expr>),
    zone: &Arc<str>,
) -> Transformed<Expr> {
    let DataType::Timestamp(unit, Some(there)) = of else {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr::new(instant, op, interval)));
    };
    let same = there == zone || (is_utc(there) && is_utc(zone));
    if (same && is_utc(zone)) || is_time_alone(&interval) {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr::new(instant, op, interval)));
    }
    let instant = if same { *instant } else { labelled(*instant, *unit, zone) };
    // In UTC no clock is set, and the optimiser knows the operator.
    if is_utc(zone) || *unit != TimeUnit::Microsecond {
        let sum = Expr::BinaryExpr(BinaryExpr::new(Box::new(instant), op, interval));
        return if same { Transformed::no(sum) } else { Transformed::yes(sum) };
    }
    let function = on_clock(op == Operator::Minus);
    Transformed::yes(function.call(vec![instant, *interval]))
}

/// An interval of hours and shorter units, which is as long everywhere.
fn is_time_alone(interval: &Expr) -> bool {
    matches!(
        interval,
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) if value.months == 0 && value.days == 0
    )
}

/// The function of an instant, whose zone is that of the clock, and an interval.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnTheClock {
    back: bool,
}

fn on_clock(back: bool) -> ScalarUDF {
    plan_function(OnTheClock { back }, Signature::any(2, Volatility::Immutable))
}

/// Forth and back, for those that look them up by name.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [false, true].map(on_clock)
}

impl PlanFunction for OnTheClock {
    fn name(&self) -> &'static str {
        if self.back { "__bowshot_subtract_on_clock" } else { "__bowshot_add_on_clock" }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [instant, _] => Ok(instant.clone()),
            _ => plan_err!("an instant is moved by one interval"),
        }
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        let [instants, intervals] = arguments else {
            return internal_err!("an instant is moved by one interval");
        };
        on_the_clock(instants, intervals, self.back)
    }
}

fn on_the_clock(instants: &ArrayRef, intervals: &ArrayRef, back: bool) -> Result<ArrayRef> {
    let DataType::Timestamp(TimeUnit::Microsecond, Some(label)) = instants.data_type() else {
        return internal_err!("an instant has a zone");
    };
    let zone: Tz = label.parse()?;
    let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let instants = instants.as_primitive::<TimestampMicrosecondType>();
    let made = instants.iter().zip(intervals).map(|pair| match pair {
        (Some(instant), Some(interval)) => {
            let interval = if back { negated(interval)? } else { interval };
            add_in_zone(instant, interval, Some(zone)).map(Some)
        }
        _ => Ok(None),
    });
    let made = made.collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(Arc::new(made.with_timezone(Arc::clone(label))))
}

fn negated(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let negate = || {
        let (months, days) = (interval.months.checked_neg()?, interval.days.checked_neg()?);
        Some(IntervalMonthDayNano::new(months, days, interval.nanoseconds.checked_neg()?))
    };
    negate().ok_or_else(|| {
        DataFusionError::External(Box::new(
            Error::invalid("interval out of range").with_reason(Reason::DatetimeOutOfRange),
        ))
    })
}
