//! Points in time: seconds since 2015 of the writer's clock, and what is behind the second.

use crate::Error;
use crate::error::corrupt;
use crate::integer_rle::Integers;
use arrow::datatypes::TimeUnit;
use chrono::{DateTime, NaiveDate, Offset, TimeZone};
use chrono_tz::Tz;

/// 1 January 2015, of which seconds are counted, in seconds of UTC.
const EPOCH: i64 = 1_420_070_400;

const NANOSECONDS: i64 = 1_000_000_000;

pub(crate) struct Times {
    seconds: Integers,
    rest: Integers,
    unit: TimeUnit,
    /// The zone of the writer, whose clock the values show.
    zone: Option<Tz>,
    epoch: i64,
}

impl Times {
    pub(crate) fn new(streams: (Integers, Integers), unit: TimeUnit, zone: Option<Tz>) -> Self {
        let (seconds, rest) = streams;
        let epoch = zone.and_then(epoch_in).unwrap_or(EPOCH);
        Self { seconds, rest, unit, zone, epoch }
    }

    pub(crate) fn read(&mut self, count: usize) -> Result<Vec<i64>, Error> {
        let (seconds, rest) = (self.seconds.read(count)?, self.rest.read(count)?);
        seconds.into_iter().zip(rest).map(|(seconds, rest)| self.time(seconds, rest)).collect()
    }

    fn time(&self, seconds: i64, rest: i64) -> Result<i64, Error> {
        let outside = || corrupt("a point in time is outside of what can be told");
        let seconds = seconds.checked_add(self.epoch).ok_or_else(outside)?;
        let seconds = match self.zone {
            Some(zone) => shown_in(zone, seconds).ok_or_else(outside)?,
            None => seconds,
        };
        let nanoseconds = nanoseconds(rest).ok_or_else(outside)?;
        // What writers do before 1970, where they round towards it.
        let seconds = if seconds < 0 && nanoseconds > 999_999 { seconds - 1 } else { seconds };
        let (each, divisor) = match self.unit {
            TimeUnit::Nanosecond => (NANOSECONDS, 1),
            _ => (1_000_000, 1_000),
        };
        let value = i128::from(seconds) * i128::from(each) + i128::from(nanoseconds.div_euclid(divisor));
        i64::try_from(value).map_err(|_| outside())
    }
}

/// The lowest three bits are how many zeros were left out, less one. Arrow's writer has negative ones before 1970.
fn nanoseconds(rest: i64) -> Option<i64> {
    let zeros = u32::try_from(rest & 7).ok()?;
    let factor = if zeros == 0 { 1 } else { 10_i64.pow(zeros + 1) };
    let nanoseconds = (rest >> 3).checked_mul(factor)?;
    (nanoseconds.abs() < NANOSECONDS).then_some(nanoseconds)
}

/// What the clock in a zone shows, in seconds as if it were the one of UTC.
fn shown_in(zone: Tz, seconds: i64) -> Option<i64> {
    let moment = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    let offset = zone.offset_from_utc_datetime(&moment).fix().local_minus_utc();
    seconds.checked_add(i64::from(offset))
}

fn epoch_in(zone: Tz) -> Option<i64> {
    let midnight = NaiveDate::from_ymd_opt(2015, 1, 1)?.and_hms_opt(0, 0, 0)?;
    Some(zone.from_local_datetime(&midnight).earliest()?.timestamp())
}
