//! The forms of an interval, read part by part.

use super::{Amount, DIGITS, Fields, HOUR, MINUTE, SECOND, Sum, Unit, part};

/// `1 year -2 mons 3 days 04:05:06`, `1-2 3 4:05:06`, `@ 1 day ago`.
pub(super) fn by_words(text: &str, fields: Fields) -> Option<Sum> {
    let mut reader = Reader { rest: text };
    let mut sum = Sum::default();
    // A number whose unit is still to come.
    let mut number: Option<Amount> = None;
    let mut empty = true;
    while reader.skip_spaces() {
        let word = reader.word();
        if word == "ago" {
            // Stands at the end, behind something.
            return (!empty && number.is_none() && !reader.skip_spaces()).then(|| sum.negated());
        }
        if !word.is_empty() {
            sum = sum.add(number.take()?, Unit::named(word)?)?;
            empty = false;
            continue;
        }
        if reader.take('@') {
            continue;
        }
        let negative = reader.sign();
        if reader.clock_follows() {
            // `1 04:05:06`: a number before a time counts days.
            if let Some(days) = number.take() {
                sum = sum.add(days, Unit::Day)?;
            }
            reader.clock(&mut sum, negative, fields)?;
        } else if reader.months_follow() {
            reader.years_and_months(&mut sum, negative)?;
        } else if number.is_none() {
            number = Some(reader.amount(negative)?);
            continue;
        } else {
            return None;
        }
        empty = false;
    }
    match number {
        Some(number) => sum.add(number, fields.last.or(fields.first).unwrap_or(Unit::Second)),
        None => (!empty).then_some(sum),
    }
}

/// `1y2m3dt4h5m6s`, `0001-02-03t04:05:06`: what stands behind the `P` of ISO 8601.
pub(super) fn by_designators(text: &str) -> Option<Sum> {
    let (date, time) = match text.split_once('t') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return None;
    }
    let mut reader = Reader { rest: date };
    if reader.months_follow() {
        reader.date(&mut sum)?;
    } else {
        sum = reader.designated(sum, |unit| match unit {
            "y" => Some(Unit::Year),
            "m" => Some(Unit::Month),
            "w" => Some(Unit::Week),
            "d" => Some(Unit::Day),
            _ => None,
        })?;
    }
    let Some(time) = time else { return Some(sum) };
    let mut reader = Reader { rest: time };
    if reader.clock_follows() {
        reader.clock(&mut sum, false, Fields::default())?;
        return reader.rest.is_empty().then_some(sum);
    }
    reader.designated(sum, |unit| match unit {
        "h" => Some(Unit::Hour),
        "m" => Some(Unit::Minute),
        "s" => Some(Unit::Second),
        _ => None,
    })
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Whether anything is left.
    fn skip_spaces(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        !self.rest.is_empty()
    }

    fn take(&mut self, character: char) -> bool {
        match self.rest.strip_prefix(character) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn taken(&mut self, of: fn(&char) -> bool) -> &'a str {
        let end = self.rest.find(|character| !of(&character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn word(&mut self) -> &'a str {
        self.taken(char::is_ascii_alphabetic)
    }

    fn digits(&mut self) -> &'a str {
        self.taken(char::is_ascii_digit)
    }

    /// Whether there is a minus.
    fn sign(&mut self) -> bool {
        let negative = self.take('-');
        if !negative {
            self.take('+');
        }
        self.skip_spaces();
        negative
    }

    /// The character behind the digits that come, and whether another digit follows it.
    fn behind_digits(&self) -> (bool, Option<char>, bool) {
        let after = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let mut characters = after.chars();
        let next = characters.next();
        (after.len() < self.rest.len(), next, characters.next().is_some_and(|c| c.is_ascii_digit()))
    }

    fn clock_follows(&self) -> bool {
        matches!(self.behind_digits(), (true, Some(':'), true))
    }

    fn months_follow(&self) -> bool {
        matches!(self.behind_digits(), (true, Some('-'), true))
    }

    /// The end of a part: nothing, or a space.
    fn at_end(&self) -> bool {
        self.rest.chars().next().is_none_or(char::is_whitespace)
    }

    fn whole(&mut self) -> Option<i128> {
        number(self.digits())
    }

    /// `12`, `1.5`, `.5`.
    fn amount(&mut self, negative: bool) -> Option<Amount> {
        let whole = self.digits();
        let behind = if self.take('.') { self.digits() } else { "" };
        if whole.is_empty() && behind.is_empty() {
            return None;
        }
        let whole = if whole.is_empty() { 0 } else { number(whole)? };
        let fraction = parts(behind);
        Some(if negative {
            Amount { whole: -whole, fraction: -fraction }
        } else {
            Amount { whole, fraction }
        })
    }

    /// Numbers, each with the letter of its unit behind it.
    fn designated(&mut self, mut sum: Sum, unit: fn(&str) -> Option<Unit>) -> Option<Sum> {
        while self.skip_spaces() {
            let negative = self.sign();
            let amount = self.amount(negative)?;
            sum = sum.add(amount, unit(self.word())?)?;
        }
        Some(sum)
    }

    /// `04:05`, `04:05:06.5`; of minutes and seconds where there is a point or the literal says so.
    fn clock(&mut self, sum: &mut Sum, negative: bool, fields: Fields) -> Option<()> {
        let first = self.whole()?;
        self.take(':').then_some(())?;
        let second = self.whole()?;
        let third = if self.take(':') { Some(self.whole()?) } else { None };
        let point = self.take('.');
        let fraction = if point { parts(self.digits()) } else { 0 };
        let of_minutes = point || (fields.first, fields.last) == (Some(Unit::Minute), Some(Unit::Second));
        let (hours, minutes, seconds) = match third {
            Some(seconds) => (first, second, seconds),
            None if of_minutes => (0, first, second),
            None => (first, second, 0),
        };
        if minutes > 59 || seconds > 59 || !self.at_end() {
            return None;
        }
        for unit in [Unit::Hour, Unit::Minute, Unit::Second] {
            sum.see(unit)?;
        }
        let time = hours * HOUR + minutes * MINUTE + seconds * SECOND + part(fraction, Unit::Second);
        sum.nanoseconds += if negative { -time } else { time };
        Some(())
    }

    /// `1-2`: a year and two months.
    fn years_and_months(&mut self, sum: &mut Sum, negative: bool) -> Option<()> {
        let years = self.whole()?;
        self.take('-').then_some(())?;
        let months = self.whole()?;
        if months > 11 || !self.at_end() {
            return None;
        }
        sum.see(Unit::Year)?;
        sum.see(Unit::Month)?;
        let months = years * 12 + months;
        sum.months += if negative { -months } else { months };
        Some(())
    }

    /// `0001-02-03` and `0001-02`, which are no day of the calendar here.
    fn date(&mut self, sum: &mut Sum) -> Option<()> {
        let years = self.whole()?;
        self.take('-').then_some(())?;
        let months = self.whole()?;
        let days = if self.take('-') { self.whole()? } else { 0 };
        for unit in [Unit::Year, Unit::Month, Unit::Day] {
            sum.see(unit)?;
        }
        sum.months += years * 12 + months;
        sum.days += days;
        self.rest.is_empty().then_some(())
    }
}

/// More digits than a number of 64 bits has fit nowhere.
fn number(digits: &str) -> Option<i128> {
    if digits.len() > 19 { None } else { digits.parse().ok() }
}

/// The digits behind a point, in parts of one.
fn parts(digits: &str) -> i128 {
    let read: String = digits.chars().chain(std::iter::repeat('0')).take(DIGITS).collect();
    read.parse().unwrap_or(0)
}
