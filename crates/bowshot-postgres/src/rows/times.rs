//! Dates, times and intervals: PostgreSQL counts from 2000-01-01 in days and microseconds, Arrow from 1970-01-01. Texts are
//! those of `DateStyle = ISO` and `IntervalStyle = postgres`; timestamps with a time zone are shown as the clocks of the session's zone
//! show them.

use super::Done;
use super::cells::put;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::datatypes::TimeUnit;
use bytes::{BufMut, BytesMut};
use chrono::{DateTime, Offset, TimeZone};

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY;
const DAY: i64 = 86_400_000_000;

fn out_of_range(what: &str) -> Failure {
    Failure::new("22008", format!("a {what} is out of the range of PostgreSQL"))
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

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar (H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Writes a date without its era, and says whether that is before Christ.
fn put_day(days: i64, out: &mut BytesMut) -> bool {
    let (year, month, day) = civil(days);
    let before = year <= 0;
    let shown = if before { 1 - year } else { year };
    put(out, format_args!("{shown:04}-{month:02}-{day:02}"));
    before
}

pub(super) fn put_date(days: i32, out: &mut BytesMut) {
    if put_day(i64::from(days), out) {
        out.put_slice(b" BC");
    }
}

pub(super) fn binary_date(days: i32, out: &mut BytesMut) -> Done {
    out.put_i32(days.checked_sub(EPOCH_DAYS).ok_or_else(|| out_of_range("date"))?);
    Ok(())
}

/// Hours, minutes, seconds, and as many digits after them as are not zero.
pub(super) fn put_time(micros: i64, out: &mut BytesMut) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        put(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// As the clocks of a zone show it, with their distance from UTC in hours, minutes and seconds.
pub(super) fn put_instant(micros: i64, zone: Tz, out: &mut BytesMut) {
    // Beyond the years that the calendar knows, clocks are those of UTC.
    let moment = DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc());
    let distance = moment.map_or(0, |moment| zone.offset_from_utc_datetime(&moment).fix().local_minus_utc());
    let local = micros.saturating_add(i64::from(distance) * 1_000_000);
    let before = put_day(local.div_euclid(DAY), out);
    out.put_u8(b' ');
    put_time(local.rem_euclid(DAY), out);
    let sign = if distance < 0 { '-' } else { '+' };
    let seconds = distance.unsigned_abs();
    put(out, format_args!("{sign}{:02}", seconds / 3_600));
    if !seconds.is_multiple_of(3_600) {
        put(out, format_args!(":{:02}", seconds / 60 % 60));
    }
    if !seconds.is_multiple_of(60) {
        put(out, format_args!(":{:02}", seconds % 60));
    }
    if before {
        out.put_slice(b" BC");
    }
}

pub(super) fn put_timestamp(micros: i64, zoned: bool, out: &mut BytesMut) {
    let before = put_day(micros.div_euclid(DAY), out);
    out.put_u8(b' ');
    put_time(micros.rem_euclid(DAY), out);
    if zoned {
        out.put_slice(b"+00");
    }
    if before {
        out.put_slice(b" BC");
    }
}

pub(super) fn binary_timestamp(micros: i64, out: &mut BytesMut) -> Done {
    out.put_i64(micros.checked_sub(EPOCH_MICROS).ok_or_else(|| out_of_range("timestamp"))?);
    Ok(())
}

/// An interval as PostgreSQL keeps it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) micros: i64,
}

impl Interval {
    pub(super) fn binary(self, out: &mut BytesMut) {
        out.put_i64(self.micros);
        out.put_i32(self.days);
        out.put_i32(self.months);
    }

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
        if self.micros < 0 {
            out.put_u8(b'-');
        } else if negative {
            out.put_u8(b'+');
        }
        let micros = self.micros.unsigned_abs();
        put_time(i64::try_from(micros).unwrap_or(i64::MAX), out);
    }
}
