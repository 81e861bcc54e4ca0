//! Arithmetic on dates and timestamps: intervals, days, months, ends of months, buckets.

use super::calendar::{
    DAY, add_interval, add_months_to, date_of, days_in_month, days_of, interval as span_of, join, negated,
    out_of_range, split,
};
use super::difference::unit_named;
use super::month_names;
use crate::define::{Function, functions};
use crate::values::Kind::{self, Date as Day, Int as Whole, Interval as Span, Stamp as At, Text as Words};
use crate::values::{
    Arguments, Date, Days, Int, Interval, Moment, Stamp, Stamps, Str, Text, Time, fill, get_or, map2, map3,
};
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType};
use chrono::{Datelike, NaiveDate};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use std::sync::Arc;

/// The type of a moved timestamp: its own with its zone, without a zone for dates and text.
pub(super) fn moved_type(given: &[DataType], position: usize) -> Result<DataType> {
    Ok(match given.get(position) {
        Some(zoned @ DataType::Timestamp(_, Some(_))) => zoned.clone(),
        _ => DataType::Timestamp(TimeUnit::Microsecond, None),
    })
}

/// The clock on the wall as the type that the planner expects, in its zone.
pub(super) fn in_its_zone(arguments: &Arguments, local: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(local, &arguments.gives)?)
}

/// A date stays one: what is added has no hours.
fn days_type(given: &[DataType]) -> Result<DataType> {
    match given.first() {
        Some(DataType::Date32) => Ok(DataType::Date32),
        _ => moved_type(given, 0),
    }
}

fn add_type(given: &[DataType]) -> Result<DataType> {
    match given {
        [_, DataType::Int64] => Ok(DataType::Date32),
        [_, _, _] => moved_type(given, 2),
        _ => moved_type(given, 0),
    }
}

/// `date_add(d, 3)`, `date_add(t, INTERVAL …)`, `date_add('day', 3, t)`.
fn add(arguments: &Arguments, sign: i64) -> Result<ArrayRef> {
    if arguments.len() == 3 {
        let stamps = map3::<Text, Int, Stamp, Stamps, Result<i64>>(arguments, |unit, count, micros| {
            add_interval(micros, unit_named(unit)?.times(count.saturating_mul(sign))?)
        })?;
        return in_its_zone(arguments, &stamps);
    }
    if *arguments.data_type(1)? == DataType::Int64 {
        return map2::<Date, Int, Days, Result<i32>>(arguments, |day, count| {
            i32::try_from(i64::from(day).saturating_add(count.saturating_mul(sign)))
                .map_err(|_| out_of_range())
        });
    }
    let stamps = map2::<Stamp, Interval, Stamps, Result<i64>>(arguments, |micros, span| {
        add_interval(micros, if sign < 0 { negated(span)? } else { span })
    })?;
    in_its_zone(arguments, &stamps)
}

/// `date_sub(d, 3)`, `date_sub(t, INTERVAL …)`.
pub(super) fn subtract(arguments: &Arguments) -> Result<ArrayRef> {
    add(arguments, -1)
}

/// Months added by name: the last day of a month stays what it is, as in PostgreSQL.
fn add_months(arguments: &Arguments, months_each: i64) -> Result<ArrayRef> {
    map2::<Date, Int, Days, Result<i32>>(arguments, |day, count| {
        days_of(add_months_to(date_of(day)?, count.saturating_mul(months_each))?)
    })
}

fn add_clock(arguments: &Arguments, micros_each: i64) -> Result<ArrayRef> {
    let stamps = map2::<Stamp, Int, Stamps, Result<i64>>(arguments, |micros, count| {
        let moved = count.checked_mul(micros_each).and_then(|by| micros.checked_add(by));
        moved.ok_or_else(out_of_range)
    })?;
    in_its_zone(arguments, &stamps)
}

fn last_day(arguments: &Arguments) -> Result<ArrayRef> {
    crate::values::map1::<Date, Days, Result<i32>>(arguments, |day| {
        let date = date_of(day)?;
        let last =
            NaiveDate::from_ymd_opt(date.year(), date.month(), days_in_month(date.year(), date.month()));
        days_of(last.ok_or_else(out_of_range)?)
    })
}

fn next_day(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Date, Text, Days, Result<i32>>(arguments, |day, name| {
        let name = name.trim();
        let found = month_names::WEEKDAYS.iter().position(|full| {
            let full = full.to_ascii_lowercase();
            name.len() >= 2 && full.starts_with(&name.to_ascii_lowercase())
        });
        let wanted = found.ok_or_else(|| exec_datafusion_err!("`{name}` is not a day of the week"))?;
        // 1970-01-01 was a Thursday.
        let today = (i64::from(day) + 4).rem_euclid(7);
        let ahead = (i64::try_from(wanted).unwrap_or_default() - today + 6).rem_euclid(7) + 1;
        i32::try_from(i64::from(day) + ahead).map_err(|_| out_of_range())
    })
}

/// The start of the bucket of that width in which a timestamp lies.
fn bucket(micros: i64, width: IntervalMonthDayNano, origin: Option<i64>) -> Result<i64> {
    let length = i64::from(width.days).saturating_mul(DAY).saturating_add(width.nanoseconds / 1000);
    if width.months != 0 && length != 0 {
        return exec_err!("the width of a bucket is in months or in shorter units, not in both");
    }
    if width.months > 0 {
        let origin = split(origin.unwrap_or(946_684_800_000_000))?;
        let count = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
        let months = count(split(micros)?.date()) - count(origin.date());
        let mut start = months.div_euclid(i64::from(width.months)) * i64::from(width.months);
        let at = |months| {
            Ok::<_, datafusion::common::DataFusionError>(join(
                add_months_to(origin.date(), months)?.and_time(origin.time()),
            ))
        };
        if at(start)? > micros {
            start -= i64::from(width.months);
        }
        return at(start);
    }
    if length <= 0 {
        return exec_err!("the width of a bucket must be greater than zero");
    }
    // A Monday, so that weeks begin on Mondays.
    let origin = origin.unwrap_or(946_857_600_000_000);
    let apart = micros.checked_sub(origin).ok_or_else(out_of_range)?;
    origin.checked_add(apart.div_euclid(length) * length).ok_or_else(out_of_range)
}

fn time_bucket(arguments: &Arguments) -> Result<ArrayRef> {
    let (widths, stamps) = (arguments.read::<Interval>(0)?, arguments.read::<Stamp>(1)?);
    let by_offset = arguments.len() > 2 && matches!(arguments.data_type(2)?, DataType::Interval(_));
    let offsets = if by_offset { arguments.read_if_given::<Interval>(2)? } else { None };
    let origins = if by_offset { None } else { arguments.read_if_given::<Stamp>(2)? };
    let local = fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        let (Some(width), Some(micros)) = (widths.get(row)?, stamps.get(row)?) else { return Ok(None) };
        if let Some(offsets) = &offsets {
            let Some(offset) = offsets.get(row)? else { return Ok(None) };
            let moved = add_interval(micros, negated(offset)?)?;
            return add_interval(bucket(moved, width, None)?, offset).map(Some);
        }
        match &origins {
            Some(origins) => match origins.get(row)? {
                Some(origin) => bucket(micros, width, Some(origin)).map(Some),
                None => Ok(None),
            },
            None => bucket(micros, width, None).map(Some),
        }
    })?;
    in_its_zone(arguments, &local)
}

/// Counted in absolute time, from 1970 if no origin is named.
fn date_bin(arguments: &Arguments) -> Result<ArrayRef> {
    let (widths, moments) = (arguments.read::<Interval>(0)?, arguments.read::<Moment>(1)?);
    let origins = arguments.read_if_given::<Moment>(2)?;
    let made = fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        match (widths.get(row)?, moments.get(row)?, get_or(origins.as_ref(), row, 0)?) {
            (Some(width), Some(moment), Some(origin)) => bucket(moment, width, Some(origin)).map(Some),
            _ => Ok(None),
        }
    })?;
    let zone = match &arguments.gives {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let made = made.as_primitive::<TimestampMicrosecondType>().clone();
    Ok(Arc::new(made.with_timezone_opt(zone)))
}

fn bucket_type(given: &[DataType]) -> Result<DataType> {
    match given.get(1) {
        Some(DataType::Date32) => Ok(DataType::Date32),
        _ => moved_type(given, 1),
    }
}

/// `YYYYMM` plus months, as MySQL adds periods.
fn period_add(arguments: &Arguments) -> Result<ArrayRef> {
    map2::<Int, Int, crate::values::Int64, _>(arguments, |period: i64, months: i64| {
        let count = months_of_period(period).saturating_add(months);
        count.div_euclid(12) * 100 + count.rem_euclid(12) + 1
    })
}

fn months_of_period(period: i64) -> i64 {
    period.div_euclid(100) * 12 + period.rem_euclid(100) - 1
}

/// MySQL's `addtime`: a time of the day, or a timestamp, and a time that is added to it.
fn add_time(arguments: &Arguments, sign: i64) -> Result<ArrayRef> {
    let by = arguments.read::<Time>(1)?;
    if matches!(arguments.data_type(0)?, DataType::Time64(_)) {
        let from = arguments.read::<Time>(0)?;
        return fill::<crate::values::Nanos, Result<Option<i64>>>(arguments, |row| {
            Ok(from.get(row)?.zip(by.get(row)?).map(|(from, by)| (from + sign * by).rem_euclid(DAY * 1000)))
        });
    }
    let from = arguments.read::<Stamp>(0)?;
    let local = fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        Ok(from.get(row)?.zip(by.get(row)?).and_then(|(from, by)| from.checked_add(sign * by / 1000)))
    })?;
    in_its_zone(arguments, &local)
}

fn time_type(given: &[DataType]) -> Result<DataType> {
    match given.first() {
        Some(time @ DataType::Time64(_)) => Ok(time.clone()),
        _ => moved_type(given, 0),
    }
}

fn first_moved(given: &[DataType]) -> Result<DataType> {
    moved_type(given, 0)
}

fn sec_to_time(arguments: &Arguments) -> Result<ArrayRef> {
    crate::values::map1::<Int, Str, _>(arguments, |seconds: i64| {
        super::calendar::clock_text(seconds.saturating_mul(super::calendar::SECOND))
    })
}

const DAY_FORMS: &[&[Kind]] = &[&[Day, Whole]];
const MOVED: &[&[Kind]] = &[&[At, Span], &[Day, Whole], &[Words, Whole, At]];
const CLOCK_FORMS: &[&[Kind]] = &[&[At, Whole]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "date_add" "adddate" "dateadd" "timestampadd": MOVED, By(add_type), |a| add(a, 1) =>
        "a date or timestamp later: by an interval, by days, or by so many of a unit";
    "subdate": MOVED, By(add_type), |a| add(a, -1) => "a date or timestamp earlier";
    "date_plus": &[&[At, Span]], By(days_type), |a| add(a, 1) =>
        "a date or timestamp later by an interval of days or months; a date stays a date";
    "days_add": DAY_FORMS, Date, |a| add(a, 1) => "a date so many days later";
    "days_sub": DAY_FORMS, Date, |a| add(a, -1) => "a date so many days earlier";
    "weeks_add": DAY_FORMS, Date, |a| {
        map2::<Date, Int, Days, _>(a, |day: i32, count: i64| {
            i32::try_from(i64::from(day) + count.saturating_mul(7)).ok()
        })
    } => "a date so many weeks later";
    "months_add" "add_months": DAY_FORMS, Date, |a| add_months(a, 1) => "a date so many months later";
    "months_sub": DAY_FORMS, Date, |a| add_months(a, -1) => "a date so many months earlier";
    "years_add": DAY_FORMS, Date, |a| add_months(a, 12) => "a date so many years later";
    "years_sub": DAY_FORMS, Date, |a| add_months(a, -12) => "a date so many years earlier";
    "hours_add": CLOCK_FORMS, By(first_moved), |a| add_clock(a, super::calendar::HOUR) =>
        "a timestamp so many hours later";
    "minutes_add": CLOCK_FORMS, By(first_moved), |a| add_clock(a, super::calendar::MINUTE) =>
        "a timestamp so many minutes later";
    "seconds_add": CLOCK_FORMS, By(first_moved), |a| add_clock(a, super::calendar::SECOND) =>
        "a timestamp so many seconds later";
    "addtime": &[&[At, Kind::Time], &[Kind::Time, Kind::Time]], By(time_type), |a| add_time(a, 1) =>
        "a time or timestamp later by a time";
    "subtime": &[&[At, Kind::Time], &[Kind::Time, Kind::Time]], By(time_type), |a| add_time(a, -1) =>
        "a time or timestamp earlier by a time";
    "last_day": &[&[Day]], Date, last_day => "the last day of the month";
    "next_day": &[&[Day, Words]], Date, next_day => "the next such day of the week";
    "time_bucket": &[&[Span, At], &[Span, At, At], &[Span, At, Span]], By(bucket_type), time_bucket =>
        "the start of the bucket of that width, counted from 2000-01-03, an offset or an origin";
    "date_bin": &[&[Span, At], &[Span, At, At]], By(|given| moved_type(given, 1)), date_bin =>
        "the start of the bucket of that width, counted from an origin";
    "period_add": &[&[Whole, Whole]], Int, period_add => "a month as YYYYMM, so many months later";
    "period_diff": &[&[Whole, Whole]], Int, |a| {
        map2::<Int, Int, crate::values::Int64, _>(a, |one: i64, other: i64| {
            months_of_period(one) - months_of_period(other)
        })
    } => "months between two months as YYYYMM";
    "sec_to_time": &[&[Whole]], Text, sec_to_time => "seconds as hours, minutes and seconds";
    "time_to_sec": &[&[Kind::Time], &[At]], Int, |a| {
        if matches!(a.data_type(0)?, DataType::Time64(_)) {
            return crate::values::map1::<Time, crate::values::Int64, _>(a, |nanos: i64| {
                nanos / 1_000_000_000
            });
        }
        crate::values::map1::<Stamp, crate::values::Int64, _>(a, |micros: i64| {
            micros.rem_euclid(DAY) / super::calendar::SECOND
        })
    } => "the seconds of a time";
};

/// An interval of so many of a unit.
pub(super) struct Unit {
    pub(super) months: i64,
    pub(super) days: i64,
    pub(super) micros: i64,
}

impl Unit {
    pub(super) fn times(&self, count: i64) -> Result<IntervalMonthDayNano> {
        span_of(
            self.months.saturating_mul(count),
            self.days.saturating_mul(count),
            self.micros.saturating_mul(count),
        )
    }
}
