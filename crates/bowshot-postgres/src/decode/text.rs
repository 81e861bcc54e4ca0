//! Values in text.

use super::column::{Values, canonical};
use super::{array, interval, invalid};
use crate::frontend_messages::Format;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::datatypes::{Date32Type, Time64MicrosecondType};
use bowshot_api::offset_of_clock;
use std::borrow::Cow;
use std::str::FromStr;

/// Reads one value. Blanks around it belong to it only in texts.
pub(super) fn push(values: &mut Values, text: &str, zone: Option<Tz>) -> Result<(), Failure> {
    let bare = text.trim();
    match values {
        Values::Bool(builder) => builder.append_value(truth(bare).ok_or_else(|| invalid("boolean", text))?),
        Values::Int2(builder) => builder.append_value(number(bare, "smallint")?),
        Values::Int4(builder) => builder.append_value(number(bare, "integer")?),
        Values::Int8(builder) => builder.append_value(number(bare, "bigint")?),
        Values::Oid(builder) => builder.append_value(i64::from(number::<u32>(bare, "oid")?)),
        Values::Float4(builder) => builder.append_value(float(bare, "real")?),
        Values::Float8(builder) => builder.append_value(float(bare, "double precision")?),
        Values::Numeric(numbers) => numbers.push(bare)?,
        Values::Text(builder) | Values::Json(builder) | Values::Jsonb(builder) => builder.append_value(text),
        Values::Bytea(builder) => builder.append_value(bytes(text).ok_or_else(|| invalid("bytea", text))?),
        Values::Date(builder) => {
            builder.append_value(day(bare).ok_or_else(|| date_failure("date", text))?);
        }
        Values::Time(builder) => {
            builder.append_value(time_of_day(bare).ok_or_else(|| date_failure("time", text))?);
        }
        Values::Timestamp(builder) => {
            let clock = clock(bare).ok_or_else(|| date_failure("timestamp", text))?;
            builder.append_value(clock);
        }
        Values::Timestamptz(builder) => {
            let kind = "timestamp with time zone";
            builder.append_value(instant(bare, zone).ok_or_else(|| date_failure(kind, text))?);
        }
        Values::Interval(builder) => {
            let parts = interval::parse(bare).ok_or_else(|| date_failure("interval", text))?;
            Values::push_interval(builder, parts)?;
        }
        Values::Uuid(builder) => {
            builder.append_value(canonical(uuid_bytes(bare).ok_or_else(|| invalid("uuid", text))?));
        }
        Values::List(list) => {
            let items = array::text(bare).ok_or_else(|| array_failure(text))?;
            Values::push_list(list, items.into_iter().map(Ok), Format::Text)?;
        }
    }
    Ok(())
}

fn date_failure(kind: &str, text: &str) -> Failure {
    match bowshot_api::unsupported_time(kind, text) {
        Some(error) => error.into(),
        None => Failure { code: "22007", ..invalid(kind, text) },
    }
}

fn array_failure(text: &str) -> Failure {
    Failure { code: "22P02", ..invalid("array", text) }.with_hint("arrays have one dimension here")
}

/// As `boolin` in PostgreSQL: any unambiguous prefix of the words.
fn truth(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || text == "on" || text == "1" {
        Some(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0" {
        Some(false)
    } else {
        None
    }
}

fn number<T: FromStr>(text: &str, kind: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| {
        let digits = text.trim_start_matches(['+', '-']);
        match !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Failure::new("22003", format!("value \"{text}\" is out of range for type {kind}")),
            false => invalid(kind, text),
        }
    })
}

/// A number that is too large for the type would be infinite.
fn float<T: FromStr + Into<f64> + Copy>(text: &str, kind: &str) -> Result<T, Failure> {
    let value: T = text.parse().map_err(|_| invalid(kind, text))?;
    if value.into().is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(Failure::new("22003", format!("\"{text}\" is out of range for type {kind}")));
    }
    Ok(value)
}

/// A time of day, which may have no colons: `040506`. Arrow would take these digits for microseconds.
fn time_of_day(text: &str) -> Option<i64> {
    let is_bare = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    match (text.get(..2), text.get(2..4), text.get(4..)) {
        (Some(hours), Some(minutes), Some(seconds)) if is_bare => {
            Time64MicrosecondType::parse(&format!("{hours}:{minutes}:{seconds}"))
        }
        _ => Time64MicrosecondType::parse(text).filter(|_| text.contains(':')),
    }
}

/// A date. A time or a time zone after it is ignored, as in PostgreSQL's `date_in`: pgjdbc sends `2024-02-29 +00`.
fn day(text: &str) -> Option<i32> {
    let behind = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | 'Z'));
    Date32Type::parse(text).or_else(|| {
        let (date, rest) = text.split_once([' ', 'T'])?;
        behind(rest.trim_start()).then(|| Date32Type::parse(date)).flatten()
    })
}

/// Microseconds since 1970-01-01 on the clock that a text shows. A time zone in it is ignored, as in PostgreSQL's `timestamp_in`.
fn clock(text: &str) -> Option<i64> {
    let (clock, zone) = clock_and_zone(text);
    if !zone.is_empty() {
        instant(text, None)?;
    }
    micros(&clock)
}

/// Microseconds since 1970-01-01 in UTC. What names no time zone is meant in that of the session.
fn instant(text: &str, session: Option<Tz>) -> Option<i64> {
    let (clock, zone) = clock_and_zone(text);
    let micros = match &clock {
        Cow::Borrowed(_) => micros(text)?,
        Cow::Owned(clock) => micros(&format!("{clock}{zone}"))?,
    };
    let offset = match session {
        Some(session) if zone.is_empty() => offset_of_clock(session, micros.div_euclid(1_000_000)),
        _ => 0,
    };
    micros.checked_sub(i64::from(offset) * 1_000_000)
}

/// What stands before a time zone, with seconds, and the zone.
fn clock_and_zone(text: &str) -> (Cow<'_, str>, &str) {
    let is_zone = |c: char| matches!(c, '+' | '-') || c.is_ascii_alphabetic();
    let zone = text.get(11..).and_then(|rest| rest.find(is_zone)).map_or(text.len(), |at| at + 11);
    let (clock, zone) = text.split_at(zone);
    let clock = clock.trim_end();
    let has_minutes = clock.len() == 16 && clock.as_bytes().get(13) == Some(&b':');
    (if has_minutes { format!("{clock}:00").into() } else { clock.into() }, zone)
}

fn micros(text: &str) -> Option<i64> {
    let utc: Tz = "UTC".parse().ok()?;
    let found = string_to_datetime(&utc, text).ok()?;
    Some(found.timestamp_micros() + i64::from(found.timestamp_subsec_nanos() % 1_000 >= 500))
}

/// `\x` and hexadecimal digits, or the older form with octal escapes.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix(r"\x") {
        return hex(digits);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                out.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                out.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                out.push(*byte);
                after
            }
        };
    }
    Some(out)
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|digit| !digit.is_ascii_whitespace())
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (high << 4) | low).collect())
}

/// The bytes of a UUID with or without hyphens and brackets.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    hex(&text.replace('-', ""))?.try_into().ok()
}
