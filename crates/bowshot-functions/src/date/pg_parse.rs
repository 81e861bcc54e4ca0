//! Dates and timestamps read by patterns of PostgreSQL (`to_timestamp`, `to_date`); patterns with `%` are strftime's.

use super::month_names::{MONTHS, WEEKDAYS};
use super::parsed_fields::{Gathered, Reader};
use super::pg_format::{Piece, pieces, roman};
use super::strftime::{self, Style};
use crate::values::{Arguments, Days, Memo, Moments, Text, map2};
use arrow::array::ArrayRef;
use datafusion::common::{Result, exec_datafusion_err};

pub(super) fn to_timestamp(arguments: &Arguments) -> Result<ArrayRef> {
    let mut known = Memo::new();
    map2::<Text, Text, Moments, Result<i64>>(arguments, |text, pattern| {
        let found = read_known(known.get(pattern, ParsedPattern::of)?, text, pattern)?;
        found.instant().ok_or_else(|| out_of_range(text))
    })
}

pub(super) fn to_date(arguments: &Arguments) -> Result<ArrayRef> {
    let mut known = Memo::new();
    map2::<Text, Text, Days, Result<i32>>(arguments, |text, pattern| {
        let found = read_known(known.get(pattern, ParsedPattern::of)?, text, pattern)?;
        found.days().ok_or_else(|| out_of_range(text))
    })
}

fn out_of_range(text: &str) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("date/time field value out of range: `{text}`")
}

enum ParsedPattern {
    Percent(Vec<strftime::Piece>),
    Words(Vec<Piece>),
}

impl ParsedPattern {
    fn of(pattern: &str) -> Result<Self> {
        if pattern.contains('%') {
            return strftime::pieces(pattern).map(Self::Percent);
        }
        pieces(pattern).map(Self::Words)
    }
}

fn read_known(known: &ParsedPattern, text: &str, pattern: &str) -> Result<Gathered> {
    let found = match known {
        ParsedPattern::Percent(pieces) => strftime::read(Style::Strftime, pieces, text),
        ParsedPattern::Words(pieces) => read_pieces(pieces, text),
    };
    found.ok_or_else(|| exec_datafusion_err!("`{text}` does not fit the pattern `{pattern}`"))
}

pub(super) fn read(pattern: &str, text: &str) -> Result<Gathered> {
    read_known(&ParsedPattern::of(pattern)?, text, pattern)
}

fn read_pieces(pieces: &[Piece], text: &str) -> Option<Gathered> {
    let mut found = Gathered::default();
    let mut reader = Reader { rest: text.trim_start() };
    for (position, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(character) => skip(&mut reader, *character),
            Piece::Field { keyword, ordinal, .. } => {
                // What follows decides whether digits belong together.
                let joined = matches!(pieces.get(position + 1), Some(Piece::Field { .. }));
                reader.skip_spaces();
                if reader.rest.is_empty() {
                    break;
                }
                read_field(&mut found, &mut reader, keyword, joined)?;
                if ordinal.is_some() {
                    reader.rest = reader.rest.get(2..).unwrap_or_default();
                }
            }
        }
    }
    Some(found)
}

/// A separator stands for any separators or none, another character for any one.
fn skip(reader: &mut Reader<'_>, character: char) {
    let separates = |c: char| !c.is_alphanumeric();
    if !separates(character) {
        reader.character();
        return;
    }
    reader.skip_spaces();
    // A minus or plus before digits may be a sign, which a blank does not stand for.
    if reader.rest.starts_with(['-', '+']) && character == ' ' {
        return;
    }
    if reader.rest.starts_with(separates) {
        reader.character();
    }
}

fn read_field(found: &mut Gathered, reader: &mut Reader<'_>, keyword: &str, joined: bool) -> Option<()> {
    match keyword {
        "YYYY" => {
            found.year = Some(reader.number(if joined { 4 } else { 6 })?);
        }
        "Y,YYY" => {
            let thousands = reader.number(3)?;
            reader.rest = reader.rest.strip_prefix(',')?;
            found.year = Some(thousands * 1000 + reader.number(3)?);
        }
        "YYY" | "YY" | "Y" => {
            let before = reader.rest.len();
            let year = reader.number(if joined { keyword.len() } else { 4 })?;
            found.year = Some(if before - reader.rest.len() > 3 { year } else { nearest_to_2020(year) });
        }
        "IYYY" => found.iso_year = Some(reader.number(if joined { 4 } else { 6 })?),
        "IYY" | "IY" | "I" => found.iso_year = Some(nearest_to_2020(reader.number(keyword.len())?)),
        "CC" => found.century = Some(reader.number(2)?),
        "MM" => found.month = Some(reader.number(2)?),
        "MONTH" | "MON" => found.month = Some(reader.name(MONTHS)? + 1),
        "RM" => {
            let numeral = (1..=12).rev().find(|month| reader.word(&roman(*month)))?;
            found.month = Some(numeral);
        }
        "DD" => found.day = Some(reader.number(2)?),
        "DDD" => found.day_of_year = Some(reader.number(3)?),
        "D" => found.weekday = Some(reader.number(1)? - 1),
        "ID" => found.weekday = Some(reader.number(1)?),
        "DAY" | "DY" => {
            let weekday = reader.name(WEEKDAYS)?;
            found.weekday = found.iso_year.map(|_| weekday);
        }
        "IW" => found.iso_week = Some(reader.number(2)?),
        "WW" => found.week = Some(reader.number(2)?),
        "W" | "Q" => drop(reader.number(1)?),
        "J" => found.julian = Some(reader.number(9)?),
        "AD" | "A.D." | "BC" | "B.C." => found.before_christ = read_era(reader)?,
        _ => return read_clock_field(found, reader, keyword),
    }
    Some(())
}

/// Whether it is before Christ.
fn read_era(reader: &mut Reader<'_>) -> Option<bool> {
    [("b.c.", true), ("a.d.", false), ("bc", true), ("ad", false)]
        .into_iter()
        .find(|(word, _)| reader.word(word))
        .map(|(_, before)| before)
}

fn read_clock_field(found: &mut Gathered, reader: &mut Reader<'_>, keyword: &str) -> Option<()> {
    match keyword {
        "HH24" => found.hour = Some(reader.number(2)?),
        "HH" | "HH12" => {
            let hour = reader.number(2)?;
            if !(1..=12).contains(&hour) {
                return None;
            }
            found.hour = Some(hour);
            // Without AM or PM, 12 is midnight.
            found.afternoon.get_or_insert(false);
        }
        "MI" => found.minute = Some(reader.number(2)?),
        "SS" => found.second = Some(reader.number(2)?),
        "SSSS" | "SSSSS" => found.second_of_day = Some(reader.number(5)?),
        "MS" => found.micros = Some(reader.fraction(3)?),
        "US" | "FF6" => found.micros = Some(reader.fraction(6)?),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" => {
            let digits = keyword.get(2..).and_then(|digits| digits.parse().ok())?;
            found.micros = Some(reader.fraction(digits)?);
        }
        "AM" | "PM" | "A.M." | "P.M." => found.afternoon = Some(reader.half_of_day()?),
        "TZ" | "OF" => found.offset = Some(reader.offset()?),
        "TZH" => {
            let hours = reader.signed(2)?;
            found.offset = Some(hours * 3600);
        }
        "TZM" => {
            let minutes = reader.number(2)? * 60;
            let hours = found.offset.unwrap_or(0);
            found.offset = Some(if hours < 0 { hours - minutes } else { hours + minutes });
        }
        _ => return None,
    }
    Some(())
}

/// Years of fewer than four digits lie near 2020.
fn nearest_to_2020(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
