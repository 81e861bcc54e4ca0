//! Arithmetic of the calendar on microseconds since 1970.

use crate::values::{offset_at, offset_micros};
use arrow::array::timezone::Tz;
use arrow::datatypes::IntervalMonthDayNano;
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, Timelike};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

pub(super) fn out_of_range() -> DataFusionError {
    exec_datafusion_err!("the date is out of range")
}

pub(crate) fn split(micros: i64) -> Result<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc()).ok_or_else(out_of_range)
}

pub(crate) fn join(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

pub(super) fn date_of(days: i32) -> Result<NaiveDate> {
    Ok(split(i64::from(days) * DAY)?.date())
}

pub(super) fn days_of(date: NaiveDate) -> Result<i32> {
    i32::try_from(join(date.and_time(chrono::NaiveTime::MIN)).div_euclid(DAY)).map_err(|_| out_of_range())
}

/// The same day so many months later, or the last of that month.
pub(super) fn add_months_to(date: NaiveDate, months: i64) -> Result<NaiveDate> {
    let count = u32::try_from(months.unsigned_abs()).map_err(|_| out_of_range())?;
    let count = Months::new(count);
    let moved = if months < 0 { date.checked_sub_months(count) } else { date.checked_add_months(count) };
    moved.ok_or_else(out_of_range)
}

/// PostgreSQL's `timestamp + interval`: first months, then days, then the rest.
pub(super) fn add_interval(micros: i64, interval: IntervalMonthDayNano) -> Result<i64> {
    let mut time = split(micros)?;
    if interval.months != 0 {
        time = add_months_to(time.date(), i64::from(interval.months))?.and_time(time.time());
    }
    let days = i64::from(interval.days).checked_mul(DAY).ok_or_else(out_of_range)?;
    let moved = join(time).checked_add(days).and_then(|time| time.checked_add(interval.nanoseconds / 1000));
    moved.ok_or_else(out_of_range)
}

/// PostgreSQL's `timestamptz + interval`: months and days on the clock of a zone, the rest in absolute time. Without a zone
/// all of it is on the clock.
pub fn add_in_zone(utc: i64, interval: IntervalMonthDayNano, zone: Option<Tz>) -> Result<i64> {
    let Some(zone) = zone else { return add_interval(utc, interval) };
    let on_the_clock = |utc: i64, months: i32, days: i32| {
        if months == 0 && days == 0 {
            return Ok(utc);
        }
        let local = utc.saturating_add(offset_micros(zone, utc));
        let moved = add_interval(local, IntervalMonthDayNano::new(months, days, 0))?;
        moved.checked_sub(offset_at(zone, moved)).ok_or_else(out_of_range)
    };
    // One after the other: each may end where the clock is set.
    let moved = on_the_clock(utc, interval.months, 0)?;
    let moved = on_the_clock(moved, 0, interval.days)?;
    moved.checked_add(interval.nanoseconds / 1000).ok_or_else(out_of_range)
}

pub(super) fn negated(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let negate = || {
        Some(IntervalMonthDayNano {
            months: interval.months.checked_neg()?,
            days: interval.days.checked_neg()?,
            nanoseconds: interval.nanoseconds.checked_neg()?,
        })
    };
    negate().ok_or_else(|| exec_datafusion_err!("the interval is out of range"))
}

pub(super) fn interval(months: i64, days: i64, micros: i64) -> Result<IntervalMonthDayNano> {
    let make = || {
        Some(IntervalMonthDayNano {
            months: i32::try_from(months).ok()?,
            days: i32::try_from(days).ok()?,
            nanoseconds: micros.checked_mul(1000)?,
        })
    };
    make().ok_or_else(|| exec_datafusion_err!("the interval is out of range"))
}

pub(super) fn is_leap(year: i32) -> bool {
    NaiveDate::from_ymd_opt(year, 2, 29).is_some()
}

pub(super) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// A century as people count: the years 2001 to 2100 are the 21st; before Christ they are negative.
pub(super) fn hundreds(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

pub(super) fn julian_day(date: NaiveDate) -> i64 {
    i64::from(date.num_days_from_ce()) + 1_721_425
}

/// Weeks since the first Sunday of the year (`%U`).
pub(super) fn week_from_sunday(date: NaiveDate) -> u32 {
    (date.ordinal() + 6 - date.weekday().num_days_from_sunday()) / 7
}

/// Weeks since the first Monday of the year (`%W`).
pub(super) fn week_from_monday(date: NaiveDate) -> u32 {
    (date.ordinal() + 6 - date.weekday().num_days_from_monday()) / 7
}

/// The year and the week of a date by a mode of MySQL (MySQL manual, "WEEK()"): which day a week begins on, whether it counts
/// from 0 or belongs to the year before, and whether the first week is the first with four days or the first that begins.
pub(super) fn week_by_mode(date: NaiveDate, mode: i64) -> (i64, i64) {
    let (monday_first, mut of_year) = (mode & 1 != 0, mode & 2 != 0);
    // The bit means the opposite in weeks that begin on Sunday.
    let begins = (mode & 4 != 0) == monday_first;
    let (mut year, day) = (i64::from(date.year()), i64::from(date.num_days_from_ce()));
    let mut first = day - i64::from(date.ordinal0());
    // The day 0 was a Sunday.
    let mut weekday = (first + if monday_first { 6 } else { 0 }).rem_euclid(7);
    let is_late = |weekday: i64| if begins { weekday != 0 } else { weekday >= 4 };
    let days_in = |year: i64| if i32::try_from(year).is_ok_and(is_leap) { 366 } else { 365 };
    if i64::from(date.ordinal()) <= 7 - weekday {
        if !of_year && is_late(weekday) {
            return (year, 0);
        }
        if is_late(weekday) {
            of_year = true;
            year -= 1;
            first -= days_in(year);
            weekday = (weekday + 53 * 7 - days_in(year)).rem_euclid(7);
        }
    }
    let begun = if is_late(weekday) { first + 7 - weekday } else { first - weekday };
    let days = day - begun;
    if of_year && days >= 52 * 7 && !is_late((weekday + days_in(year)) % 7) {
        return (year + 1, 1);
    }
    (year, days / 7 + 1)
}

pub(super) fn micros_of(time: NaiveDateTime) -> i64 {
    i64::from(time.nanosecond() / 1000 % 1_000_000)
}

/// Microseconds as hours, minutes and seconds; more than a day is more than 24 hours.
pub(super) fn clock_text(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let rest = micros.unsigned_abs();
    let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
    let text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        return text;
    }
    format!("{text}.{fraction:06}").trim_end_matches('0').to_owned()
}
