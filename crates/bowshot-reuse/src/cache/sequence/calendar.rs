//! Units of time in names (days, months, …), counted since a fixed date, so that the next one is one more. Independent of their format.

use chrono::{Datelike, NaiveDate, TimeDelta, Weekday};

/// Days from the epoch, a Thursday, to a Monday.
const MONDAY: i64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Unit {
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Half,
    Year,
}

/// The numbers of which a time is written. Those that it does not have are 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    /// Which half, quarter, week or day of the year.
    pub(super) part: i64,
}

impl Unit {
    /// Which one it is; `None` if there is no such time.
    pub(super) fn ordinal(self, fields: Fields) -> Option<i64> {
        let Fields { year, month, hour, part, .. } = fields;
        let counted = |number: i64, last: i64| {
            (1..=last).contains(&number).then(|| year.saturating_mul(last).saturating_add(number - 1))
        };
        match self {
            Self::Hour => fields.days().filter(|_| (0..24).contains(&hour)).map(|days| days * 24 + hour),
            Self::Day => fields.days(),
            Self::Week => {
                let (year, week) = (i32::try_from(year).ok()?, u32::try_from(part).ok()?);
                let monday = NaiveDate::from_isoywd_opt(year, week, Weekday::Mon)?;
                Some((since_epoch(monday) - MONDAY).div_euclid(7))
            }
            Self::Month => counted(month, 12),
            Self::Quarter => counted(part, 4),
            Self::Half => counted(part, 2),
            Self::Year => Some(year),
        }
    }

    /// The numbers of which it is written.
    pub(super) fn fields(self, ordinal: i64) -> Fields {
        let (of, none) =
            (|last: i64| (ordinal.div_euclid(last), ordinal.rem_euclid(last)), Fields::default());
        match self {
            Self::Hour => Fields { hour: of(24).1, ..Fields::of_date(date(of(24).0)) },
            Self::Day => Fields::of_date(date(ordinal)),
            Self::Week => {
                let week = date(ordinal.saturating_mul(7).saturating_add(MONDAY)).iso_week();
                Fields { year: week.year().into(), part: week.week().into(), ..none }
            }
            Self::Month => Fields { year: of(12).0, month: of(12).1 + 1, ..none },
            Self::Quarter => Fields { year: of(4).0, part: of(4).1 + 1, ..none },
            Self::Half => Fields { year: of(2).0, part: of(2).1 + 1, ..none },
            Self::Year => Fields { year: ordinal, ..none },
        }
    }
}

impl Fields {
    fn of_date(date: NaiveDate) -> Self {
        Self {
            year: date.year().into(),
            month: date.month().into(),
            day: date.day().into(),
            hour: 0,
            part: date.ordinal().into(),
        }
    }

    /// Days since the epoch: by month and day, or if there are none by the day of the year.
    fn days(self) -> Option<i64> {
        let year = i32::try_from(self.year).ok()?;
        let number = |number: i64| u32::try_from(number).ok();
        let date = match self.part {
            0 => NaiveDate::from_ymd_opt(year, number(self.month)?, number(self.day)?)?,
            part => NaiveDate::from_yo_opt(year, number(part)?)?,
        };
        Some(since_epoch(date))
    }
}

fn since_epoch(date: NaiveDate) -> i64 {
    date.signed_duration_since(NaiveDate::default()).num_days()
}

/// The date so many days after the epoch. What no calendar has, which takes a step of many thousand years, is the epoch.
fn date(days: i64) -> NaiveDate {
    let epoch = NaiveDate::default();
    TimeDelta::try_days(days).and_then(|days| epoch.checked_add_signed(days)).unwrap_or(epoch)
}
