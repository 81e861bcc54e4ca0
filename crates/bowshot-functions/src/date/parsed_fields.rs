//! A point in time from the fields that a pattern has parsed.

use super::calendar::{DAY, HOUR, MINUTE, SECOND, days_of, join};
use chrono::{Datelike, NaiveDate, NaiveTime, Weekday};

/// Fields as they are read; those that no pattern names keep their defaults.
#[derive(Debug, Default, Clone)]
pub(super) struct Gathered {
    pub(super) year: Option<i64>,
    pub(super) century: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    pub(super) day_of_year: Option<i64>,
    pub(super) iso_year: Option<i64>,
    pub(super) iso_week: Option<i64>,
    pub(super) week: Option<i64>,
    /// Sunday is 0.
    pub(super) weekday: Option<i64>,
    pub(super) julian: Option<i64>,
    pub(super) hour: Option<i64>,
    /// The hour is one of twelve, and this says which half of the day.
    pub(super) afternoon: Option<bool>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) micros: Option<i64>,
    pub(super) second_of_day: Option<i64>,
    pub(super) before_christ: bool,
    /// Seconds that the zone is ahead of UTC.
    pub(super) offset: Option<i64>,
    /// Seconds since 1970, which settle everything.
    pub(super) epoch: Option<i64>,
}

impl Gathered {
    /// Microseconds since 1970 on the clock that the text is about.
    pub(super) fn local(&self) -> Option<i64> {
        if let Some(epoch) = self.epoch {
            return epoch.checked_mul(SECOND)?.checked_add(self.micros.unwrap_or(0));
        }
        join(self.date()?.and_time(NaiveTime::MIN)).checked_add(self.clock()?)
    }

    /// Microseconds since 1970 in UTC.
    pub(super) fn instant(&self) -> Option<i64> {
        self.local()?.checked_sub(self.offset.unwrap_or(0) * SECOND)
    }

    pub(super) fn days(&self) -> Option<i32> {
        match self.epoch {
            Some(_) => i32::try_from(self.local()?.div_euclid(DAY)).ok(),
            None => days_of(self.date()?).ok(),
        }
    }

    fn date(&self) -> Option<NaiveDate> {
        if let Some(julian) = self.julian {
            return NaiveDate::from_num_days_from_ce_opt(i32::try_from(julian - 1_721_425).ok()?);
        }
        if let Some(iso_year) = self.iso_year {
            let weekday = weekday_of(self.weekday.unwrap_or(1))?;
            let week = u32::try_from(self.iso_week.unwrap_or(1)).ok()?;
            return NaiveDate::from_isoywd_opt(i32::try_from(iso_year).ok()?, week, weekday);
        }
        let year = self.whole_year()?;
        if let Some(day) = self.day_of_year {
            return NaiveDate::from_yo_opt(year, u32::try_from(day).ok()?);
        }
        if let (Some(week), None, None) = (self.week, self.month, self.day) {
            return NaiveDate::from_yo_opt(year, u32::try_from((week - 1) * 7 + 1).ok()?);
        }
        let month = u32::try_from(self.month.unwrap_or(1)).ok()?;
        let date = NaiveDate::from_ymd_opt(year, month, u32::try_from(self.day.unwrap_or(1)).ok()?)?;
        (date.year().abs() < 200_000).then_some(date)
    }

    fn whole_year(&self) -> Option<i32> {
        let year = match (self.year, self.century) {
            (Some(year), Some(century)) if year < 100 => (century - 1) * 100 + year,
            (Some(year), _) => year,
            (None, Some(century)) => (century - 1) * 100 + 1,
            // PostgreSQL's year of nothing is 1 before Christ; DuckDB's and MySQL's readers see 1900 and an error.
            (None, None) => 1900,
        };
        let year = if self.before_christ { 1 - year } else { year };
        i32::try_from(year).ok()
    }

    /// Microseconds of the day.
    pub(super) fn clock(&self) -> Option<i64> {
        if let Some(seconds) = self.second_of_day {
            return (0..86_400).contains(&seconds).then_some(seconds * SECOND);
        }
        let mut hour = self.hour.unwrap_or(0);
        if let Some(afternoon) = self.afternoon {
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + if afternoon { 12 } else { 0 };
        }
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
        fits.then_some(hour * HOUR + minute * MINUTE + second * SECOND + self.micros.unwrap_or(0))
    }
}

fn weekday_of(number: i64) -> Option<Weekday> {
    Some(match number {
        0 | 7 => Weekday::Sun,
        1 => Weekday::Mon,
        2 => Weekday::Tue,
        3 => Weekday::Wed,
        4 => Weekday::Thu,
        5 => Weekday::Fri,
        6 => Weekday::Sat,
        _ => return None,
    })
}

/// A text that is read from its beginning on.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// A number of at most so many digits.
    pub(super) fn number(&mut self, most: usize) -> Option<i64> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let number = digits.parse().ok()?;
        self.rest = rest;
        Some(number)
    }

    pub(super) fn signed(&mut self, most: usize) -> Option<i64> {
        if let Some(rest) = self.rest.strip_prefix('-') {
            self.rest = rest;
            return self.number(most).map(|number| -number);
        }
        self.rest = self.rest.strip_prefix('+').unwrap_or(self.rest);
        self.number(most)
    }

    /// Digits of a fraction, in millionths.
    pub(super) fn fraction(&mut self, most: usize) -> Option<i64> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        if digits.is_empty() { None } else { super::parse::micros_of_digits(digits) }
    }

    /// One of the names, in full or its first three letters; the position of the name.
    pub(super) fn name(&mut self, names: &[&str]) -> Option<i64> {
        let (index, length) = super::month_names::find(names, self.rest)?;
        self.rest = self.rest.get(length..)?;
        i64::try_from(index).ok()
    }

    pub(super) fn word(&mut self, word: &str) -> bool {
        let found = self.rest.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        if found {
            self.rest = self.rest.get(word.len()..).unwrap_or_default();
        }
        found
    }

    pub(super) fn half_of_day(&mut self) -> Option<bool> {
        for (word, afternoon) in [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)] {
            if self.word(word) {
                return Some(afternoon);
            }
        }
        None
    }

    pub(super) fn character(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = self.rest.get(character.len_utf8()..)?;
        Some(character)
    }

    /// `+02`, `+0200`, `+02:00`, `Z`: seconds ahead of UTC.
    pub(super) fn offset(&mut self) -> Option<i64> {
        if self.word("z") || self.word("utc") {
            return Some(0);
        }
        let sign = match self.character()? {
            '+' => 1,
            '-' => -1,
            _ => return None,
        };
        let hours = self.number(2)?;
        self.rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
        let minutes = self.number(2).unwrap_or(0);
        Some(sign * (hours * 3600 + minutes * 60))
    }
}
