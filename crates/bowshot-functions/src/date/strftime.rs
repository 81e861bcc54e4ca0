//! Patterns with `%`: those of strftime, as DuckDB has them, and those of MySQL.

use super::calendar::{micros_of, week_by_mode, week_from_monday, week_from_sunday};
use super::month_names::{self, MONTHS, WEEKDAYS, short};
use super::parsed_fields::{Gathered, Reader};
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion::common::{Result, exec_err};
use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Strftime,
    Mysql,
}

/// A pattern taken apart: text, or a letter with `-` before it for numbers without leading zeros.
pub(super) enum Piece {
    Text(char),
    Field(char, Padding),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    Zeros,
    None,
}

pub(super) fn pieces(pattern: &str) -> Result<Vec<Piece>> {
    let mut found = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            found.push(Piece::Text(character));
            continue;
        }
        match characters.next() {
            Some('-') => match characters.next() {
                Some(letter) => found.push(Piece::Field(letter, Padding::None)),
                None => return exec_err!("the pattern `{pattern}` ends with `%-`"),
            },
            Some('%') => found.push(Piece::Text('%')),
            Some(letter) => found.push(Piece::Field(letter, Padding::Zeros)),
            None => return exec_err!("the pattern `{pattern}` ends with `%`"),
        }
    }
    Ok(found)
}

/// The letter of strftime that means what a letter of MySQL means, where they differ.
fn in_strftime(letter: char) -> char {
    match letter {
        'c' => '1',
        'e' => '2',
        'h' => 'I',
        'i' => 'M',
        'k' => '3',
        'l' => '4',
        'M' => 'B',
        'r' => '5',
        's' => 'S',
        'T' => '6',
        'u' => 'K',
        'V' => 'N',
        'X' => 'L',
        'v' => 'V',
        'W' => 'A',
        'x' => 'G',
        'D' => '7',
        other => other,
    }
}

pub(super) fn write(
    style: Style,
    pieces: &[Piece],
    time: NaiveDateTime,
    offset: Option<i64>,
) -> Result<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(character) => text.push(*character),
            Piece::Field(letter, padding) => {
                let letter = if style == Style::Mysql { in_strftime(*letter) } else { *letter };
                if !field(&mut text, letter, *padding, time, offset) {
                    return exec_err!("`%{letter}` is not known in a pattern");
                }
            }
        }
    }
    Ok(text)
}

fn number(text: &mut String, value: i64, width: usize, padding: Padding) -> bool {
    let width = if padding == Padding::None { 0 } else { width };
    write!(text, "{value:0width$}").is_ok()
}

/// Appends a field; false when the letter is not known.
fn field(
    text: &mut String,
    letter: char,
    padding: Padding,
    time: NaiveDateTime,
    offset: Option<i64>,
) -> bool {
    let mut put = |value: u32, width: usize| number(text, i64::from(value), width, padding);
    let hour12 = time.hour12().1;
    match letter {
        'd' => put(time.day(), 2),
        'm' => put(time.month(), 2),
        'H' => put(time.hour(), 2),
        'I' => put(hour12, 2),
        'M' => put(time.minute(), 2),
        'S' => put(time.second(), 2),
        'j' => put(time.ordinal(), 3),
        'V' => put(time.iso_week().week(), 2),
        'U' => put(week_from_sunday(time.date()), 2),
        'W' => put(week_from_monday(time.date()), 2),
        'K' => number(text, week_by_mode(time.date(), 1).1, 2, padding),
        'N' => number(text, week_by_mode(time.date(), 2).1, 2, padding),
        'L' => number(text, week_by_mode(time.date(), 2).0, 4, padding),
        'u' => put(time.weekday().number_from_monday(), 1),
        'w' => put(time.weekday().num_days_from_sunday(), 1),
        '1' => put(time.month(), 1),
        '2' => put(time.day(), 1),
        '3' => put(time.hour(), 1),
        '4' => put(hour12, 1),
        'e' => write!(text, "{:>2}", time.day()).is_ok(),
        'Y' => number(text, i64::from(time.year()), 4, Padding::None),
        'y' => number(text, i64::from(time.year().rem_euclid(100)), 2, padding),
        'G' => number(text, i64::from(time.iso_week().year()), 4, padding),
        'C' => number(text, i64::from(time.year().div_euclid(100)), 2, padding),
        'f' => number(text, micros_of(time), 6, Padding::Zeros),
        'g' => number(text, micros_of(time) / 1000, 3, Padding::Zeros),
        'n' => number(text, micros_of(time) * 1000, 9, Padding::Zeros),
        's' => number(text, time.and_utc().timestamp(), 1, Padding::None),
        _ => words(text, letter, time, offset),
    }
}

/// Fields that are words or composed of others.
fn words(text: &mut String, letter: char, time: NaiveDateTime, offset: Option<i64>) -> bool {
    let weekday = month_names::weekday(time.weekday().num_days_from_sunday());
    let month = month_names::month(time.month());
    match letter {
        'a' => text.push_str(short(weekday)),
        'A' => text.push_str(weekday),
        'b' | 'h' => text.push_str(short(month)),
        'B' => text.push_str(month),
        'p' => text.push_str(if time.hour() < 12 { "AM" } else { "PM" }),
        'c' => return write!(text, "{}", time.format("%Y-%m-%d %H:%M:%S")).is_ok(),
        'x' => return write!(text, "{}", time.format("%Y-%m-%d")).is_ok(),
        'X' | 'T' | '6' => return write!(text, "{}", time.format("%H:%M:%S")).is_ok(),
        'D' => return write!(text, "{}", time.format("%m/%d/%y")).is_ok(),
        'F' => return write!(text, "{}", time.format("%Y-%m-%d")).is_ok(),
        'R' => return write!(text, "{}", time.format("%H:%M")).is_ok(),
        'r' | '5' => return write!(text, "{}", time.format("%I:%M:%S %p")).is_ok(),
        '7' => {
            let ending = match time.day() {
                1 | 21 | 31 => "st",
                2 | 22 => "nd",
                3 | 23 => "rd",
                _ => "th",
            };
            return write!(text, "{}{ending}", time.day()).is_ok();
        }
        'z' => {
            let offset = offset.unwrap_or(0);
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            if write!(text, "{sign}{:02}", minutes / 60).is_err() {
                return false;
            }
            return minutes % 60 == 0 || write!(text, ":{:02}", minutes % 60).is_ok();
        }
        'Z' => text.push_str(if offset.is_some() { "UTC" } else { "" }),
        _ => return false,
    }
    true
}

/// Reads a text by a pattern; none when it does not fit.
pub(super) fn read(style: Style, pieces: &[Piece], text: &str) -> Option<Gathered> {
    let mut found = Gathered::default();
    let mut reader = Reader { rest: text.trim() };
    for piece in pieces {
        match piece {
            Piece::Text(character) if character.is_whitespace() => reader.skip_spaces(),
            Piece::Text(character) => {
                if reader.character()? != *character {
                    return None;
                }
            }
            Piece::Field(letter, _) => {
                let letter = if style == Style::Mysql { in_strftime(*letter) } else { *letter };
                read_field(&mut found, &mut reader, letter)?;
            }
        }
    }
    // MySQL passes over what follows, strptime does not.
    (style == Style::Mysql || reader.rest.trim().is_empty()).then_some(found)
}

fn read_field(found: &mut Gathered, reader: &mut Reader<'_>, letter: char) -> Option<()> {
    match letter {
        'Y' => found.year = Some(reader.signed(4)?),
        'y' => {
            found.year = Some(reader.number(2).map(|year| if year < 70 { 2000 + year } else { 1900 + year })?)
        }
        'm' | '1' => found.month = Some(reader.number(2)?),
        'd' | 'e' | '2' => {
            reader.skip_spaces();
            found.day = Some(reader.number(2)?);
        }
        '7' => {
            found.day = Some(reader.number(2)?);
            reader.rest = reader.rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        }
        'j' => found.day_of_year = Some(reader.number(3)?),
        'b' | 'B' | 'h' => found.month = Some(reader.name(MONTHS)? + 1),
        'a' | 'A' => found.weekday = Some(reader.name(WEEKDAYS)?),
        'w' => found.weekday = Some(reader.number(1)?),
        'u' => found.weekday = Some(reader.number(1)? % 7),
        'G' => found.iso_year = Some(reader.signed(4)?),
        'V' => found.iso_week = Some(reader.number(2)?),
        'H' | 'I' | '3' | '4' => found.hour = Some(reader.number(2)?),
        'M' => found.minute = Some(reader.number(2)?),
        'S' => found.second = Some(reader.number(2)?),
        'f' => found.micros = Some(reader.fraction(9)?),
        'g' => found.micros = Some(reader.fraction(3)?),
        'n' => found.micros = Some(reader.fraction(9)?),
        'p' => found.afternoon = Some(reader.half_of_day()?),
        's' => found.epoch = Some(reader.signed(18)?),
        'z' | 'Z' => found.offset = Some(reader.offset()?),
        'T' | 'X' | '6' => read_all(found, reader, "H:M:S")?,
        'R' => read_all(found, reader, "H:M")?,
        'r' | '5' => read_all(found, reader, "I:M:S p")?,
        'F' | 'x' => read_all(found, reader, "Y-m-d")?,
        'D' => read_all(found, reader, "m/d/y")?,
        _ => return None,
    }
    Some(())
}

fn read_all(found: &mut Gathered, reader: &mut Reader<'_>, letters: &str) -> Option<()> {
    for letter in letters.chars() {
        match letter {
            ' ' => reader.skip_spaces(),
            ':' | '-' | '/' => {
                if reader.character()? != letter {
                    return None;
                }
            }
            letter => read_field(found, reader, letter)?,
        }
    }
    Some(())
}
