//! Dates and times: texts as MySQL's literals, binary values in parts ("Binary Protocol Value"). Years are 0 to 9999; others
//! are errors, since no client could read them.

use super::Written;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::datatypes::TimeUnit;
use bowshot_api::offset_of_instant;
use bowshot_rowwire::encode::interval::Interval;
use bowshot_rowwire::encode::put_display;
use bowshot_rowwire::encode::time::{self, DAY_MICROS, civil_date};
use bytes::{BufMut, BytesMut};

fn out_of_range(what: &str) -> Failure {
    Failure::new(1292, "22007", format!("a {what} is out of the range of MySQL"))
        .with_hint("cast it to text in the query")
}

/// A number of a unit in microseconds, rounded towards the past.
pub(super) fn micros(value: i64, unit: TimeUnit) -> Result<i64, Failure> {
    time::micros(value, unit).ok_or_else(|| out_of_range("timestamp"))
}

/// A time zone; `None` for UTC.
pub(super) fn time_zone(zone: &str) -> Result<Option<Tz>, Failure> {
    if matches!(zone, "+00:00" | "UTC") {
        return Ok(None);
    }
    let unknown = |_| Failure::new(1298, "HY000", format!("unknown or incorrect time zone: '{zone}'"));
    zone.parse().map(Some).map_err(unknown)
}

/// A timestamp in UTC as local time in a time zone.
pub(super) fn local(micros: i64, zone: Tz) -> Result<i64, Failure> {
    let offset = i64::from(offset_of_instant(zone, micros.div_euclid(1_000_000))) * 1_000_000;
    micros.checked_add(offset).ok_or_else(|| out_of_range("timestamp"))
}

/// A day of MySQL's calendar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// The day so many days after 1970-01-01.
    pub(super) fn from_days(days: i64) -> Result<Self, Failure> {
        let (year, month, day) = civil_date(days);
        match (u16::try_from(year), u8::try_from(month), u8::try_from(day)) {
            (Ok(year @ 0..=9_999), Ok(month), Ok(day)) => Ok(Self { year, month, day }),
            _ => Err(out_of_range("date")),
        }
    }

    pub(super) fn put(self, out: &mut BytesMut) {
        put_display(out, format_args!("{:04}-{:02}-{:02}", self.year, self.month, self.day));
    }

    /// Without the length, which depends on what follows.
    fn put_parts(self, out: &mut BytesMut) {
        out.put_u16_le(self.year);
        out.put_slice(&[self.month, self.day]);
    }

    pub(super) fn binary(self, out: &mut BytesMut) {
        out.put_u8(4);
        self.put_parts(out);
    }
}

/// Hours, minutes and seconds, with a fraction of so many digits.
fn put_clock(micros: u64, decimals: u8, out: &mut BytesMut) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    put_display(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    match decimals {
        0 => {}
        3 => put_display(out, format_args!(".{:03}", fraction / 1_000)),
        _ => put_display(out, format_args!(".{fraction:06}")),
    }
}

/// A duration, or a time of the day.
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
    out.put_u32_le(u32::try_from(all / DAY_MICROS.unsigned_abs()).unwrap_or(u32::MAX));
    out.put_slice(&parts);
    if fraction != 0 {
        out.put_u32_le(fraction);
    }
}

pub(super) fn put_timestamp(micros: i64, decimals: u8, out: &mut BytesMut) -> Written {
    Day::from_days(micros.div_euclid(DAY_MICROS))?.put(out);
    out.put_u8(b' ');
    put_clock(micros.rem_euclid(DAY_MICROS).unsigned_abs(), decimals, out);
    Ok(())
}

pub(super) fn binary_timestamp(micros: i64, out: &mut BytesMut) -> Written {
    let day = Day::from_days(micros.div_euclid(DAY_MICROS))?;
    let (parts, fraction) = clock(micros.rem_euclid(DAY_MICROS).unsigned_abs());
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

/// As PostgreSQL writes it, since MySQL has no type for it.
pub(super) fn put_interval(interval: Interval, out: &mut BytesMut) {
    let decimals = if interval.micros % 1_000_000 == 0 { 0 } else { 6 };
    interval.put_text(out, |micros, out| put_clock(micros, decimals, out));
}
