//! Dates and timestamps from text without a pattern.

use super::calendar::{HOUR, MINUTE, SECOND, join};
use super::month_names;
use crate::values::offset_at;
use arrow::array::timezone::Tz;
use chrono::NaiveDate;
use datafusion::common::{Result, exec_err};

/// Microseconds since 1970 on the clock that the text is about; a zone in it is passed over.
pub(crate) fn stamp_of_text(text: &str) -> Result<i64> {
    match read_time(text) {
        Some((micros, _)) => Ok(micros),
        None => exec_err!("`{text}` is not a date or timestamp; write it as `2024-05-06 07:08:09`"),
    }
}

/// Microseconds since 1970 in UTC, with the zone that the text names.
pub(crate) fn instant_of_text(text: &str) -> Result<i64> {
    let local = stamp_of_text(text)?;
    Ok(match read_time(text).and_then(|(_, zone)| zone) {
        Some(zone) => local.saturating_sub(offset_at(zone, local)),
        None => local,
    })
}

/// Microseconds since 1970 on the clock that the text is about, and the zone that it names.
pub fn read_time(text: &str) -> Option<(i64, Option<Tz>)> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("epoch") {
        return Some((0, "UTC".parse().ok()));
    }
    let (date, rest) = read_date(text)?;
    let midnight = join(date.and_time(chrono::NaiveTime::MIN));
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest).trim_start();
    if rest.is_empty() {
        return Some((midnight, None));
    }
    let (time, rest) = read_clock(rest)?;
    Some((midnight.checked_add(time)?, read_zone(rest.trim())?))
}

/// Microseconds of a day on the clock: `07:08:09.5`, `070809`, also behind a date. A zone is passed over.
pub fn read_time_of_day(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_bare = matches!(text.len(), 4 | 6) && text.bytes().all(|byte| byte.is_ascii_digit());
    let clock = match (text.get(..2), text.get(2..4), text.get(4..)) {
        (Some(hours), Some(minutes), Some("")) if is_bare => format!("{hours}:{minutes}"),
        (Some(hours), Some(minutes), Some(seconds)) if is_bare => format!("{hours}:{minutes}:{seconds}"),
        _ => text.to_owned(),
    };
    let micros = match read_clock(&clock) {
        Some((micros, rest)) => read_zone(rest.trim()).map(|_| micros)?,
        None if text.contains(':') => read_time(text)?.0.rem_euclid(24 * HOUR),
        None => return None,
    };
    (micros < 24 * HOUR).then_some(micros)
}

/// `2024-05-06`, `2024/5/6`, `20240506`, `6 May 2024`, `May 6, 2024`.
fn read_date(text: &str) -> Option<(NaiveDate, &str)> {
    let (first, rest) = number(text)?;
    let digits = text.len() - rest.len();
    if let Some(separator @ ('-' | '/' | '.')) = rest.chars().next() {
        let (second, rest) = number(rest.get(1..)?)?;
        let (third, rest) = number(rest.strip_prefix(separator)?)?;
        if digits < 3 {
            return None;
        }
        return Some((NaiveDate::from_ymd_opt(i32::try_from(first).ok()?, second, third)?, rest));
    }
    if digits == 8 {
        let year = i32::try_from(first / 10_000).ok()?;
        return Some((NaiveDate::from_ymd_opt(year, first / 100 % 100, first % 100)?, rest));
    }
    let (month, length) = month_names::find(month_names::MONTHS, rest.trim_start())?;
    let (year, rest) = number(rest.trim_start().get(length..)?.trim_start())?;
    let month = u32::try_from(month).ok()? + 1;
    Some((NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, first)?, rest))
}

/// `07:08`, `07:08:09`, `07:08:09.123456`, in microseconds.
pub(super) fn read_clock(text: &str) -> Option<(i64, &str)> {
    let (hours, rest) = number(text)?;
    let rest = rest.strip_prefix(':')?;
    let (minutes, rest) = number(rest)?;
    let (mut seconds, mut fraction, mut rest) = (0, 0, rest);
    if let Some(after) = rest.strip_prefix(':') {
        (seconds, rest) = number(after)?;
        if let Some(after) = rest.strip_prefix(['.', ',']) {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            rest = after.get(digits.len()..)?;
            let rounds_up = digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5');
            fraction = micros_of_digits(&digits)? + i64::from(rounds_up);
        }
    }
    if hours > 24 || minutes > 59 || seconds > 60 || (hours == 24 && (minutes, seconds) != (0, 0)) {
        return None;
    }
    let whole = i64::from(hours) * HOUR + i64::from(minutes) * MINUTE + i64::from(seconds) * SECOND;
    Some((whole + fraction, rest))
}

/// The digits behind a decimal point, in millionths.
pub(super) fn micros_of_digits(digits: &str) -> Option<i64> {
    let six: String = digits.chars().chain("000000".chars()).take(6).collect();
    six.parse().ok()
}

/// A zone, none if there is nothing, and nothing at all if there is something else.
fn read_zone(text: &str) -> Option<Option<Tz>> {
    if text.is_empty() {
        return Some(None);
    }
    zone_named(text).map(Some)
}

/// A time zone by name or offset, as people write it.
pub(crate) fn zone_named(text: &str) -> Option<Tz> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt")
    {
        return "UTC".parse().ok();
    }
    if let Some(rest) = text.strip_prefix(['+', '-']) {
        let (hours, minutes) = match rest.split_once(':') {
            Some((hours, minutes)) => (hours, minutes),
            None if rest.len() > 2 => rest.split_at_checked(rest.len() - 2)?,
            None => (rest, "00"),
        };
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let sign = text.get(..1)?;
        return format!("{sign}{hours:02}:{minutes:02}").parse().ok();
    }
    text.parse().ok()
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_are_read() {
        let day = stamp_of_text("2024-05-06").unwrap();
        assert_eq!(day, 1_714_953_600_000_000);
        assert_eq!(stamp_of_text("20240506").unwrap(), day);
        assert_eq!(stamp_of_text("2024/5/6 00:00").unwrap(), day);
        assert_eq!(stamp_of_text("6 May 2024").unwrap(), day);
        assert_eq!(instant_of_text("2024-05-06T02:00:00+02:00").unwrap(), day);
        assert_eq!(stamp_of_text("2024-05-06 07:08:09.5").unwrap(), day + 25_689_500_000);
        assert!(stamp_of_text("2024-02-30").is_err());
        assert!(stamp_of_text("").is_err());
        assert!(stamp_of_text("é").is_err());
    }
}
