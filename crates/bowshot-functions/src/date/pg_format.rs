//! Dates and intervals by patterns of PostgreSQL: `YYYY-MM-DD HH24:MI:SS.MS`, `FMDay, DDth FMMonth`.

use super::calendar::{hundreds, julian_day, micros_of};
use super::month_names::{self, short};
use arrow::datatypes::IntervalMonthDayNano;
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion::common::{Result, exec_err};

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(char),
    /// A keyword in upper case, as it was written, without padding (`FM`), with an ordinal ending (`TH`).
    Field {
        keyword: &'static str,
        case: Case,
        bare: bool,
        ordinal: Option<Case>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capital,
    Lower,
}

/// Longer keywords before those that they begin with.
const KEYWORDS: [&str; 52] = [
    "SSSSS", "MONTH", "Y,YYY", "A.D.", "A.M.", "B.C.", "P.M.", "HH24", "HH12", "IDDD", "IYYY", "SSSS",
    "YYYY", "DAY", "DDD", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "IYY", "MON", "TZH", "TZM", "YYY", "AD",
    "AM", "BC", "CC", "DD", "DY", "HH", "ID", "IW", "IY", "MI", "MM", "MS", "OF", "PM", "RM", "SS", "TZ",
    "US", "WW", "YY", "D", "I", "J", "Q", "W",
];
/// Kept apart: it is one letter of many words.
const YEAR_DIGIT: &str = "Y";

pub(super) fn pieces(pattern: &str) -> Result<Vec<Piece>> {
    let mut found = Vec::new();
    let (mut rest, mut bare) = (pattern, false);
    while let Some(first) = rest.chars().next() {
        if let Some(after) = prefixed(rest, "FM") {
            (bare, rest) = (true, after);
        } else if let Some(after) = prefixed(rest, "FX").or_else(|| prefixed(rest, "TM")) {
            rest = after;
        } else if let Some(after) = rest.strip_prefix('"') {
            let end = after.find('"').unwrap_or(after.len());
            let (quoted, after) = after.split_at(end);
            found.extend(quoted.chars().map(Piece::Text));
            rest = after.strip_prefix('"').unwrap_or(after);
        } else if let Some(keyword) = keyword_at(rest) {
            let (written, after) = rest.split_at(keyword.len());
            let ending = after.get(..2).filter(|ending| ending.eq_ignore_ascii_case("th"));
            let ordinal = ending.map(|ending| if ending == "TH" { Case::Upper } else { Case::Lower });
            rest = if ordinal.is_some() { after.get(2..).unwrap_or_default() } else { after };
            found.push(Piece::Field { keyword, case: case_of(written), bare, ordinal });
            bare = false;
        } else {
            found.push(Piece::Text(first));
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    Ok(found)
}

fn prefixed<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let begins = text.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if begins { text.get(prefix.len()..) } else { None }
}

fn keyword_at(text: &str) -> Option<&'static str> {
    KEYWORDS.into_iter().chain([YEAR_DIGIT]).find(|keyword| prefixed(text, keyword).is_some())
}

fn case_of(written: &str) -> Case {
    let mut letters = written.chars().filter(char::is_ascii_alphabetic);
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            Case::Capital
        }
        (Some(first), _) if first.is_ascii_lowercase() => Case::Lower,
        _ => Case::Upper,
    }
}

fn in_case(word: &str, case: Case) -> String {
    match case {
        Case::Upper => word.to_uppercase(),
        Case::Capital => word.to_owned(),
        Case::Lower => word.to_lowercase(),
    }
}

/// The values that fields show; an interval has no weekday and no era.
struct Values {
    year: i64,
    iso_year: i64,
    month: i64,
    day: i64,
    ordinal: i64,
    iso_week: i64,
    /// Sunday is 0.
    weekday: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    julian: i64,
    offset: Option<i64>,
}

pub(super) fn write(pieces: &[Piece], time: NaiveDateTime, offset: Option<i64>) -> Result<String> {
    let values = Values {
        year: i64::from(time.year()),
        iso_year: i64::from(time.iso_week().year()),
        month: i64::from(time.month()),
        day: i64::from(time.day()),
        ordinal: i64::from(time.ordinal()),
        iso_week: i64::from(time.iso_week().week()),
        weekday: i64::from(time.weekday().num_days_from_sunday()),
        hour: i64::from(time.hour()),
        minute: i64::from(time.minute()),
        second: i64::from(time.second()),
        micros: micros_of(time),
        julian: julian_day(time.date()),
        offset,
    };
    write_values(pieces, &values)
}

pub(super) fn write_interval(pieces: &[Piece], span: IntervalMonthDayNano) -> Result<String> {
    let micros = span.nanoseconds / 1000;
    let (months, days) = (i64::from(span.months), i64::from(span.days));
    let values = Values {
        year: months / 12,
        iso_year: months / 12,
        month: months % 12,
        day: days,
        ordinal: months * 30 + days,
        iso_week: days / 7,
        weekday: 0,
        hour: micros / 3_600_000_000,
        minute: micros / 60_000_000 % 60,
        second: micros / 1_000_000 % 60,
        micros: micros % 1_000_000,
        julian: 0,
        offset: None,
    };
    write_values(pieces, &values)
}

fn write_values(pieces: &[Piece], values: &Values) -> Result<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(character) => text.push(*character),
            Piece::Field { keyword, case, bare, ordinal } => {
                let written = match number(keyword, values) {
                    Some((value, width)) => {
                        let width = if *bare { 0 } else { width };
                        format!("{value:0width$}")
                    }
                    None => word(keyword, *case, *bare, values)?,
                };
                text.push_str(&written);
                if let Some(case) = ordinal {
                    text.push_str(&in_case(ending(&written), *case));
                }
            }
        }
    }
    Ok(text)
}

/// `st`, `nd`, `rd` or `th` behind a number.
pub(super) fn ending(number: &str) -> &'static str {
    let digits: Vec<char> = number.chars().filter(char::is_ascii_digit).collect();
    let teens = digits.len() > 1 && digits.get(digits.len() - 2) == Some(&'1');
    match digits.last() {
        Some('1') if !teens => "st",
        Some('2') if !teens => "nd",
        Some('3') if !teens => "rd",
        _ => "th",
    }
}

/// A field that is a number, and the digits that it has at least.
fn number(keyword: &str, values: &Values) -> Option<(i64, usize)> {
    let year = if values.year <= 0 && values.julian != 0 { 1 - values.year } else { values.year };
    Some(match keyword {
        "YYYY" => (year, 4),
        "YYY" => (year % 1000, 3),
        "YY" => (year % 100, 2),
        "Y" => (year % 10, 1),
        "IYYY" => (values.iso_year, 4),
        "IYY" => (values.iso_year % 1000, 3),
        "IY" => (values.iso_year % 100, 2),
        "I" => (values.iso_year % 10, 1),
        "CC" => (hundreds(values.year, 100), 2),
        "Q" => ((values.month - 1) / 3 + 1, 1),
        "MM" => (values.month, 2),
        "WW" => ((values.ordinal - 1) / 7 + 1, 2),
        "IW" => (values.iso_week, 2),
        "W" => ((values.day - 1) / 7 + 1, 1),
        "DDD" => (values.ordinal, 3),
        "IDDD" => ((values.iso_week - 1) * 7 + (values.weekday + 6) % 7 + 1, 3),
        "DD" => (values.day, 2),
        "D" => (values.weekday + 1, 1),
        "ID" => ((values.weekday + 6) % 7 + 1, 1),
        "J" => (values.julian, 1),
        "HH24" => (values.hour, 2),
        "HH" | "HH12" => ((values.hour + 11).rem_euclid(12) + 1, 2),
        "MI" => (values.minute, 2),
        "SS" => (values.second, 2),
        "SSSS" | "SSSSS" => (values.hour * 3600 + values.minute * 60 + values.second, 1),
        "MS" | "FF3" => (values.micros / 1000, 3),
        "US" | "FF6" => (values.micros, 6),
        "FF1" => (values.micros / 100_000, 1),
        "FF2" => (values.micros / 10_000, 2),
        "FF4" => (values.micros / 100, 4),
        "FF5" => (values.micros / 10, 5),
        _ => return None,
    })
}

fn word(keyword: &str, case: Case, bare: bool, values: &Values) -> Result<String> {
    let padded = |name: &str| if bare { in_case(name, case) } else { format!("{:<9}", in_case(name, case)) };
    let weekday = month_names::weekday(u32::try_from(values.weekday).unwrap_or_default());
    let month = month_names::month(u32::try_from(values.month).unwrap_or_default());
    let (morning, era) = (values.hour.rem_euclid(24) < 12, values.year > 0);
    let of_case = |upper: &str| if case == Case::Lower { upper.to_lowercase() } else { upper.to_owned() };
    let offset = values.offset.unwrap_or(0);
    Ok(match keyword {
        "MONTH" => padded(month),
        "MON" => in_case(short(month), case),
        "DAY" => padded(weekday),
        "DY" => in_case(short(weekday), case),
        "AM" | "PM" => of_case(if morning { "AM" } else { "PM" }),
        "A.M." | "P.M." => of_case(if morning { "A.M." } else { "P.M." }),
        "AD" | "BC" => of_case(if era { "AD" } else { "BC" }),
        "A.D." | "B.C." => of_case(if era { "A.D." } else { "B.C." }),
        "RM" => {
            let roman = roman(values.month);
            let roman = of_case(&roman);
            if bare { roman } else { format!("{roman:<4}") }
        }
        "Y,YYY" => format!("{},{:03}", values.year / 1000, values.year % 1000),
        "TZ" if values.offset == Some(0) => of_case("UTC"),
        "TZ" if values.offset.is_none() => String::new(),
        "TZ" | "OF" => {
            let minutes = offset.abs() / 60 % 60;
            let hours = format!("{}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 3600);
            if minutes == 0 { hours } else { format!("{hours}:{minutes:02}") }
        }
        "TZH" => format!("{}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 3600),
        "TZM" => format!("{:02}", offset.abs() / 60 % 60),
        _ => return exec_err!("`{keyword}` is not known in a pattern of dates"),
    })
}

/// A number from 1 to 3999 in Roman digits.
pub(super) fn roman(mut number: i64) -> String {
    const DIGITS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    if !(1..4000).contains(&number) {
        return text;
    }
    for (value, digit) in DIGITS {
        while number >= value {
            text.push_str(digit);
            number -= value;
        }
    }
    text
}
