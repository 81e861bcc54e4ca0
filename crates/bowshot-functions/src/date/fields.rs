//! Parts of dates, times, timestamps and intervals: `year(d)`, `extract(century FROM d)`.

use super::calendar::{
    self, DAY, HOUR, MINUTE, SECOND, hundreds, julian_day, micros_of, split, week_by_mode,
};
use super::month_names;
use crate::define::{Function, functions, made};
use crate::values::Kind::{self, Interval as Span, Stamp as At, Time as Clock};
use crate::values::{Arguments, Int, Int64, Interval, Moment, Real, Stamp, Str, Time, get_or, map_at, map1};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use chrono::{Datelike, NaiveDate, NaiveDateTime, Timelike};
use datafusion::common::{Result, exec_err};

pub(crate) use super::part::date_part;

/// A part that is a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Millennium,
    Century,
    Decade,
    Era,
    Year,
    IsoYear,
    YearWeek,
    Quarter,
    Month,
    Week,
    Day,
    DayOfYear,
    /// Sunday is 0.
    DayOfWeek,
    /// Monday is 1.
    IsoDayOfWeek,
    /// Monday is 0.
    Weekday,
    Hour,
    Minute,
    Second,
    /// Of the minute, as the two below.
    Millisecond,
    Microsecond,
    Nanosecond,
    Julian,
}

impl Field {
    /// By the names that PostgreSQL and DuckDB know.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "millenniums" | "mil" => Self::Millennium,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "era" => Self::Era,
            "year" | "years" | "y" | "yr" | "yrs" | "yyyy" | "yy" | "sql_tsi_year" => Self::Year,
            "isoyear" => Self::IsoYear,
            "yearweek" => Self::YearWeek,
            "quarter" | "quarters" | "qtr" | "q" | "qq" | "sql_tsi_quarter" => Self::Quarter,
            "month" | "months" | "mon" | "mons" | "mm" | "sql_tsi_month" => Self::Month,
            "week" | "weeks" | "w" | "ww" | "wk" | "weekofyear" | "isoweek" | "sql_tsi_week" => Self::Week,
            "day" | "days" | "d" | "dd" | "dayofmonth" | "sql_tsi_day" => Self::Day,
            "dayofyear" | "doy" | "dy" => Self::DayOfYear,
            "dow" | "dayofweek" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "weekday" => Self::Weekday,
            "hour" | "hours" | "h" | "hr" | "hrs" | "hh" | "sql_tsi_hour" => Self::Hour,
            "minute" | "minutes" | "m" | "min" | "mins" | "mi" | "sql_tsi_minute" => Self::Minute,
            "second" | "seconds" | "s" | "sec" | "secs" | "ss" | "sql_tsi_second" => Self::Second,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => {
                Self::Microsecond
            }
            "nanosecond" | "nanoseconds" | "ns" | "nsec" | "nsecs" => Self::Nanosecond,
            "julian" | "j" => Self::Julian,
            _ => return None,
        })
    }

    pub(super) fn of_stamp(self, time: NaiveDateTime) -> i64 {
        let year = i64::from(time.year());
        match self {
            Self::Millennium => hundreds(year, 1000),
            Self::Century => hundreds(year, 100),
            Self::Decade => year.div_euclid(10),
            Self::Era => i64::from(year > 0),
            Self::Year => year,
            Self::IsoYear => i64::from(time.iso_week().year()),
            Self::YearWeek => i64::from(time.iso_week().year()) * 100 + i64::from(time.iso_week().week()),
            Self::Quarter => i64::from(time.month0() / 3 + 1),
            Self::Month => i64::from(time.month()),
            Self::Week => i64::from(time.iso_week().week()),
            Self::Day => i64::from(time.day()),
            Self::DayOfYear => i64::from(time.ordinal()),
            Self::DayOfWeek => i64::from(time.weekday().num_days_from_sunday()),
            Self::IsoDayOfWeek => i64::from(time.weekday().number_from_monday()),
            Self::Weekday => i64::from(time.weekday().num_days_from_monday()),
            Self::Hour => i64::from(time.hour()),
            Self::Minute => i64::from(time.minute()),
            Self::Second => i64::from(time.second()),
            Self::Millisecond => i64::from(time.second()) * 1000 + micros_of(time) / 1000,
            Self::Microsecond => i64::from(time.second()) * SECOND + micros_of(time),
            Self::Nanosecond => (i64::from(time.second()) * SECOND + micros_of(time)) * 1000,
            Self::Julian => julian_day(time.date()),
        }
    }

    fn of_interval(self, span: IntervalMonthDayNano) -> Option<i64> {
        let (months, micros) = (i64::from(span.months), span.nanoseconds / 1000);
        Some(match self {
            Self::Millennium => months / 12_000,
            Self::Century => months / 1200,
            Self::Decade => months / 120,
            Self::Year => months / 12,
            Self::Quarter => months % 12 / 3 + 1,
            Self::Month => months % 12,
            Self::Week => i64::from(span.days) / 7,
            Self::Day => i64::from(span.days),
            _ => return self.of_clock(micros),
        })
    }

    /// Of microseconds that may be more than a day.
    fn of_clock(self, micros: i64) -> Option<i64> {
        Some(match self {
            Self::Hour => micros / HOUR,
            Self::Minute => micros % HOUR / MINUTE,
            Self::Second => micros % MINUTE / SECOND,
            Self::Millisecond => micros % MINUTE / 1000,
            Self::Microsecond => micros % MINUTE,
            Self::Nanosecond => micros % MINUTE * 1000,
            _ => return None,
        })
    }
}

/// The part of the argument at `position`, whatever kind of time that is.
pub(super) fn part_of(arguments: &Arguments, position: usize, field: Field) -> Result<ArrayRef> {
    let missing = || exec_err!("the value has no part `{field:?}`");
    match arguments.data_type(position)? {
        DataType::Interval(_) => map_at::<Interval, Int64, Result<i64>>(arguments, position, |span| {
            field.of_interval(span).map_or_else(missing, Ok)
        }),
        DataType::Time64(_) => map_at::<Time, Int64, Result<i64>>(arguments, position, |nanos| {
            field.of_clock(nanos / 1000).map_or_else(missing, Ok)
        }),
        _ => map_at::<Stamp, Int64, Result<i64>>(arguments, position, |micros| {
            Ok(field.of_stamp(split(micros)?))
        }),
    }
}

/// Seconds that an interval takes, with months of 30 days and years of 365.25, as PostgreSQL counts them.
pub(super) fn interval_micros(span: IntervalMonthDayNano) -> i64 {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    let days = (months * 30 + i64::from(span.days)).saturating_mul(DAY);
    years.saturating_mul(31_557_600 * SECOND).saturating_add(days).saturating_add(span.nanoseconds / 1000)
}

fn epoch(arguments: &Arguments, units_per_second: i64) -> Result<ArrayRef> {
    let divisor = SECOND / units_per_second;
    match arguments.data_type(0)? {
        DataType::Interval(_) => {
            map1::<Interval, Int64, _>(arguments, |span| interval_micros(span) / divisor)
        }
        DataType::Time64(_) => map1::<Time, Int64, _>(arguments, |nanos| nanos / 1000 / divisor),
        _ => map1::<Moment, Int64, _>(arguments, |micros: i64| micros.div_euclid(divisor)),
    }
}

/// With the fraction of a second.
pub(super) fn epoch_seconds(arguments: &Arguments, position: usize) -> Result<ArrayRef> {
    let seconds = |micros: i64| micros as f64 / SECOND as f64;
    match arguments.data_type(position)? {
        DataType::Interval(_) => {
            map_at::<Interval, Real, _>(arguments, position, |span| seconds(interval_micros(span)))
        }
        DataType::Time64(_) => map_at::<Time, Real, _>(arguments, position, |nanos| seconds(nanos / 1000)),
        _ => map_at::<Moment, Real, _>(arguments, position, seconds),
    }
}

/// What a date has by a mode of MySQL's weeks, the second argument or 0.
fn weeks(arguments: &Arguments, of: fn(NaiveDate, i64) -> i64) -> Result<ArrayRef> {
    let stamps = arguments.read::<Stamp>(0)?;
    let modes = arguments.read_if_given::<Int>(1)?;
    crate::values::fill::<Int64, Result<Option<i64>>>(arguments, |row| {
        let mode = get_or(modes.as_ref(), row, 0)?;
        let (Some(micros), Some(mode)) = (stamps.get(row)?, mode) else { return Ok(None) };
        Ok(Some(of(split(micros)?.date(), mode)))
    })
}

const DATES: &[&[Kind]] = &[&[At], &[Span]];
const CLOCKS: &[&[Kind]] = &[&[At], &[Clock], &[Span]];
const ONLY_DATES: &[&[Kind]] = &[&[At]];

pub(super) const MADE: &[Function] =
    &[made("date_part", "a part of a date, time, timestamp or interval: `date_part('year', d)`", date_part)
        .aliases(&["datepart"])];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "millennium": DATES, Int, |a| part_of(a, 0, Field::Millennium) => "the millennium";
    "century": DATES, Int, |a| part_of(a, 0, Field::Century) => "the century";
    "decade": DATES, Int, |a| part_of(a, 0, Field::Decade) => "the year divided by ten";
    "era": ONLY_DATES, Int, |a| part_of(a, 0, Field::Era) => "1 after Christ, 0 before";
    "year": DATES, Int, |a| part_of(a, 0, Field::Year) => "the year";
    "isoyear" "yearofweek": ONLY_DATES, Int, |a| part_of(a, 0, Field::IsoYear) =>
        "the year that the ISO week belongs to";
    "yearweek": &[&[At], &[At, Kind::Int]], Int, |a| match a.is_mysql() || a.len() == 2 {
        // Weeks always belong to a year here, whatever the mode says.
        true => weeks(a, |date, mode| {
            let (year, week) = week_by_mode(date, mode | 2);
            year * 100 + week
        }),
        false => part_of(a, 0, Field::YearWeek),
    } =>
        "ISO year and week as one number, 202419; with a mode, as MySQL's modes count weeks",
        note("in dialect `mysql` the mode is 0 where it is not named");
    "quarter": DATES, Int, |a| part_of(a, 0, Field::Quarter) => "the quarter of the year, 1 to 4";
    "month": DATES, Int, |a| part_of(a, 0, Field::Month) => "the month, 1 to 12";
    "week": &[&[At], &[At, Kind::Int], &[Span]], Int, |a| match a.is_mysql() || a.len() == 2 {
        true if !matches!(a.data_type(0)?, DataType::Interval(_)) => {
            weeks(a, |date, mode| week_by_mode(date, mode).1)
        }
        _ => part_of(a, 0, Field::Week),
    } =>
        "the ISO week of the year; with a mode, as MySQL's modes count weeks",
        note("in dialect `mysql` the mode is 0 where it is not named");
    "weekofyear": &[&[At]], Int, |a| part_of(a, 0, Field::Week) => "the ISO week of the year";
    "day" "dayofmonth": DATES, Int, |a| part_of(a, 0, Field::Day) => "the day of the month";
    "dayofyear": ONLY_DATES, Int, |a| part_of(a, 0, Field::DayOfYear) => "the day of the year";
    "dayofweek": ONLY_DATES, Int, |a| {
        let first = i64::from(a.is_mysql());
        map1::<Stamp, Int64, Result<i64>>(a, |micros| Ok(Field::DayOfWeek.of_stamp(split(micros)?) + first))
    } => "the day of the week", note("Sunday is 0; in dialect `mysql` 1");
    "isodow": ONLY_DATES, Int, |a| part_of(a, 0, Field::IsoDayOfWeek) => "the day of the week, Monday is 1";
    "weekday": ONLY_DATES, Int, |a| part_of(a, 0, Field::Weekday) =>
        "the day of the week, Monday is 0", note("as in MySQL and Spark");
    "hour": CLOCKS, Int, |a| part_of(a, 0, Field::Hour) => "the hour";
    "minute": CLOCKS, Int, |a| part_of(a, 0, Field::Minute) => "the minute";
    "second": CLOCKS, Int, |a| part_of(a, 0, Field::Second) => "the second, without its fraction";
    "millisecond": CLOCKS, Int, |a| part_of(a, 0, Field::Millisecond) => "the second in milliseconds";
    "microsecond": CLOCKS, Int, |a| {
        if a.is_mysql() {
            return map1::<Stamp, Int64, Result<i64>>(a, |micros| Ok(micros_of(split(micros)?)));
        }
        part_of(a, 0, Field::Microsecond)
    } => "the microseconds of the minute", note("in dialect `mysql` those of the second");
    "nanosecond": CLOCKS, Int, |a| part_of(a, 0, Field::Nanosecond) => "the second in nanoseconds";
    "julian": ONLY_DATES, Float, |a| {
        map1::<Stamp, Real, Result<f64>>(a, |micros| {
            let time = split(micros)?;
            let clock = micros.rem_euclid(DAY) as f64 / DAY as f64;
            Ok(julian_day(time.date()) as f64 + clock)
        })
    } => "the Julian day";
    "epoch": CLOCKS, Float, |a| epoch_seconds(a, 0) => "seconds since 1970";
    "epoch_ms": &[&[At], &[Clock], &[Span], &[Kind::Int]], By(epoch_ms_type), epoch_ms =>
        "milliseconds since 1970; of a number, the timestamp";
    "epoch_us": CLOCKS, Int, |a| epoch(a, SECOND) => "microseconds since 1970";
    "epoch_ns": CLOCKS, Int, |a| {
        let micros = epoch(a, SECOND)?;
        let nanos =
            arrow::compute::kernels::numeric::mul(&micros, &arrow::array::Int64Array::new_scalar(1000))?;
        Ok(nanos)
    } => "nanoseconds since 1970";
    "dayname": ONLY_DATES, Text, |a| {
        map1::<Stamp, Str, Result<String>>(a, |micros| {
            Ok(month_names::weekday(split(micros)?.weekday().num_days_from_sunday()).to_owned())
        })
    } => "the English name of the weekday";
    "monthname": ONLY_DATES, Text, |a| {
        map1::<Stamp, Str, Result<String>>(a, |micros| {
            Ok(month_names::month(split(micros)?.month()).to_owned())
        })
    } => "the English name of the month";
    "isleap": ONLY_DATES, Bool, |a| {
        map1::<Stamp, crate::values::Flag, Result<bool>>(a, |micros| {
            Ok(calendar::is_leap(split(micros)?.year()))
        })
    } => "whether the year is a leap year";
};

fn epoch_ms_type(arguments: &[DataType]) -> Result<DataType> {
    Ok(match arguments.first() {
        Some(DataType::Int64) => DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None),
        _ => DataType::Int64,
    })
}

fn epoch_ms(arguments: &Arguments) -> Result<ArrayRef> {
    if *arguments.data_type(0)? == DataType::Int64 {
        return map1::<crate::values::Int, crate::values::Stamps, _>(arguments, |ms: i64| {
            ms.checked_mul(1000)
        });
    }
    epoch(arguments, 1000)
}
