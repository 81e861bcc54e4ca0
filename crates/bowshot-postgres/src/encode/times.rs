//! Dates, times and intervals: PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01. Texts are those of `DateStyle = ISO`
//! and `IntervalStyle = postgres`, in the time zone of the session.

use super::Written;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::datatypes::TimeUnit;
use bowshot_api::offset_of_instant;
use bowshot_rowwire::encode::interval::Interval;
use bowshot_rowwire::encode::put_display;
use bowshot_rowwire::encode::time::{self, DAY_MICROS, civil_date};
use bytes::{BufMut, BytesMut};

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY_MICROS;

fn out_of_range(what: &str) -> Failure {
    Failure::new("22008", format!("a {what} is out of the range of PostgreSQL"))
}

/// A number of a unit in microseconds, rounded towards the past.
pub(super) fn micros(value: i64, unit: TimeUnit) -> Result<i64, Failure> {
    time::micros(value, unit).ok_or_else(|| out_of_range("timestamp"))
}

/// Writes a date without its era, and says whether that is before Christ.
fn put_day(days: i64, out: &mut BytesMut) -> bool {
    let (year, month, day) = civil_date(days);
    let before = year <= 0;
    let year = if before { 1 - year } else { year };
    put_display(out, format_args!("{year:04}-{month:02}-{day:02}"));
    before
}

pub(super) fn put_date(days: i32, out: &mut BytesMut) {
    if put_day(i64::from(days), out) {
        out.put_slice(b" BC");
    }
}

pub(super) fn binary_date(days: i32, out: &mut BytesMut) -> Written {
    out.put_i32(days.checked_sub(EPOCH_DAYS).ok_or_else(|| out_of_range("date"))?);
    Ok(())
}

/// Hours, minutes and seconds, with a fraction unless it is zero.
pub(super) fn put_time(micros: i64, out: &mut BytesMut) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    put_display(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        put_display(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// A timestamp in a time zone, with its offset from UTC.
pub(super) fn put_instant(micros: i64, zone: Tz, out: &mut BytesMut) {
    let distance = offset_of_instant(zone, micros.div_euclid(1_000_000));
    let local = micros.saturating_add(i64::from(distance) * 1_000_000);
    let before = put_day(local.div_euclid(DAY_MICROS), out);
    out.put_u8(b' ');
    put_time(local.rem_euclid(DAY_MICROS), out);
    let sign = if distance < 0 { '-' } else { '+' };
    let seconds = distance.unsigned_abs();
    put_display(out, format_args!("{sign}{:02}", seconds / 3_600));
    if !seconds.is_multiple_of(3_600) {
        put_display(out, format_args!(":{:02}", seconds / 60 % 60));
    }
    if !seconds.is_multiple_of(60) {
        put_display(out, format_args!(":{:02}", seconds % 60));
    }
    if before {
        out.put_slice(b" BC");
    }
}

pub(super) fn put_timestamp(micros: i64, zoned: bool, out: &mut BytesMut) {
    let before = put_day(micros.div_euclid(DAY_MICROS), out);
    out.put_u8(b' ');
    put_time(micros.rem_euclid(DAY_MICROS), out);
    if zoned {
        out.put_slice(b"+00");
    }
    if before {
        out.put_slice(b" BC");
    }
}

pub(super) fn binary_timestamp(micros: i64, out: &mut BytesMut) -> Written {
    out.put_i64(micros.checked_sub(EPOCH_MICROS).ok_or_else(|| out_of_range("timestamp"))?);
    Ok(())
}

pub(super) fn put_interval(interval: Interval, out: &mut BytesMut) {
    interval.put_text(out, |micros, out| put_time(i64::try_from(micros).unwrap_or(i64::MAX), out));
}

pub(super) fn binary_interval(interval: Interval, out: &mut BytesMut) {
    out.put_i64(interval.micros);
    out.put_i32(interval.days);
    out.put_i32(interval.months);
}
