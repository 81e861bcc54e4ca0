//! Intervals as PostgreSQL reads them: `1 year 2 months`, `3 days 04:05:06`, `1-2`, `P1Y2M3DT4H`, `1 day ago`.
//!
//! A fraction is handed down: of years to months, of months and weeks to days and time, of days to time. Each part has a sign
//! of its own: `-3 days 04:05:06` is three days less four hours.

mod reader;

use bowshot_api::{Error, Reason, Result};
use reader::{by_designators, by_words};

/// Months, days and time stand apart: neither months nor days are always as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub nanoseconds: i64,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Millennium,
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// The units behind a literal: `INTERVAL '1-2' YEAR TO MONTH`. A number without a unit counts the last of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fields {
    pub(crate) first: Option<Unit>,
    pub(crate) last: Option<Unit>,
    /// Digits of a second.
    pub(crate) digits: Option<u64>,
}

/// The parts of a fraction are so many of one.
const ONE: i128 = 1_000_000_000_000_000_000;
/// As many digits are read behind a point; further ones say less than a nanosecond.
const DIGITS: usize = 18;
const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;
const MICROSECOND: i128 = 1_000;
/// Days of a month where only a part of one counts.
const DAYS_OF_MONTH: i128 = 30;

/// The interval that a text means.
///
/// # Errors
/// `Invalid` for texts that mean none, and for intervals that are too long.
pub fn read_interval(text: &str) -> Result<Interval> {
    read(text, Fields::default())
}

/// The same with units behind it.
pub(crate) fn read(text: &str, fields: Fields) -> Result<Interval> {
    let lower = text.trim().to_ascii_lowercase();
    let sum = match lower.strip_prefix('p') {
        Some(designated) => by_designators(designated),
        None => by_words(&lower, fields),
    };
    let sum = sum.ok_or_else(|| {
        Error::invalid(format!("invalid input syntax for type interval: \"{text}\""))
            .with_reason(Reason::InvalidDatetime)
            .with_hint("write it as in '1 year 2 months 3 days 04:05:06'")
    })?;
    sum.cut(fields).interval().ok_or_else(|| {
        Error::invalid(format!("interval field value out of range: \"{text}\""))
            .with_reason(Reason::DatetimeOutOfRange)
    })
}

impl Interval {
    /// The same length into the other direction, if there is one.
    pub(crate) fn negated(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            nanoseconds: self.nanoseconds.checked_neg()?,
        })
    }

    /// A text in which every part is whole.
    pub(crate) fn text(self) -> String {
        let parts = [
            (i64::from(self.months), "months"),
            (i64::from(self.days), "days"),
            (self.nanoseconds, "nanoseconds"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count != 0)
            .map(|(count, unit)| format!("{count} {unit}"))
            .collect();
        if parts.is_empty() { "0 days".to_owned() } else { parts.join(" ") }
    }
}

impl Unit {
    /// By PostgreSQL's names and their short forms.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "mil" | "mils" | "millennium" | "millennia" | "millenniums" | "millenium" => Self::Millennium,
            "c" | "cent" | "cents" | "century" | "centuries" => Self::Century,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "qtr" | "quarter" | "quarters" => Self::Quarter,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "w" | "week" | "weeks" => Self::Week,
            "d" | "day" | "days" => Self::Day,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => {
                Self::Millisecond
            }
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => {
                Self::Microsecond
            }
            "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => Self::Nanosecond,
            _ => return None,
        })
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }

    /// Months of one, for units that have a whole number of them.
    fn months(self) -> Option<i128> {
        Some(match self {
            Self::Millennium => 12_000,
            Self::Century => 1_200,
            Self::Decade => 120,
            Self::Year => 12,
            Self::Quarter => 3,
            Self::Month => 1,
            _ => return None,
        })
    }

    /// Nanoseconds of one, for units of time.
    fn nanoseconds(self) -> i128 {
        match self {
            Self::Hour => HOUR,
            Self::Minute => MINUTE,
            Self::Second => SECOND,
            Self::Millisecond => SECOND / 1_000,
            Self::Microsecond => MICROSECOND,
            Self::Nanosecond => 1,
            _ => DAY,
        }
    }
}

/// A number with its sign on both parts.
#[derive(Debug, Clone, Copy)]
struct Amount {
    whole: i128,
    fraction: i128,
}

/// What was read so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    months: i128,
    days: i128,
    nanoseconds: i128,
    /// Bits of the units that were there: none is there twice.
    seen: u32,
}

impl Sum {
    fn add(mut self, amount: Amount, unit: Unit) -> Option<Self> {
        self.see(unit)?;
        let Amount { whole, fraction } = amount;
        match unit {
            Unit::Month => {
                self.months += whole;
                self.add_days(fraction * DAYS_OF_MONTH);
            }
            Unit::Week => {
                self.days += whole.checked_mul(7)?;
                self.add_days(fraction * 7);
            }
            Unit::Day => {
                self.days += whole;
                self.add_days(fraction);
            }
            unit => match unit.months() {
                Some(months) => self.months += whole.checked_mul(months)? + nearest(fraction * months, ONE),
                None => self.nanoseconds += whole.checked_mul(unit.nanoseconds())? + part(fraction, unit),
            },
        }
        Some(self)
    }

    fn see(&mut self, unit: Unit) -> Option<()> {
        if self.seen & unit.bit() != 0 {
            return None;
        }
        self.seen |= unit.bit();
        Some(())
    }

    /// Days in parts of one: those of less than a day are time.
    fn add_days(&mut self, parts: i128) {
        self.days += parts / ONE;
        self.nanoseconds += part(parts % ONE, Unit::Day);
    }

    fn negated(self) -> Self {
        Self { months: -self.months, days: -self.days, nanoseconds: -self.nanoseconds, seen: self.seen }
    }

    /// Without what is smaller than the last of the units that a literal names.
    fn cut(mut self, fields: Fields) -> Self {
        let time = match fields.last.or(fields.first) {
            Some(Unit::Year) => {
                self.months -= self.months % 12;
                self.days = 0;
                DAY
            }
            Some(Unit::Month) => {
                self.days = 0;
                DAY
            }
            Some(Unit::Day) => DAY,
            Some(Unit::Hour) => HOUR,
            Some(Unit::Minute) => MINUTE,
            _ => 0,
        };
        match (time, fields.digits) {
            (DAY, _) => self.nanoseconds = 0,
            (0, Some(digits @ 0..=5)) => {
                let step = (0..9 - digits).fold(1_i128, |step, _| step * 10);
                self.nanoseconds = nearest(self.nanoseconds, step) * step;
            }
            (0, _) => {}
            (step, _) => self.nanoseconds -= self.nanoseconds % step,
        }
        self
    }

    fn interval(self) -> Option<Interval> {
        Some(Interval {
            months: i32::try_from(self.months).ok()?,
            days: i32::try_from(self.days).ok()?,
            nanoseconds: i64::try_from(self.nanoseconds).ok()?,
        })
    }
}

/// A quotient, halves away from zero.
fn nearest(value: i128, step: i128) -> i128 {
    let half = if value < 0 { -step / 2 } else { step / 2 };
    (value + half) / step
}

/// The nanoseconds of a part of a unit, in whole microseconds.
fn part(fraction: i128, unit: Unit) -> i128 {
    if unit == Unit::Nanosecond {
        return 0;
    }
    nearest(fraction * (unit.nanoseconds() / MICROSECOND), ONE) * MICROSECOND
}
