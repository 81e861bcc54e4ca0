//! Differences of dates and timestamps: boundaries crossed, whole units, PostgreSQL's `age`.

use super::arithmetic::Unit;
use super::calendar::{
    DAY, HOUR, MINUTE, SECOND, add_months_to, clock_text, date_of, days_in_month, days_of,
    interval as span_of, join, out_of_range, split,
};
use super::fields::Field;
use crate::define::{Function, functions};
use crate::values::Kind::{self, Date as Day, Stamp as At, Text as Words, Time as Clock};
use crate::values::{
    Arguments, Date, Int64, Lapse, Memo, Real, Stamp, Str, Text, Time, fill, get_or, map1, map2,
};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use bowshot_api::{Error, Reason};
use chrono::{Datelike, NaiveDateTime, Timelike, Utc};
use datafusion::common::{DataFusionError, Result, exec_err};

pub(super) fn unit_named(name: &str) -> Result<Unit> {
    let field = field_named(name)?;
    let unit = |months, days, micros| Ok(Unit { months, days, micros });
    match field {
        Field::Millennium => unit(12_000, 0, 0),
        Field::Century => unit(1200, 0, 0),
        Field::Decade => unit(120, 0, 0),
        Field::Year | Field::IsoYear => unit(12, 0, 0),
        Field::Quarter => unit(3, 0, 0),
        Field::Month => unit(1, 0, 0),
        Field::Week | Field::YearWeek => unit(0, 7, 0),
        Field::Day
        | Field::DayOfYear
        | Field::DayOfWeek
        | Field::IsoDayOfWeek
        | Field::Weekday
        | Field::Julian => unit(0, 1, 0),
        Field::Hour => unit(0, 0, HOUR),
        Field::Minute => unit(0, 0, MINUTE),
        Field::Second => unit(0, 0, SECOND),
        Field::Millisecond => unit(0, 0, 1000),
        Field::Microsecond => unit(0, 0, 1),
        Field::Era | Field::Nanosecond => exec_err!("`{name}` is not a unit that can be added"),
    }
}

pub(super) fn field_named(name: &str) -> Result<Field> {
    Field::named(name)
        .ok_or_else(|| invalid_value(format!("`{name}` is not a unit of time, such as 'day' or 'month'")))
}

/// The error of an argument that is none of the values that a function takes.
pub(super) fn invalid_value(message: String) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(message).with_reason(Reason::InvalidValue)))
}

pub(crate) fn first_day_of(day: i32, unit: &str) -> Result<i32> {
    first_day_in(day, field_named(unit)?)
}

/// See [`first_day_of`].
pub(super) fn first_day_in(day: i32, unit: Field) -> Result<i32> {
    let date = date_of(day)?;
    let (year, month) = (date.year(), date.month());
    let (year, month) = match unit {
        Field::Week | Field::IsoYear | Field::YearWeek => {
            return Ok(day - i32::try_from(date.weekday().num_days_from_monday()).unwrap_or(0));
        }
        Field::Month => (year, month),
        Field::Quarter => (year, (month - 1) / 3 * 3 + 1),
        Field::Year => (year, 1),
        Field::Decade => (year.div_euclid(10) * 10, 1),
        Field::Century => ((year - 1).div_euclid(100) * 100 + 1, 1),
        Field::Millennium => ((year - 1).div_euclid(1000) * 1000 + 1, 1),
        _ => return Ok(day),
    };
    days_of(chrono::NaiveDate::from_ymd_opt(year, month, 1).ok_or_else(out_of_range)?)
}

/// Boundaries of the unit between two points in time.
fn boundaries(field: Field, from: i64, to: i64) -> Result<i64> {
    let unit = |length: i64| to.div_euclid(length) - from.div_euclid(length);
    let months = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    Ok(match field {
        Field::Millennium | Field::Century | Field::Decade | Field::Year | Field::IsoYear => {
            field.of_stamp(split(to)?) - field.of_stamp(split(from)?)
        }
        Field::Quarter => months(split(to)?).div_euclid(3) - months(split(from)?).div_euclid(3),
        Field::Month => months(split(to)?) - months(split(from)?),
        // As DuckDB counts them: seven days each, whatever day they begin on.
        Field::Week | Field::YearWeek => unit(DAY) / 7,
        Field::Hour => unit(HOUR),
        Field::Minute => unit(MINUTE),
        Field::Second => unit(SECOND),
        Field::Millisecond => unit(1000),
        Field::Microsecond => to - from,
        Field::Nanosecond => (to - from).saturating_mul(1000),
        _ => unit(DAY),
    })
}

/// Whole months from one point in time to another, towards zero.
fn whole_months(from: i64, to: i64) -> Result<i64> {
    if from > to {
        return Ok(-whole_months(to, from)?);
    }
    let (start, end) = (split(from)?, split(to)?);
    let count = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    let months = count(end) - count(start);
    let reached = join(add_months_to(start.date(), months)?.and_time(start.time()));
    Ok(if reached > to { months - 1 } else { months })
}

/// Months whose last day has been reached, towards zero: as MySQL counts them, from the end of a month to that of a shorter
/// one there is none.
fn reached_months(from: i64, to: i64) -> Result<i64> {
    if from > to {
        return Ok(-reached_months(to, from)?);
    }
    let (start, end) = (split(from)?, split(to)?);
    let count = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    let is_short = (end.day(), end.time()) < (start.day(), start.time());
    Ok(count(end) - count(start) - i64::from(is_short))
}

/// Whole units between two points in time.
fn units(field: Field, from: i64, to: i64, whole: fn(i64, i64) -> Result<i64>) -> Result<i64> {
    let months = |length: i64| Ok(whole(from, to)? / length);
    let apart = to - from;
    match field {
        Field::Millennium => months(12_000),
        Field::Century => months(1200),
        Field::Decade => months(120),
        Field::Year | Field::IsoYear => months(12),
        Field::Quarter => months(3),
        Field::Month => months(1),
        Field::Week | Field::YearWeek => Ok(apart / (7 * DAY)),
        Field::Hour => Ok(apart / HOUR),
        Field::Minute => Ok(apart / MINUTE),
        Field::Second => Ok(apart / SECOND),
        Field::Millisecond => Ok(apart / 1000),
        Field::Microsecond => Ok(apart),
        Field::Nanosecond => Ok(apart.saturating_mul(1000)),
        _ => Ok(apart / DAY),
    }
}

fn by_unit(arguments: &Arguments, count: fn(Field, i64, i64) -> Result<i64>) -> Result<ArrayRef> {
    let mut unit = Memo::new();
    let (names, from, to) =
        (arguments.read::<Text>(0)?, arguments.read::<Stamp>(1)?, arguments.read::<Stamp>(2)?);
    fill::<Int64, Result<Option<i64>>>(arguments, |row| {
        match (names.get(row)?, from.get(row)?, to.get(row)?) {
            (Some(name), Some(from), Some(to)) => count(*unit.get(name, field_named)?, from, to).map(Some),
            _ => Ok(None),
        }
    })
}

/// Two arguments: days from the second to the first, as in MySQL and Spark.
fn date_diff(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 2 {
        return map2::<Date, Date, Int64, _>(arguments, |end: i32, start: i32| {
            i64::from(end) - i64::from(start)
        });
    }
    by_unit(arguments, boundaries)
}

/// DuckDB's `date_sub('day', a, b)`, and `date_sub(d, 3)` of MySQL and Spark.
fn date_sub(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 3 {
        by_unit(arguments, |field, from, to| units(field, from, to, whole_months))
    } else {
        super::arithmetic::subtract(arguments)
    }
}

fn date_sub_type(given: &[DataType]) -> Result<DataType> {
    match given {
        [_, _, _] => Ok(DataType::Int64),
        [_, DataType::Int64] => Ok(DataType::Date32),
        _ => super::arithmetic::moved_type(given, 0),
    }
}

/// The fields of a later time minus those of an earlier one, each borrowed from the next.
pub(super) fn age(later: i64, earlier: i64) -> Result<IntervalMonthDayNano> {
    let (one, other) = (split(later)?, split(earlier)?);
    let sign = if later < earlier { -1 } else { 1 };
    let clock = |time: NaiveDateTime| {
        i64::from(time.num_seconds_from_midnight()) * SECOND + super::calendar::micros_of(time)
    };
    let months = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    let mut micros = (clock(one) - clock(other)) * sign;
    let mut days = (i64::from(one.day()) - i64::from(other.day())) * sign;
    let mut month_count = (months(one) - months(other)) * sign;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // The month that days are borrowed from is that of the earlier of the two.
        let lender = if sign < 0 { one } else { other };
        days += i64::from(days_in_month(lender.year(), lender.month()));
        month_count -= 1;
    }
    span_of(month_count * sign, days * sign, micros * sign)
}

fn ages(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 2 {
        return map2::<Stamp, Stamp, Lapse, Result<IntervalMonthDayNano>>(arguments, age);
    }
    let today = Utc::now().timestamp_micros().div_euclid(DAY) * DAY;
    map1::<Stamp, Lapse, Result<IntervalMonthDayNano>>(arguments, |earlier| age(today, earlier))
}

/// Months with a fraction of 31 days, as Spark and Oracle count them.
fn months_between(arguments: &Arguments) -> Result<ArrayRef> {
    let rounds = arguments.read_if_given::<crate::values::Bool>(2)?;
    let (ends, starts) = (arguments.read::<Stamp>(0)?, arguments.read::<Stamp>(1)?);
    fill::<Real, Result<Option<f64>>>(arguments, |row| {
        let (Some(end), Some(start)) = (ends.get(row)?, starts.get(row)?) else { return Ok(None) };
        let round = get_or(rounds.as_ref(), row, true)?.unwrap_or(true);
        let months = months_apart(split(end)?, split(start)?);
        Ok(Some(if round { (months * 1e8).round() / 1e8 } else { months }))
    })
}

fn months_apart(end: NaiveDateTime, start: NaiveDateTime) -> f64 {
    let count = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    let is_last = |time: NaiveDateTime| time.day() == days_in_month(time.year(), time.month());
    let whole = (count(end) - count(start)) as f64;
    if end.day() == start.day() || (is_last(end) && is_last(start)) {
        return whole;
    }
    let seconds = |time: NaiveDateTime| f64::from(time.day() * 86_400 + time.num_seconds_from_midnight());
    whole + (seconds(end) - seconds(start)) / (31.0 * 86_400.0)
}

/// MySQL's `timediff`, as a text that may exceed a day.
fn timediff(arguments: &Arguments) -> Result<ArrayRef> {
    if matches!(arguments.data_type(0)?, DataType::Time64(_)) {
        return map2::<Time, Time, Str, _>(arguments, |one: i64, other: i64| {
            clock_text((one - other) / 1000)
        });
    }
    map2::<Stamp, Stamp, Str, _>(arguments, |one: i64, other: i64| clock_text(one - other))
}

const UNITS: &[&[Kind]] = &[&[Words, At, At]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "date_diff" "datediff" "datediff_big": &[&[Words, At, At], &[Day, Day]], Int, date_diff =>
        "boundaries of a unit between two timestamps, `date_diff('day', a, b)`; without a unit, days from `b` to `a`";
    "date_sub" "datesub": &[&[Words, At, At], &[At, Kind::Interval], &[Day, Kind::Int]], By(date_sub_type),
        date_sub =>
        "whole units between two timestamps, `date_sub('day', a, b)`; or a date earlier by days or an interval";
    "timestampdiff": UNITS, Int, |a| by_unit(a, |field, from, to| units(field, from, to, reached_months)) =>
        "whole units from the first timestamp to the second",
        note("as in MySQL: from the end of a month to that of a shorter one there is no month");
    "age": &[&[At, At], &[At]], Interval, ages =>
        "an interval of years, months and days between two timestamps, or up to today", stable();
    "months_between": &[&[At, At], &[At, At, Kind::Bool]], Float, months_between =>
        "months between two dates, with a fraction of 31 days";
    "timediff": &[&[At, At], &[Clock, Clock]], Text, timediff => "the time between two times or timestamps";
};
