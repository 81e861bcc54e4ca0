//! Intervals from numbers, and intervals with balanced units.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, interval as span_of};
use super::fields::interval_micros;
use crate::define::{Function, functions};
use crate::values::Kind::{
    self, Date as Day, Float as Number, Int as Whole, Interval as Span, Stamp as At, Text,
};
use crate::values::{Arguments, Date, Float, Int, Int64, Interval, Lapse, Moment, fill, get_or, map1};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::{Result, exec_err};

fn months(arguments: &Arguments, each: i64) -> Result<ArrayRef> {
    map1::<Int, Lapse, Result<IntervalMonthDayNano>>(arguments, |count| {
        span_of(count.saturating_mul(each), 0, 0)
    })
}

fn days(arguments: &Arguments, each: i64) -> Result<ArrayRef> {
    map1::<Int, Lapse, Result<IntervalMonthDayNano>>(arguments, |count| {
        span_of(0, count.saturating_mul(each), 0)
    })
}

fn micros(arguments: &Arguments, each: i64) -> Result<ArrayRef> {
    map1::<Float, Lapse, Result<IntervalMonthDayNano>>(arguments, |count| {
        span_of(0, 0, rounded(count * each as f64)?)
    })
}

fn rounded(micros: f64) -> Result<i64> {
    if !micros.is_finite() || micros.abs() >= 9.2e15 {
        return exec_err!("the interval is out of range");
    }
    Ok(micros.round() as i64)
}

/// DuckDB's interval of days, or MySQL's number of a date.
fn to_days(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(0)? {
        DataType::Int64 => days(arguments, 1),
        // 1970-01-01 is day 719528.
        _ => map1::<Date, Int64, _>(arguments, |day: i32| i64::from(day) + 719_528),
    }
}

fn to_seconds(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(0)? {
        DataType::Float64 => micros(arguments, SECOND),
        _ => map1::<Moment, Int64, _>(arguments, |micros: i64| 719_528 * 86_400 + micros.div_euclid(SECOND)),
    }
}

fn interval_or_number(given: &[DataType]) -> Result<DataType> {
    Ok(match given.first() {
        Some(DataType::Int64 | DataType::Float64) => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Int64,
    })
}

/// Years, months, weeks, days, hours, minutes, seconds; what is left out is 0.
fn make_interval(arguments: &Arguments) -> Result<ArrayRef> {
    let whole = (0..arguments.len().min(6))
        .map(|position| arguments.read::<Int>(position))
        .collect::<Result<Vec<_>>>()?;
    let seconds = arguments.read_if_given::<Float>(6)?;
    fill::<Lapse, Result<Option<IntervalMonthDayNano>>>(arguments, |row| {
        let mut counts = [0_i64; 6];
        for (count, reader) in counts.iter_mut().zip(&whole) {
            match reader.get(row)? {
                Some(given) => *count = given,
                None => return Ok(None),
            }
        }
        let [years, months, weeks, days, hours, minutes] = counts;
        let Some(seconds) = get_or(seconds.as_ref(), row, 0.0)? else { return Ok(None) };
        let clock = hours.saturating_mul(HOUR).saturating_add(minutes.saturating_mul(MINUTE));
        let months = years.saturating_mul(12).saturating_add(months);
        let days = weeks.saturating_mul(7).saturating_add(days);
        span_of(months, days, clock.saturating_add(rounded(seconds * SECOND as f64)?)).map(Some)
    })
}

/// Which units `justify` balances.
#[derive(Clone, Copy)]
enum Balance {
    Days,
    Hours,
    All,
}

/// PostgreSQL's `justify_*`: 24 hours are a day, 30 days a month, and all parts have one sign.
fn justify(arguments: &Arguments, balance: Balance) -> Result<ArrayRef> {
    map1::<Interval, Lapse, Result<IntervalMonthDayNano>>(arguments, |span| {
        let (mut months, mut days, mut micros) =
            (i64::from(span.months), i64::from(span.days), span.nanoseconds / 1000);
        if !matches!(balance, Balance::Days) {
            days += micros / DAY;
            micros %= DAY;
        }
        if !matches!(balance, Balance::Hours) {
            months += days / 30;
            days %= 30;
        }
        if !matches!(balance, Balance::Hours) {
            let below = |micros: i64| matches!(balance, Balance::All) && days == 0 && micros != 0;
            if months > 0 && (days < 0 || (below(micros) && micros < 0)) {
                days += 30;
                months -= 1;
            } else if months < 0 && (days > 0 || (below(micros) && micros > 0)) {
                days -= 30;
                months += 1;
            }
        }
        if !matches!(balance, Balance::Days) {
            if days > 0 && micros < 0 {
                micros += DAY;
                days -= 1;
            } else if days < 0 && micros > 0 {
                micros -= DAY;
                days += 1;
            }
        }
        span_of(months, days, micros)
    })
}

const ONE: &[&[Kind]] = &[&[Whole]];
const ONE_NUMBER: &[&[Kind]] = &[&[Number]];
const SPAN: &[&[Kind]] = &[&[Span]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "to_millennia": ONE, Interval, |a| months(a, 12_000) => "an interval of millennia";
    "to_centuries": ONE, Interval, |a| months(a, 1200) => "an interval of centuries";
    "to_decades": ONE, Interval, |a| months(a, 120) => "an interval of decades";
    "to_years": ONE, Interval, |a| months(a, 12) => "an interval of years";
    "to_quarters": ONE, Interval, |a| months(a, 3) => "an interval of quarters";
    "to_months": ONE, Interval, |a| months(a, 1) => "an interval of months";
    "to_weeks": ONE, Interval, |a| days(a, 7) => "an interval of weeks";
    "to_days": &[&[Whole], &[Day], &[Text]], By(interval_or_number), to_days =>
        "an interval of days; of a date, MySQL's number of the day";
    "to_hours": ONE_NUMBER, Interval, |a| micros(a, HOUR) => "an interval of hours";
    "to_minutes": ONE_NUMBER, Interval, |a| micros(a, MINUTE) => "an interval of minutes";
    "to_seconds": &[&[Number], &[At], &[Text]], By(interval_or_number), to_seconds =>
        "an interval of seconds; of a timestamp, MySQL's number of the second";
    "to_milliseconds": ONE_NUMBER, Interval, |a| micros(a, 1000) => "an interval of milliseconds";
    "to_microseconds": ONE_NUMBER, Interval, |a| micros(a, 1) => "an interval of microseconds";
    "make_interval": &[
        &[],
        &[Whole],
        &[Whole, Whole],
        &[Whole, Whole, Whole],
        &[Whole, Whole, Whole, Whole],
        &[Whole, Whole, Whole, Whole, Whole],
        &[Whole, Whole, Whole, Whole, Whole, Whole],
        &[Whole, Whole, Whole, Whole, Whole, Whole, Number],
    ], Interval,
        make_interval =>
        "an interval of years, months, weeks, days, hours, minutes and seconds",
        parameters(&["years", "months", "weeks", "days", "hours", "mins", "secs"]);
    "justify_days": SPAN, Interval, |a| justify(a, Balance::Days) => "30 days become a month";
    "justify_hours": SPAN, Interval, |a| justify(a, Balance::Hours) => "24 hours become a day";
    "justify_interval": SPAN, Interval, |a| justify(a, Balance::All) => "both, with one sign for all parts";
    "interval_seconds": SPAN, Float, |a| {
        map1::<Interval, crate::values::Real, _>(a, |span: IntervalMonthDayNano| {
            interval_micros(span) as f64 / SECOND as f64
        })
    } => "the seconds of an interval";
};
