//! `range` and `generate_series` of dates and timestamps, in microseconds, so that years up to 9999 are possible. Those of numbers are
//! DataFusion's.

use super::list_arguments::{arrays, bounded, list_of};
use crate::date::add_in_zone;
use crate::scalar_udf::{no_overload, text_type};
use crate::values::offset_at;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, TimestampMicrosecondArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

const DAY: i64 = 86_400_000_000;
const STEP: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Series {
    /// That of numbers.
    of: Arc<ScalarUDF>,
    /// Whether the last value is one of the series. PostgreSQL's is, whose series of dates has moments with time zone;
    /// DuckDB's without it has moments without one.
    with_end: bool,
    signature: Signature,
}

pub(super) fn series(of: Arc<ScalarUDF>, with_end: bool) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Series { of, with_end, signature }))
}

fn is_date(of: &DataType) -> bool {
    matches!(of, DataType::Date32 | DataType::Date64)
}

fn is_moment(of: &DataType) -> bool {
    is_date(of) || matches!(of, DataType::Timestamp(..))
}

/// A text beside a number is a literal without a type, as in `generate_series(1, '3')`.
fn are_numbers(given: &[DataType]) -> bool {
    let has_number = given.iter().any(DataType::is_integer);
    given.iter().all(|of| of.is_integer() || of.is_null() || (has_number && text_type(of)))
}

/// A bound beside another one: what says nothing of a date or moment is what the other one is.
fn bound(of: &DataType, other: &DataType) -> Option<DataType> {
    Some(match (of, other) {
        (DataType::Timestamp(_, zone), _) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        (of, _) if is_date(of) => DataType::Date32,
        (of, DataType::Timestamp(_, zone)) if text_type(of) || of.is_null() => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        (of, _) if text_type(of) || of.is_null() => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

/// The zone that the moments between two bounds are labelled with.
fn label(start: &DataType, stop: &DataType, with_end: bool) -> Option<Arc<str>> {
    match (start, stop) {
        (DataType::Timestamp(_, Some(zone)), _) | (_, DataType::Timestamp(_, Some(zone))) => {
            Some(Arc::clone(zone))
        }
        (start, stop) if with_end && is_date(start) && is_date(stop) => Some(Arc::from("UTC")),
        _ => None,
    }
}

impl ScalarUDFImpl for Series {
    bowshot_api::delegate! { of: fn name(&self) -> &str; }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [start, stop, step]
                if is_moment(start) || is_moment(stop) || matches!(step, DataType::Interval(_)) =>
            {
                match (bound(start, stop), bound(stop, start)) {
                    (Some(start), Some(stop)) => Ok(vec![start, stop, STEP]),
                    _ => no_overload(self.name(), given),
                }
            }
            [_, rest @ ..] if rest.len() < 3 && are_numbers(given) => Ok(vec![DataType::Int64; given.len()]),
            _ => no_overload(self.name(), given),
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        match given {
            [start, stop, step] if *step == STEP => {
                let zone = label(start, stop, self.with_end);
                Ok(list_of(DataType::Timestamp(TimeUnit::Microsecond, zone)))
            }
            _ => self.of.return_type(given),
        }
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = arrays(&given)?;
        let [start, stop, step] = arrays.as_slice() else { return self.of.invoke_with_args(given) };
        if *step.data_type() != STEP {
            return self.of.invoke_with_args(given);
        }
        let label = label(start.data_type(), stop.data_type(), self.with_end);
        // A date is the beginning of a day in the zone of the session.
        let clock = match (&label, given.config_options.execution.time_zone.as_deref()) {
            (Some(_), Some(session)) if is_date(start.data_type()) && is_date(stop.data_type()) => {
                Some(session.parse::<Tz>()?)
            }
            (Some(label), _) => Some(label.parse::<Tz>()?),
            (None, _) => None,
        };
        let bounds = (moments(start, clock)?, moments(stop, clock)?);
        self.lists(&bounds, step, (label, clock))
    }
}

impl Series {
    fn lists(
        &self,
        (starts, stops): &(Vec<Option<i64>>, Vec<Option<i64>>),
        steps: &ArrayRef,
        (label, clock): (Option<Arc<str>>, Option<Tz>),
    ) -> Result<ColumnarValue> {
        let Some(steps) = steps.as_primitive_opt::<IntervalMonthDayNanoType>() else {
            return internal_err!("the step of a series is not an interval");
        };
        let (mut values, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for ((start, stop), step) in starts.iter().zip(stops).zip(steps) {
            let before = values.len();
            let known = match (start, stop, step) {
                (Some(start), Some(stop), Some(step)) => {
                    self.between((*start, *stop), (step, clock), &mut values)?;
                    true
                }
                _ => false,
            };
            valid.push(known);
            lengths.push(values.len() - before);
        }
        let values = TimestampMicrosecondArray::from(values).with_timezone_opt(label);
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let lists = ListArray::try_new(field, offsets, Arc::new(values), Some(NullBuffer::from(valid)))?;
        Ok(ColumnarValue::Array(Arc::new(lists)))
    }

    fn between(
        &self,
        (start, stop): (i64, i64),
        (step, clock): (IntervalMonthDayNano, Option<Tz>),
        values: &mut Vec<i64>,
    ) -> Result<()> {
        let days = i128::from(step.months) * 30 + i128::from(step.days);
        let length = days * i128::from(DAY) + i128::from(step.nanoseconds / 1000);
        if length == 0 {
            return exec_err!("step size cannot equal zero");
        }
        let mut moment = start;
        while (length > 0 && moment < stop)
            || (length < 0 && moment > stop)
            || (self.with_end && moment == stop)
        {
            values.push(moment);
            bounded(self.name(), values.len(), size_of::<i64>())?;
            let next = add_in_zone(moment, step, clock)?;
            if (next > moment) != (length > 0) {
                return exec_err!("the steps of a series go in one direction");
            }
            moment = next;
        }
        Ok(())
    }
}

/// Microseconds since 1970 in UTC, of dates and clocks in a zone if there is one.
fn moments(bounds: &ArrayRef, clock: Option<Tz>) -> Result<Vec<Option<i64>>> {
    let utc = |local: i64| clock.map_or(local, |zone| local.saturating_sub(offset_at(zone, local)));
    if is_date(bounds.data_type()) {
        let days = cast(bounds, &DataType::Date32)?;
        let days = days.as_primitive::<Date32Type>();
        return Ok(days.iter().map(|day| day.map(|day| utc(i64::from(day).saturating_mul(DAY)))).collect());
    }
    let Some(micros) = bounds.as_primitive_opt::<TimestampMicrosecondType>() else {
        return Err(exec_datafusion_err!("a series is of dates or moments, not of {}", bounds.data_type()));
    };
    let zoned = micros.timezone().is_some();
    Ok(micros.iter().map(|micros| micros.map(|micros| if zoned { micros } else { utc(micros) })).collect())
}
