//! What a text is as a number, a date or a time, in the notations that files have.

use arrow::datatypes::TimeUnit;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use std::borrow::Cow;

const DAY_SECONDS: i64 = 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DateOrder {
    #[default]
    Ymd,
    Dmy,
    Mdy,
    /// With the name of the month: `31-Jan-2024`, `Jan 31, 2024`.
    Named,
}

impl DateOrder {
    /// From the one that is taken first where several fit.
    pub const ALL: [Self; 4] = [Self::Ymd, Self::Dmy, Self::Mdy, Self::Named];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ymd => "year-month-day",
            Self::Dmy => "day-month-year",
            Self::Mdy => "month-day-year",
            Self::Named => "month by name",
        }
    }
}

bowshot_api::defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Notation {
        pub decimal: u8 = b'.',
        pub thousands: Option<u8> = None,
        pub order: DateOrder = DateOrder::Ymd,
        pub(crate) date_format: Option<String> = None,
        pub(crate) stamp_format: Option<String> = None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub seconds: i64,
    pub nanos: u32,
    /// Digits behind the second.
    pub digits: usize,
    pub zoned: bool,
}

impl Stamp {
    /// In units of which a second has so many; `None` where that does not fit, or some of the fraction would be lost.
    pub fn in_units(self, per_second: i64) -> Option<i64> {
        let (fraction, unit) = (i64::from(self.nanos), 1_000_000_000 / per_second);
        (fraction % unit == 0).then_some(())?;
        self.seconds.checked_mul(per_second)?.checked_add(fraction / unit)
    }
}

pub(crate) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

pub fn boolean(text: &[u8]) -> Option<bool> {
    match text.len() {
        4 if text.eq_ignore_ascii_case(b"true") => Some(true),
        5 if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

/// The same with the short words that a column of declared truth values may have.
pub(crate) fn any_boolean(text: &[u8]) -> Option<bool> {
    boolean(text).or_else(|| match text.to_ascii_lowercase().as_slice() {
        b"t" | b"1" | b"yes" | b"y" | b"on" => Some(true),
        b"f" | b"0" | b"no" | b"n" | b"off" => Some(false),
        _ => None,
    })
}

pub fn integer(text: &[u8], thousands: Option<u8>) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits {
        if Some(*byte) == thousands {
            continue;
        }
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Downwards, since the least number has no positive twin.
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

pub(crate) fn huge(text: &[u8]) -> Option<i128> {
    let (negative, digits) = sign(text);
    let all = !digits.is_empty() && digits.len() <= 38 && digits.iter().all(u8::is_ascii_digit);
    if !all {
        return None;
    }
    let value = digits.iter().fold(0_i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    Some(if negative { -value } else { value })
}

/// Whether a number is negative, and what stands behind its sign.
pub(crate) fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Whether a number would lose what a code begins with: zeros, or a plus, as before a country's prefix.
pub(crate) fn is_padded(text: &[u8]) -> bool {
    let (_, digits) = sign(text);
    let begins = matches!(digits, [b'0', b'0'..=b'9', ..]) || text.first() == Some(&b'+');
    let is_of_number =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'e' | b'E' | b'-' | b'+');
    begins && !digits.is_empty() && digits.iter().all(is_of_number)
}

/// Whether signs between thousands, where there are some, stand between thousands.
pub(crate) fn is_well_grouped(text: &[u8], notation: &Notation) -> bool {
    notation.thousands.is_none_or(|sign| !text.contains(&sign) || is_grouped(text, sign, notation.decimal))
}

pub fn float(text: &[u8], notation: &Notation) -> Option<f64> {
    plain_float(&plain(text, notation)?)
}

/// A number with a point and without signs between thousands.
pub fn plain<'a>(text: &'a [u8], notation: &Notation) -> Option<Cow<'a, [u8]>> {
    if notation.decimal == b'.' && notation.thousands.is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut plain = Vec::with_capacity(text.len());
    for byte in text {
        match *byte {
            byte if Some(byte) == notation.thousands => {}
            byte if byte == notation.decimal => plain.push(b'.'),
            b'.' => return None,
            byte => plain.push(byte),
        }
    }
    Some(Cow::Owned(plain))
}

/// `-12.34` of few digits. Digits and power of ten are both exact, so that the quotient is rounded once, as it is to be.
pub(crate) fn short_decimal(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.len() > POWERS.len() {
        return None;
    }
    let (mut value, mut point) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(digits.len() - at - 1),
            _ => return None,
        }
    }
    if digits.len() == usize::from(point.is_some()) {
        return None;
    }
    let value = value as f64 / POWERS.get(point.unwrap_or(0))?;
    Some(if negative { -value } else { value })
}

/// Up to the digits that a floating-point number holds whatever they are.
const POWERS: [f64; 15] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];

fn plain_float(text: &[u8]) -> Option<f64> {
    if let Some(value) = short_decimal(text) {
        return Some(value);
    }
    let (_, digits) = sign(text);
    let number = matches!(digits.first(), Some(b'0'..=b'9' | b'.'));
    let word =
        || [b"nan".as_slice(), b"inf", b"infinity"].iter().any(|word| digits.eq_ignore_ascii_case(word));
    if !number && !word() {
        return None;
    }
    // Digits are no infinity, however many there are.
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite() || !number)
}

/// Whether the digits before the decimal sign stand in groups of three: `1,234,567.8`.
pub(crate) fn is_grouped(text: &[u8], thousands: u8, decimal: u8) -> bool {
    let (_, digits) = sign(text);
    let whole = digits.split(|byte| *byte == decimal).next().unwrap_or_default();
    let mut groups = whole.split(|byte| *byte == thousands);
    let first = groups.next().unwrap_or_default();
    let all = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
    let mut more = 0;
    (1..=3).contains(&first.len())
        && all(first)
        && groups.all(|group| {
            more += 1;
            group.len() == 3 && all(group)
        })
        && more > 0
}

/// Days since 1970.
pub fn date(text: &[u8], notation: &Notation) -> Option<i32> {
    if let Some(format) = &notation.date_format {
        let parsed = NaiveDate::parse_from_str(std::str::from_utf8(text).ok()?, format).ok()?;
        return Some(parsed.to_epoch_days());
    }
    match date_part(text, notation.order)? {
        (days, []) => i32::try_from(days).ok(),
        _ => None,
    }
}

pub fn stamp(text: &[u8], notation: &Notation) -> Option<Stamp> {
    if let Some(format) = &notation.stamp_format {
        return formatted(std::str::from_utf8(text).ok()?, format);
    }
    let (days, rest) = date_part(text, notation.order)?;
    let midnight = days * DAY_SECONDS;
    if rest.is_empty() {
        return Some(Stamp { seconds: midnight, nanos: 0, digits: 0, zoned: false });
    }
    let rest = match rest {
        [b'T' | b't' | b' ', rest @ ..] => rest,
        [b',', b' ', rest @ ..] => rest,
        _ => return None,
    };
    let (clock, rest) = clock(rest)?;
    let (seconds, rest) = half_of_day(clock.seconds, rest)?;
    let offset = zone(rest)?;
    Some(Stamp {
        seconds: midnight + seconds - offset.unwrap_or(0),
        nanos: clock.nanos,
        digits: clock.digits,
        zoned: offset.is_some(),
    })
}

fn formatted(text: &str, format: &str) -> Option<Stamp> {
    let (utc, zoned) = if format.contains("%z") || format.contains("%:z") || format.contains("%#z") {
        (DateTime::parse_from_str(text, format).ok()?.naive_utc(), true)
    } else {
        let moment = NaiveDateTime::parse_from_str(text, format).ok();
        let day = || NaiveDate::parse_from_str(text, format).ok()?.and_hms_opt(0, 0, 0);
        (moment.or_else(day)?, false)
    };
    let (utc, digits) = (utc.and_utc(), if format.contains("%f") || format.contains("%.f") { 6 } else { 0 });
    Some(Stamp { seconds: utc.timestamp(), nanos: utc.timestamp_subsec_nanos(), digits, zoned })
}

/// A format of `strptime` in the words of the library: there `%f` are billionths of a second.
pub(crate) fn strptime(format: &str) -> String {
    format.replace(".%f", "%.f").replace(".%g", "%.f").replace(".%n", "%.f")
}

/// Microseconds since midnight; none of a time that has more digits.
pub fn time(text: &[u8]) -> Option<i64> {
    let (clock, rest) = clock(text)?;
    let (seconds, rest) = half_of_day(clock.seconds, rest)?;
    let whole = rest.is_empty() && clock.nanos.is_multiple_of(1_000);
    whole.then(|| seconds * 1_000_000 + i64::from(clock.nanos / 1_000))
}

/// The date that a text begins with, in days since 1970, and what follows it.
fn date_part(text: &[u8], order: DateOrder) -> Option<(i64, &[u8])> {
    if order == DateOrder::Named {
        return named_date(text);
    }
    let (first, rest) = number(text, if order == DateOrder::Ymd { 4 } else { 2 })?;
    let (separator, rest) = rest.split_first()?;
    if !matches!(separator, b'-' | b'/' | b'.') {
        return None;
    }
    let (second, rest) = number(rest, 2)?;
    let (again, rest) = rest.split_first()?;
    let (third, rest) = number(rest, if order == DateOrder::Ymd { 2 } else { 4 })?;
    if again != separator || rest.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (year, month, day) = match order {
        DateOrder::Dmy => (third, second.value, first.value),
        DateOrder::Mdy => (third, first.value, second.value),
        DateOrder::Ymd | DateOrder::Named => (first, second.value, third.value),
    };
    // `1.2.13` is a version, and `24-01-31` rather a code.
    let short = year.digits == 2;
    if short && (order == DateOrder::Ymd || (*separator == b'.' && first.digits + second.digits < 4)) {
        return None;
    }
    Some((days(full_year(year)?, month, day)?, rest))
}

#[derive(Debug, Clone, Copy)]
struct Number {
    value: i64,
    digits: usize,
}

fn number(text: &[u8], most: usize) -> Option<(Number, &[u8])> {
    let digits = text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits).filter(|_| digits > 0)?;
    let value = number.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some((Number { value, digits }, rest))
}

/// Two digits are of the years 1969 to 2068, as POSIX has it.
fn full_year(year: Number) -> Option<i64> {
    match (year.digits, year.value) {
        (4, value) => Some(value),
        (2, value @ 0..=68) => Some(2000 + value),
        (2, value) => Some(1900 + value),
        _ => None,
    }
}

fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(i64::from(date.to_epoch_days()))
}

/// `31-Jan-2024`, `31 January 2024` or `Jan 31, 2024`.
fn named_date(text: &[u8]) -> Option<(i64, &[u8])> {
    let gap = |text: &mut &[u8]| {
        let found = text.iter().take_while(|byte| matches!(byte, b' ' | b'-' | b'/' | b',' | b'.')).count();
        *text = text.get(found..).unwrap_or_default();
        (1..=2).contains(&found)
    };
    let mut rest = text;
    let (day, month);
    if text.first()?.is_ascii_digit() {
        (day, rest) = number(rest, 2)?;
        if !gap(&mut rest) {
            return None;
        }
        (month, rest) = month_name(rest)?;
    } else {
        (month, rest) = month_name(rest)?;
        if !gap(&mut rest) {
            return None;
        }
        (day, rest) = number(rest, 2)?;
    }
    if !gap(&mut rest) {
        return None;
    }
    let (year, rest) = number(rest, 4)?;
    if rest.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((days(full_year(year)?, month, day.value)?, rest))
}

fn month_name(text: &[u8]) -> Option<(i64, &[u8])> {
    const MONTHS: &[&str] = bowshot_api::words! {
        january february march april may june july august september october november december
    };
    let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, rest) = text.split_at_checked(letters)?;
    let word = word.to_ascii_lowercase();
    let found = MONTHS.iter().position(|month| {
        let month = month.as_bytes();
        word == month
            || (word.len() == 3 && month.starts_with(&word))
            || (word == b"sept" && month.starts_with(b"sept"))
    })?;
    Some((i64::try_from(found).ok()? + 1, rest))
}

struct Clock {
    seconds: i64,
    nanos: u32,
    digits: usize,
}

/// `10:30`, `10:30:05`, `10:30:05.25`
fn clock(text: &[u8]) -> Option<(Clock, &[u8])> {
    let (hour, rest) = number(text, 2)?;
    let rest = rest.strip_prefix(b":")?;
    let (minute, rest) = number(rest, 2)?;
    let (second, rest) = match rest.strip_prefix(b":") {
        Some(rest) => number(rest, 2)?,
        None => (Number { value: 0, digits: 2 }, rest),
    };
    if hour.value > 23 || minute.value > 59 || minute.digits != 2 || second.value > 59 || second.digits != 2 {
        return None;
    }
    let seconds = hour.value * 3600 + minute.value * 60 + second.value;
    let Some(fraction) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) else {
        return Some((Clock { seconds, nanos: 0, digits: 0 }, rest));
    };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return None;
    }
    let (fraction, rest) = fraction.split_at_checked(digits)?;
    let value = fraction.iter().fold(0_u32, |value, digit| value * 10 + u32::from(digit - b'0'));
    let scale = 10_u32.pow(u32::try_from(9 - digits).ok()?);
    Some((Clock { seconds, nanos: value * scale, digits }, rest))
}

/// `PM` moves the hours 1 to 11 behind noon.
fn half_of_day(seconds: i64, rest: &[u8]) -> Option<(i64, &[u8])> {
    let word = rest.strip_prefix(b" ").unwrap_or(rest);
    let Some(half) = word.get(..2) else { return Some((seconds, rest)) };
    let (am, pm) = (half.eq_ignore_ascii_case(b"am"), half.eq_ignore_ascii_case(b"pm"));
    if !am && !pm {
        return Some((seconds, rest));
    }
    let hour = seconds / 3600;
    if !(1..=12).contains(&hour) {
        return None;
    }
    let seconds = (hour % 12 + if pm { 12 } else { 0 }) * 3600 + seconds % 3600;
    Some((seconds, word.get(2..).unwrap_or_default()))
}

/// Seconds east of UTC, `Some(None)` without a zone.
#[expect(clippy::option_option, reason = "no zone is not the same as a wrong one")]
fn zone(text: &[u8]) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    let text = text.strip_prefix(b" ").unwrap_or(text);
    if [b"z".as_slice(), b"utc", b"gmt"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Some(Some(0));
    }
    let (sign, rest) = match text.split_first()? {
        (b'+', rest) => (1, rest),
        (b'-', rest) => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = number(rest, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes =
        if rest.is_empty() { 0 } else { number(rest, 2).filter(|(_, rest)| rest.is_empty())?.0.value };
    (hours.digits == 2 && hours.value <= 15 && minutes < 60)
        .then_some(Some(sign * (hours.value * 3600 + minutes * 60)))
}

#[cfg(test)]
mod tests;
