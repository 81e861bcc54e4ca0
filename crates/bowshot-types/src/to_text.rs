//! Times, intervals and floating-point numbers as text, in PostgreSQL's forms: `2024-01-31 01:02:03.5`,
//! `2024-01-31 01:02:03+00`, `1 year 2 mons 3 days 04:05:06`, `1e+20`. Arrow's forms are those of ISO 8601.

use super::functions::only;
use super::zone::per_second;
use bowshot_api::offset_of_instant;
use bowshot_functions::{PlanFunction, plan_function};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::Result;
use datafusion::logical_expr::{ScalarUDF, Signature, Volatility};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Whether the text of such values is ours to write.
pub(super) fn is_ours(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(_)
            | DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::List(_)
    )
}

pub(super) fn texts(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Timestamp(unit, zone) => stamps(values, *unit, zone.as_deref()),
        DataType::Time32(_) | DataType::Time64(_) => {
            let nanos = cast(&cast(values, &DataType::Time64(TimeUnit::Nanosecond))?, &DataType::Int64)?;
            let nanos = nanos.as_primitive::<Int64Type>();
            Ok(Arc::new(nanos.iter().map(|nanos| nanos.map(clock)).collect::<StringArray>()))
        }
        DataType::Interval(_) => {
            let intervals = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            Ok(Arc::new(intervals.iter().map(|value| value.map(interval)).collect::<StringArray>()))
        }
        DataType::FixedSizeBinary(16) => uuids(values),
        DataType::List(_) => {
            let format_options = FormatOptions::new().with_null("NULL");
            Ok(cast_with_options(values, &DataType::Utf8, &CastOptions { safe: false, format_options })?)
        }
        DataType::Float64 => {
            let numbers = values.as_primitive::<Float64Type>().iter();
            Ok(Arc::new(numbers.map(|number| Some(float(number?, 15))).collect::<StringArray>()))
        }
        _ => {
            let numbers = cast(values, &DataType::Float32)?;
            let numbers = numbers.as_primitive::<Float32Type>().iter();
            Ok(Arc::new(numbers.map(|number| Some(float(number?, 6))).collect::<StringArray>()))
        }
    }
}

fn stamps(values: &ArrayRef, unit: TimeUnit, zone: Option<&str>) -> Result<ArrayRef> {
    let zone = zone.map(str::parse::<Tz>).transpose()?;
    let per_second = per_second(unit);
    let numbers = cast(values, &DataType::Int64)?;
    let texts = numbers.as_primitive::<Int64Type>().iter().map(|number| {
        let number = number?;
        let part = number.rem_euclid(per_second) * (1_000_000_000 / per_second);
        let utc = DateTime::from_timestamp(number.div_euclid(per_second), u32::try_from(part).ok()?)?;
        Some(stamp(utc.naive_utc(), zone))
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// `2024-01-31 01:02:03.5`, with the offset of a zone on whose clock it is shown.
fn stamp(utc: NaiveDateTime, zone: Option<Tz>) -> String {
    let seconds = zone.map(|zone| offset_of_instant(zone, utc.and_utc().timestamp()));
    let shift = chrono::TimeDelta::seconds(i64::from(seconds.unwrap_or(0)));
    let time = utc.checked_add_signed(shift).unwrap_or(utc);
    let (year, era) = if time.year() > 0 { (time.year(), "") } else { (1 - time.year(), " BC") };
    let nanos = i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond());
    let offset = seconds.map_or_else(String::new, offset);
    format!("{year:04}-{:02}-{:02} {}{offset}{era}", time.month(), time.day(), clock(nanos))
}

/// `+00`, `-05`, `+05:30`.
fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let rest = seconds.unsigned_abs();
    let mut text = format!("{sign}{:02}", rest / 3600);
    if !rest.is_multiple_of(3600) {
        text.push_str(&format!(":{:02}", rest / 60 % 60));
    }
    if !rest.is_multiple_of(60) {
        text.push_str(&format!(":{:02}", rest % 60));
    }
    text
}

/// Nanoseconds as `04:05:06.5`; more than a day is more than 24 hours.
fn clock(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let rest = nanos.unsigned_abs();
    let (seconds, part) = (rest / 1_000_000_000, rest % 1_000_000_000);
    let text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if part == 0 {
        return text;
    }
    format!("{text}.{part:09}").trim_end_matches('0').to_owned()
}

/// `1 year 2 mons -3 days +04:05:06`: what follows on something negative says its sign.
fn interval(value: IntervalMonthDayNano) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut below = false;
    for (count, unit) in [(value.months / 12, "year"), (value.months % 12, "mon"), (value.days, "day")] {
        if count != 0 {
            let plus = if below && count > 0 { "+" } else { "" };
            parts.push(format!("{plus}{count} {unit}{}", if count == 1 { "" } else { "s" }));
            below = count < 0;
        }
    }
    if value.nanoseconds != 0 || parts.is_empty() {
        let plus = if below && value.nanoseconds > 0 { "+" } else { "" };
        parts.push(format!("{plus}{}", clock(value.nanoseconds)));
    }
    parts.join(" ")
}

/// The fewest digits that are read as the same number: `5`, `0.1`, `1e+20`, `1e-07`, `Infinity`, `NaN`. Powers of ten from `large`
/// up have an exponent, and those below -4.
fn float(number: impl fmt::Display + fmt::LowerExp, large: i32) -> String {
    let text = format!("{number:e}");
    match (text.split_once('e'), text.as_str()) {
        (Some((digits, power)), _) => match power.parse::<i32>() {
            Ok(power) if (-4..large).contains(&power) => number.to_string(),
            _ => {
                let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
                format!("{digits}e{sign}{power:0>2}")
            }
        },
        (None, "inf") => "Infinity".to_owned(),
        (None, "-inf") => "-Infinity".to_owned(),
        (None, other) => other.to_owned(),
    }
}

/// UUIDs that are bytes.
fn uuids(values: &ArrayRef) -> Result<ArrayRef> {
    let texts = values.as_fixed_size_binary().iter().map(|bytes| {
        let uuid = Uuid::from_slice(bytes?).ok()?;
        Some(uuid.hyphenated().to_string())
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// The function that such casts become.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shown;

/// The function that converts values to text.
pub(super) fn function() -> ScalarUDF {
    plan_function(Shown, Signature::any(1, Volatility::Immutable))
}

impl PlanFunction for Shown {
    fn name(&self) -> &'static str {
        "__bowshot_text"
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        texts(only(arguments)?)
    }
}
