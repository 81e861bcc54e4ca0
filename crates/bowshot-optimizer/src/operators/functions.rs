//! The functions that operators on intervals become.

use bowshot_api::Error;
use bowshot_functions::{PlanFunction, interval_length, plan_function, scaled_interval};
use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ScalarUDF, Signature, Volatility};
use std::sync::{Arc, LazyLock};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Nanoseconds, of which the longest interval has fewer than that type has digits.
const LENGTH: DataType = DataType::Decimal128(38, 0);
const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;

static ALL: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [(Kind::OfDuration, 1), (Kind::Length, 1), (Kind::Times, 2), (Kind::Divided, 2)].map(
        |(kind, arguments)| Arc::new(plan_function(kind, Signature::any(arguments, Volatility::Immutable))),
    )
});

/// The functions, for those that look them up by name.
pub(crate) fn all() -> &'static [Arc<ScalarUDF>] {
    ALL.as_slice()
}

fn call(kind: Kind, args: Vec<Expr>) -> Expr {
    let [duration, length, times, divided] = &*ALL;
    let function = match kind {
        Kind::OfDuration => duration,
        Kind::Length => length,
        Kind::Times => times,
        Kind::Divided => divided,
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
}

/// A duration as days and time.
pub(super) fn interval_of(duration: Expr) -> Expr {
    call(Kind::OfDuration, vec![duration])
}

/// The duration that [`interval_of`] was given.
pub(super) fn duration_within(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == Kind::OfDuration.name() => {
            call.args.first().cloned()
        }
        _ => None,
    }
}

pub(super) fn length_of(interval: Expr) -> Expr {
    call(Kind::Length, vec![interval])
}

pub(super) fn times(interval: Expr, number: Expr) -> Expr {
    call(Kind::Times, vec![interval, number])
}

pub(super) fn divided(interval: Expr, number: Expr) -> Expr {
    call(Kind::Divided, vec![interval, number])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    OfDuration,
    Length,
    Times,
    Divided,
}

impl PlanFunction for Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::OfDuration => "interval_of_duration",
            Self::Length => "interval_length",
            Self::Times => "interval_multiply",
            Self::Divided => "interval_divide",
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(if *self == Self::Length { LENGTH } else { INTERVAL })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        match (self, arguments) {
            (Self::OfDuration, [duration]) => of_duration(duration),
            (Self::Length, [interval]) => length(interval),
            (Self::Times, [interval, number]) => scaled(interval, number, |interval, number| {
                Ok(scaled_interval(interval, |part| part * number))
            }),
            (Self::Divided, [interval, number]) => scaled(interval, number, |interval, number| {
                if number == 0.0 {
                    return Err(invalid("division by zero"));
                }
                Ok(scaled_interval(interval, |part| part / number))
            }),
            _ => internal_err!("`{}` has other arguments", self.name()),
        }
    }
}

fn invalid(message: &'static str) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(message)))
}

fn of_duration(duration: &ArrayRef) -> Result<ArrayRef> {
    let duration = cast(duration, &DataType::Duration(TimeUnit::Microsecond))?;
    let intervals: IntervalMonthDayNanoArray =
        duration.as_primitive::<DurationMicrosecondType>().try_unary(|microseconds| {
            let days = i32::try_from(microseconds / MICROSECONDS_OF_DAY);
            let days = days.map_err(|_| invalid("interval out of range"))?;
            Ok::<_, DataFusionError>(IntervalMonthDayNano::new(
                0,
                days,
                (microseconds % MICROSECONDS_OF_DAY) * 1000,
            ))
        })?;
    Ok(Arc::new(intervals))
}

fn length(intervals: &ArrayRef) -> Result<ArrayRef> {
    let intervals = cast(intervals, &INTERVAL)?;
    let lengths: Decimal128Array =
        intervals.as_primitive::<IntervalMonthDayNanoType>().unary(interval_length);
    Ok(Arc::new(lengths.with_data_type(LENGTH)))
}

/// An interval and a number as an interval; `None` beyond the longest one.
type Scale = fn(IntervalMonthDayNano, f64) -> Result<Option<IntervalMonthDayNano>>;

fn scaled(intervals: &ArrayRef, numbers: &ArrayRef, scale: Scale) -> Result<ArrayRef> {
    let (intervals, numbers) = (cast(intervals, &INTERVAL)?, cast(numbers, &DataType::Float64)?);
    let (intervals, numbers) =
        (intervals.as_primitive::<IntervalMonthDayNanoType>(), numbers.as_primitive::<Float64Type>());
    let products = intervals.iter().zip(numbers).map(|pair| match pair {
        (Some(interval), Some(number)) => {
            scale(interval, number)?.map(Some).ok_or_else(|| invalid("interval out of range"))
        }
        _ => Ok(None),
    });
    Ok(Arc::new(products.collect::<Result<IntervalMonthDayNanoArray>>()?))
}
