//! Dates, times and timestamps from numbers and from text.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, days_of, join};
use super::parse::{stamp_of_text, zone_named};
use crate::define::{Function, functions};
use crate::values::Kind::{self, Float as Number, Int as Whole, Shown, Stamp as At, Text as Words};
use crate::values::{
    Arguments, Date, Days, Float, Int, Moment, Moments, Nanos, Stamp, Stamps, Text, fill, get_or, map1,
    offset_at,
};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use chrono::NaiveDate;
use datafusion::common::{Result, exec_datafusion_err, exec_err};

pub(super) fn micros_of_seconds(seconds: f64) -> Result<i64> {
    let micros = (seconds * SECOND as f64).round();
    if !micros.is_finite() || micros.abs() >= 9.2e18 {
        return exec_err!("timestamp out of range: {seconds}");
    }
    Ok(micros as i64)
}

fn date_from(year: i64, month: i64, day: i64) -> Result<NaiveDate> {
    let make = || {
        // Years before Christ are negative, without a year 0.
        let year = if year < 0 { year + 1 } else { year };
        NaiveDate::from_ymd_opt(
            i32::try_from(year).ok()?,
            u32::try_from(month).ok()?,
            u32::try_from(day).ok()?,
        )
    };
    if year == 0 {
        return exec_err!("date field value out of range: {year}-{month:02}-{day:02}");
    }
    make().ok_or_else(|| exec_datafusion_err!("date field value out of range: {year}-{month:02}-{day:02}"))
}

fn clock_from(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let seconds = (second * SECOND as f64).round();
    let micros = hour.saturating_mul(HOUR) + minute.saturating_mul(MINUTE) + seconds as i64;
    if !fits || micros > DAY {
        return exec_err!("time field value out of range: {hour}:{minute:02}:{second:02}");
    }
    Ok(micros)
}

fn make_date(arguments: &Arguments) -> Result<ArrayRef> {
    let (year, month, day) =
        (arguments.read::<Int>(0)?, arguments.read::<Int>(1)?, arguments.read::<Int>(2)?);
    fill::<Days, Result<Option<i32>>>(arguments, |row| {
        match (year.get(row)?, month.get(row)?, day.get(row)?) {
            (Some(year), Some(month), Some(day)) => days_of(date_from(year, month, day)?).map(Some),
            _ => Ok(None),
        }
    })
}

fn make_time(arguments: &Arguments) -> Result<ArrayRef> {
    let (hour, minute) = (arguments.read::<Int>(0)?, arguments.read::<Int>(1)?);
    let second = arguments.read::<Float>(2)?;
    fill::<Nanos, Result<Option<i64>>>(arguments, |row| {
        match (hour.get(row)?, minute.get(row)?, second.get(row)?) {
            (Some(hour), Some(minute), Some(second)) => Ok(Some(clock_from(hour, minute, second)? * 1000)),
            _ => Ok(None),
        }
    })
}

/// The six numbers of a timestamp, row by row.
fn made_stamp(arguments: &Arguments) -> Result<impl Fn(usize) -> Result<Option<i64>>> {
    let (year, month, day) =
        (arguments.read::<Int>(0)?, arguments.read::<Int>(1)?, arguments.read::<Int>(2)?);
    let (hour, minute) = (arguments.read::<Int>(3)?, arguments.read::<Int>(4)?);
    let second = arguments.read::<Float>(5)?;
    Ok(move |row| {
        let date = (year.get(row)?, month.get(row)?, day.get(row)?);
        let ((Some(year), Some(month), Some(day)), (Some(hour), Some(minute), Some(second))) =
            (date, (hour.get(row)?, minute.get(row)?, second.get(row)?))
        else {
            return Ok(None);
        };
        let midnight = join(date_from(year, month, day)?.and_time(chrono::NaiveTime::MIN));
        Ok(midnight.checked_add(clock_from(hour, minute, second)?))
    })
}

fn make_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    if arguments.len() == 1 {
        return map1::<Int, Stamps, _>(arguments, |micros: i64| micros);
    }
    let made = made_stamp(arguments)?;
    fill::<Stamps, Result<Option<i64>>>(arguments, made)
}

fn make_timestamptz(arguments: &Arguments) -> Result<ArrayRef> {
    let made = made_stamp(arguments)?;
    let session = session_zone(arguments);
    let zone = arguments.read_if_given::<Text>(6)?;
    fill::<Moments, Result<Option<i64>>>(arguments, |row| {
        let Some(local) = made(row)? else { return Ok(None) };
        let Some(zone) = get_or(zone.as_ref(), row, session.as_str())? else { return Ok(None) };
        Ok(Some(local.saturating_sub(offset_at(known_zone(zone)?, local))))
    })
}

/// The zone that the session is in; UTC when it names none.
pub(super) fn session_zone(arguments: &Arguments) -> String {
    arguments.config.execution.time_zone.clone().unwrap_or_else(|| "UTC".to_owned())
}

pub(super) fn known_zone(name: &str) -> Result<arrow::array::timezone::Tz> {
    zone_named(name).ok_or_else(|| exec_datafusion_err!("time zone `{name}` is not known"))
}

fn to_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(0)? {
        DataType::Float64 => map1::<Float, Moments, _>(arguments, micros_of_seconds),
        _ => map1::<Stamp, Stamps, _>(arguments, |micros: i64| micros),
    }
}

fn to_timestamp_type(given: &[DataType]) -> Result<DataType> {
    let zone = matches!(given, [DataType::Float64] | [_, _]).then(|| "UTC".into());
    Ok(DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, zone))
}

fn to_date(arguments: &Arguments) -> Result<ArrayRef> {
    match (arguments.len(), arguments.data_type(0)?) {
        (1, DataType::Int64) => map1::<Int, Days, _>(arguments, |days: i64| i32::try_from(days).ok()),
        (1, _) => map1::<Date, Days, _>(arguments, |days: i32| days),
        _ => super::pg_parse::to_date(arguments),
    }
}

/// Spark's and DuckDB's way to ask whether a text is a timestamp: null when it is none.
fn try_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    map1::<Text, Stamps, _>(arguments, |text| stamp_of_text(text).ok())
}

fn days_from_number(arguments: &Arguments) -> Result<ArrayRef> {
    // Day 719528 of MySQL is 1970-01-01.
    map1::<Int, Days, _>(arguments, |days: i64| i32::try_from(days - 719_528).ok())
}

const SIX: &[Kind] = &[Whole, Whole, Whole, Whole, Whole, Number];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "make_date": &[&[Whole, Whole, Whole]], Date, make_date => "a date of year, month and day";
    "makedate": &[&[Whole, Whole]], Date, |a| {
        crate::values::map2::<Int, Int, Days, Result<Option<i32>>>(a, |year, day| {
            if day < 1 {
                return Ok(None);
            }
            let first = days_of(date_from(year, 1, 1)?)?;
            Ok(i32::try_from(i64::from(first) + day - 1).ok())
        })
    } => "a date of year and day of the year";
    "make_time" "maketime": &[&[Whole, Whole, Number]], Time, make_time =>
        "a time of hour, minute and second";
    "make_timestamp" "make_timestamp_ntz": &[SIX, &[Whole]], Stamp, make_timestamp =>
        "a timestamp of year, month, day, hour, minute and second, or of microseconds since 1970",
        parameters(&["year", "month", "mday", "hour", "min", "sec"]);
    "make_timestamptz": &[SIX, &[Whole, Whole, Whole, Whole, Whole, Number, Words]], Moment,
        make_timestamptz =>
        "the same with a time zone, or in that of the session",
        parameters(&["year", "month", "mday", "hour", "min", "sec", "timezone"]);
    // The first one that fits a text is chosen.
    "to_timestamp": &[&[At], &[Number], &[Words, Words]], By(to_timestamp_type),
        |a| if a.len() == 1 { to_timestamp(a) } else { super::pg_parse::to_timestamp(a) } =>
        "the timestamp of seconds since 1970, of a text, or of a text by a pattern of PostgreSQL (`YYYY-MM-DD HH24:MI:SS`) or of strftime";
    "to_date": &[&[Kind::Date], &[Whole], &[Words, Words]], Date, to_date =>
        "the date of a text, by a pattern of PostgreSQL or strftime if there is one";
    "date": &[&[Kind::Date]], Date, |a| map1::<Date, Days, _>(a, |days: i32| days) =>
        "the date of a timestamp or text";
    "timestamp" "datetime": &[&[At], &[At, Kind::Time]], Stamp, |a| {
        if a.len() == 2 {
            return crate::values::map2::<Stamp, crate::values::Time, Stamps, _>(
                a,
                |day: i64, nanos: i64| day.checked_add(nanos / 1000),
            );
        }
        map1::<Stamp, Stamps, _>(a, |micros: i64| micros)
    } => "the timestamp of a date or text";
    "try_to_timestamp": &[&[Shown]], Stamp, try_timestamp => "the timestamp of a text, null if it is none";
    "timestamp_seconds": &[&[Number]], Moment, |a| map1::<Float, Moments, _>(a, micros_of_seconds) =>
        "the timestamp of seconds since 1970";
    "timestamp_millis": &[&[Whole]], Moment, |a| map1::<Int, Moments, _>(a, |ms: i64| ms.checked_mul(1000)) =>
        "the timestamp of milliseconds since 1970";
    "timestamp_micros": &[&[Whole]], Moment, |a| map1::<Int, Moments, _>(a, |us: i64| us) =>
        "the timestamp of microseconds since 1970";
    "from_days": &[&[Whole]], Date, days_from_number => "the date of a day number of MySQL";
    "date_from_unix_date": &[&[Whole]], Date,
        |a| map1::<Int, Days, _>(a, |days: i64| i32::try_from(days).ok()) => "the date of days since 1970";
    "unix_date": &[&[Kind::Date]], Int,
        |a| map1::<Date, crate::values::Int64, _>(a, |days: i32| i64::from(days)) => "days since 1970";
    "unix_seconds": &[&[At]], Int,
        |a| map1::<Moment, crate::values::Int64, _>(a, |micros: i64| micros.div_euclid(SECOND)) =>
        "seconds since 1970";
    "unix_millis": &[&[At]], Int,
        |a| map1::<Moment, crate::values::Int64, _>(a, |micros: i64| micros.div_euclid(1000)) =>
        "milliseconds since 1970";
    "unix_micros": &[&[At]], Int, |a| map1::<Moment, crate::values::Int64, _>(a, |micros: i64| micros) =>
        "microseconds since 1970";
};
