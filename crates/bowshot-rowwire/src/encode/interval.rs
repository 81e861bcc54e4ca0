//! Intervals of Arrow as PostgreSQL stores and writes them; other protocols have no type for them and send the same text.

use super::put_display;
use arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano};
use bytes::{BufMut, BytesMut};

/// An interval in PostgreSQL's form.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// Months, years among them.
    pub months: i32,
    /// Days, whose length may differ.
    pub days: i32,
    /// The rest, as microseconds.
    pub micros: i64,
}

/// Of type `YearMonth`.
impl From<i32> for Interval {
    fn from(months: i32) -> Self {
        Self { months, days: 0, micros: 0 }
    }
}

impl From<IntervalDayTime> for Interval {
    fn from(value: IntervalDayTime) -> Self {
        Self { months: 0, days: value.days, micros: i64::from(value.milliseconds) * 1_000 }
    }
}

impl From<IntervalMonthDayNano> for Interval {
    fn from(value: IntervalMonthDayNano) -> Self {
        Self { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 }
    }
}

impl Interval {
    /// As `EncodeInterval` in PostgreSQL's `datetime.c` writes it: a sign is repeated where it changes. `put_clock` writes
    /// microseconds as hours, minutes and seconds.
    pub fn put_text(self, out: &mut BytesMut, put_clock: impl FnOnce(u64, &mut BytesMut)) {
        let mut negative = false;
        let mut first = true;
        for (value, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if value == 0 {
                continue;
            }
            let space = if first { "" } else { " " };
            let sign = if negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            put_display(out, format_args!("{space}{sign}{value} {unit}{plural}"));
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
        put_clock(self.micros.unsigned_abs(), out);
    }
}
