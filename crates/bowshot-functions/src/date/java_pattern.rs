//! Patterns of Java (`yyyy-MM-dd HH:mm:ss`), for Spark's functions.

use super::calendar::micros_of;
use super::month_names::{self, short};
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion::common::{Result, exec_err};
use std::iter::Peekable;
use std::str::Chars;

pub(super) fn write(pattern: &str, time: NaiveDateTime, offset: Option<i64>) -> Result<String> {
    let mut text = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\'' {
            quoted(&mut text, &mut rest);
        } else if letter.is_ascii_alphabetic() {
            let mut count = 1;
            while rest.next_if_eq(&letter).is_some() {
                count = 32.min(count + 1);
            }
            text.push_str(&field(letter, count, time, offset)?);
        } else {
            text.push(letter);
        }
    }
    Ok(text)
}

/// Text between quotes; two quotes are one.
fn quoted(text: &mut String, rest: &mut Peekable<Chars<'_>>) {
    if rest.next_if_eq(&'\'').is_some() {
        text.push('\'');
        return;
    }
    for letter in rest.by_ref() {
        if letter == '\'' {
            return;
        }
        text.push(letter);
    }
}

fn field(letter: char, count: usize, time: NaiveDateTime, offset: Option<i64>) -> Result<String> {
    let number = |value: u32| format!("{value:0count$}");
    Ok(match letter {
        'y' | 'u' if count == 2 => format!("{:02}", time.year().rem_euclid(100)),
        'y' | 'u' => format!("{:0count$}", time.year()),
        'M' | 'L' => match count {
            1 | 2 => number(time.month()),
            3 => short(month_names::month(time.month())).to_owned(),
            _ => month_names::month(time.month()).to_owned(),
        },
        'd' => number(time.day()),
        'D' => number(time.ordinal()),
        'Q' | 'q' => number(time.month0() / 3 + 1),
        'E' => {
            let name = month_names::weekday(time.weekday().num_days_from_sunday());
            if count < 4 { short(name).to_owned() } else { name.to_owned() }
        }
        'H' => number(time.hour()),
        'k' => number(if time.hour() == 0 { 24 } else { time.hour() }),
        'h' => number(time.hour12().1),
        'K' => number(time.hour() % 12),
        'm' => number(time.minute()),
        's' => number(time.second()),
        'S' => format!("{:06}000", micros_of(time)).chars().take(count).collect(),
        'a' => (if time.hour() < 12 { "AM" } else { "PM" }).to_owned(),
        'G' => (if time.year() > 0 { "AD" } else { "BC" }).to_owned(),
        'x' | 'X' | 'Z' => {
            let offset = offset.unwrap_or(0);
            if letter == 'X' && offset == 0 {
                return Ok("Z".to_owned());
            }
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            let colon = if count >= 3 && letter != 'Z' { ":" } else { "" };
            format!("{sign}{:02}{colon}{:02}", minutes / 60, minutes % 60)
        }
        _ => return exec_err!("`{letter}` is not known in a pattern of dates"),
    })
}
