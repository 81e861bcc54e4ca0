//! Time zones: `timezone('Europe/Berlin', t)`, which is what `t AT TIME ZONE 'Europe/Berlin'` means.

use super::constructors::known_zone;
use crate::define::{Function, functions};
use crate::values::Kind::{self, Stamp as At, Text as Words};
use crate::values::{
    Arguments, Flag, Float, Memo, Moment, Moments, Stamp, Stamps, Text, fill, map1, offset_at, offset_micros,
};
use arrow::array::ArrayRef;
use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;

/// A zone as PostgreSQL reads it here: offsets are those of POSIX, in which `+02:00` is west of Greenwich, perhaps behind an
/// abbreviation of three letters or more: `UTC+02:00`.
fn posix_zone(name: &str) -> Result<Tz> {
    let offset = name.trim().trim_start_matches(|character: char| character.is_ascii_alphabetic());
    let letters = name.trim().len() - offset.len();
    match offset.split_at_checked(1) {
        _ if matches!(letters, 1 | 2) => known_zone(name),
        Some(("+", offset)) => known_zone(&format!("-{offset}")),
        Some(("-", offset)) => known_zone(&format!("+{offset}")),
        _ => known_zone(name),
    }
}

/// A moment becomes the time on the clock of the zone, a time on a clock the moment at which it shows that.
fn at_zone(arguments: &Arguments) -> Result<ArrayRef> {
    let names = arguments.read::<Text>(0)?;
    let mut zone = Memo::new();
    if matches!(arguments.data_type(1)?, DataType::Timestamp(_, Some(_))) {
        let moments = arguments.read::<Moment>(1)?;
        return fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
            let (Some(name), Some(utc)) = (names.get(row)?, moments.get(row)?) else { return Ok(None) };
            Ok(Some(utc.saturating_add(offset_micros(*zone.get(name, posix_zone)?, utc))))
        });
    }
    let stamps = arguments.read::<Stamp>(1)?;
    fill::<Moments, Result<Option<i64>>>(arguments, |row| {
        let (Some(name), Some(local)) = (names.get(row)?, stamps.get(row)?) else { return Ok(None) };
        Ok(Some(local.saturating_sub(offset_at(*zone.get(name, posix_zone)?, local))))
    })
}

fn at_zone_type(given: &[DataType]) -> Result<DataType> {
    let zone = match given.get(1) {
        Some(DataType::Timestamp(_, Some(_))) => None,
        _ => Some("UTC".into()),
    };
    Ok(DataType::Timestamp(TimeUnit::Microsecond, zone))
}

/// MySQL's `convert_tz(t, from, to)`: null when a zone is not known.
fn convert(arguments: &Arguments) -> Result<ArrayRef> {
    let stamps = arguments.read::<Stamp>(0)?;
    let (from, to) = (arguments.read::<Text>(1)?, arguments.read::<Text>(2)?);
    fill::<Stamps, Result<Option<i64>>>(arguments, |row| {
        let (Some(local), Some(from), Some(to)) = (stamps.get(row)?, from.get(row)?, to.get(row)?) else {
            return Ok(None);
        };
        let (Ok(from), Ok(to)) = (known_zone(from), known_zone(to)) else { return Ok(None) };
        let utc = local.saturating_sub(offset_at(from, local));
        Ok(Some(utc.saturating_add(offset_micros(to, utc))))
    })
}

/// Spark's `from_utc_timestamp` and `to_utc_timestamp`.
fn shift(arguments: &Arguments, from_utc: fn(Tz, i64) -> i64) -> Result<ArrayRef> {
    let (stamps, names) = (arguments.read::<Stamp>(0)?, arguments.read::<Text>(1)?);
    let mut zone = Memo::new();
    fill::<Stamps, Result<Option<i64>>>(arguments, |row| match (stamps.get(row)?, names.get(row)?) {
        (Some(stamp), Some(name)) => Ok(Some(from_utc(*zone.get(name, known_zone)?, stamp))),
        _ => Ok(None),
    })
}

/// Numbers can be infinite; our dates cannot, so every date is finite.
fn is_finite(arguments: &Arguments) -> Result<ArrayRef> {
    match arguments.data_type(0)? {
        DataType::Float64 => map1::<Float, Flag, _>(arguments, f64::is_finite),
        DataType::Interval(_) => map1::<crate::values::Interval, Flag, _>(arguments, |_| true),
        _ => map1::<Stamp, Flag, _>(arguments, |_| true),
    }
}

const SHIFTED: &[&[Kind]] = &[&[At, Words]];

pub(super) const FUNCTIONS: &[Function] = functions! {
    scalar;
    "timezone": &[&[Words, At]], By(at_zone_type), at_zone =>
        "a timestamp with time zone on the clock of a zone, or the moment of a timestamp in a zone";
    "convert_tz": &[&[At, Words, Words]], Stamp, convert => "a timestamp of one zone in another one";
    "from_utc_timestamp": SHIFTED, Stamp,
        |a| shift(a, |zone, utc| utc.saturating_add(offset_micros(zone, utc))) =>
        "a timestamp of UTC on the clock of a zone";
    "to_utc_timestamp": SHIFTED, Stamp,
        |a| shift(a, |zone, local| local.saturating_sub(offset_at(zone, local))) =>
        "a timestamp of a zone in UTC";
    "isfinite": &[&[At], &[Kind::Interval], &[Kind::Float]], Bool, is_finite =>
        "whether a number or date is finite";
};
