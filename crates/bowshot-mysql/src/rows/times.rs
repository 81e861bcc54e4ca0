//! Dates and times as MySQL has them: texts as its literals are written, binary values in parts ("Binary Protocol Value"). Its
//! dates have years from 0 to 9999; others are errors, since no client could read them.

use super::Done;
use super::cells::put;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::datatypes::{TimeUnit, TimestampMicrosecondType};
use arrow::temporal_conversions::as_datetime_with_timezone;
use bytes::{BufMut, BytesMut};

const DAY: i64 = 86_400_000_000;

fn out_of_range(what: &str) -> Failure {
    Failure::new(1292, "22007", format!("a {what} is out of the range of MySQL"))
        .with_hint("cast it to text in the query")
}

/// A number of a unit in microseconds; parts of one are cut off towards the past.
pub(super) fn micros(value: i64, unit: TimeUnit) -> Result<i64, Failure> {
    let micros = match unit {
        TimeUnit::Second => value.checked_mul(1_000_000),
        TimeUnit::Millisecond => value.checked_mul(1_000),
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => Some(value.div_euclid(1_000)),
    };
    micros.ok_or_else(|| out_of_range("timestamp"))
}

/// The clocks of a time zone; `None` for those of UTC.
pub(super) fn clocks(zone: &str) -> Result<Option<Tz>, Failure> {
    if matches!(zone, "+00:00" | "UTC") {
        return Ok(None);
    }
    let unknown = |_| Failure::new(1298, "HY000", format!("unknown or incorrect time zone: '{zone}'"));
    zone.parse().map(Some).map_err(unknown)
}

/// What clocks show at a point of time, as if they showed UTC.
pub(super) fn local(micros: i64, zone: Tz) -> Result<i64, Failure> {
    let point = as_datetime_with_timezone::<TimestampMicrosecondType>(micros, zone);
    let point = point.ok_or_else(|| out_of_range("timestamp"))?;
    Ok(point.naive_local().and_utc().timestamp_micros())
}

/// A day of MySQL's calendar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// The day so many days after 1970-01-01, in the Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level Date
    /// Algorithms").
    pub(super) fn of(days: i64) -> Result<Self, Failure> {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        match (u16::try_from(year), u8::try_from(month), u8::try_from(day)) {
            (Ok(year @ 0..=9_999), Ok(month), Ok(day)) => Ok(Self { year, month, day }),
            _ => Err(out_of_range("date")),
        }
    }

    pub(super) fn put(self, out: &mut BytesMut) {
        put(out, format_args!("{:04}-{:02}-{:02}", self.year, self.month, self.day));
    }

    /// Without its length, which depends on what follows.
    fn put_parts(self, out: &mut BytesMut) {
        out.put_u16_le(self.year);
        out.put_slice(&[self.month, self.day]);
    }

    pub(super) fn binary(self, out: &mut BytesMut) {
        out.put_u8(4);
        self.put_parts(out);
    }
}

/// Hours, minutes and seconds, and the digits that the type has behind them.
fn put_clock(micros: u64, decimals: u8, out: &mut BytesMut) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    match decimals {
        0 => {}
        3 => put(out, format_args!(".{:03}", fraction / 1_000)),
        _ => put(out, format_args!(".{fraction:06}")),
    }
}

/// A span of time, or a time of the day.
pub(super) fn put_time(micros: i64, decimals: u8, out: &mut BytesMut) {
    if micros < 0 {
        out.put_u8(b'-');
    }
    put_clock(micros.unsigned_abs(), decimals, out);
}

fn clock(micros: u64) -> ([u8; 3], u32) {
    let part = |number: u64| u8::try_from(number).unwrap_or(0);
    let seconds = micros / 1_000_000 % 86_400;
    let fraction = u32::try_from(micros % 1_000_000).unwrap_or(0);
    ([part(seconds / 3_600), part(seconds / 60 % 60), part(seconds % 60)], fraction)
}

pub(super) fn binary_time(micros: i64, out: &mut BytesMut) {
    let all = micros.unsigned_abs();
    if all == 0 {
        out.put_u8(0);
        return;
    }
    let (parts, fraction) = clock(all);
    out.put_u8(if fraction == 0 { 8 } else { 12 });
    out.put_u8(u8::from(micros < 0));
    out.put_u32_le(u32::try_from(all / DAY.unsigned_abs()).unwrap_or(u32::MAX));
    out.put_slice(&parts);
    if fraction != 0 {
        out.put_u32_le(fraction);
    }
}

pub(super) fn put_timestamp(micros: i64, decimals: u8, out: &mut BytesMut) -> Done {
    Day::of(micros.div_euclid(DAY))?.put(out);
    out.put_u8(b' ');
    put_clock(micros.rem_euclid(DAY).unsigned_abs(), decimals, out);
    Ok(())
}

pub(super) fn binary_timestamp(micros: i64, out: &mut BytesMut) -> Done {
    let day = Day::of(micros.div_euclid(DAY))?;
    let (parts, fraction) = clock(micros.rem_euclid(DAY).unsigned_abs());
    let length = match (parts, fraction) {
        ([0, 0, 0], 0) => 4,
        (_, 0) => 7,
        _ => 11,
    };
    out.put_u8(length);
    day.put_parts(out);
    if length > 4 {
        out.put_slice(&parts);
    }
    if length > 7 {
        out.put_u32_le(fraction);
    }
    Ok(())
}

/// An interval of Arrow, for which MySQL has no type: the text that PostgreSQL gives it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) micros: i64,
}

impl Interval {
    /// As `EncodeInterval` in PostgreSQL's `datetime.c` writes it: a sign is told again where it changes.
    pub(super) fn put(self, out: &mut BytesMut) {
        let mut negative = false;
        let mut first = true;
        for (value, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if value == 0 {
                continue;
            }
            let space = if first { "" } else { " " };
            let sign = if negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            put(out, format_args!("{space}{sign}{value} {unit}{plural}"));
            (first, negative) = (false, value < 0);
        }
        if self.micros == 0 && !first {
            return;
        }
        if !first {
            out.put_u8(b' ');
        }
        if negative && self.micros > 0 {
            out.put_u8(b'+');
        }
        let decimals = if self.micros % 1_000_000 == 0 { 0 } else { 6 };
        put_time(self.micros, decimals, out);
    }
}
