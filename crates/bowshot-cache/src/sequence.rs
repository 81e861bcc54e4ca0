//! Names that count: `sales20210803`, `logs_2021_w31`, `part7`. A name is taken apart into text and values, so that names
//! of one sequence can be recognised, compared and continued.

use chrono::{Datelike, Days, NaiveDate, Weekday};
use std::fmt::Write as _;

/// A name as text and values. Ordered by the text first, then by the values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The name with a placeholder for each value: what all names of a sequence have in common.
    pub text: String,
    /// The values in their order.
    pub values: Vec<Value>,
    parts: Vec<Part>,
}

/// One value of a name: how many days, months, … since a fixed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    pub form: Form,
    pub ordinal: i64,
}

/// What a value counts and how it is written. `separator` is what stands between its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    Date {
        separator: Option<char>,
    },
    Hour,
    Month {
        separator: Option<char>,
    },
    Week {
        separator: Option<char>,
    },
    Quarter {
        separator: Option<char>,
    },
    Year,
    /// A number, with leading zeros up to this width.
    Number {
        width: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Text(String),
    Value(Value),
}

impl Pattern {
    /// Takes a name apart.
    pub fn of(name: &str) -> Self {
        let (mut parts, mut rest, mut literal) = (Vec::new(), name, String::new());
        while let Some(first) = rest.chars().next() {
            let found = if first.is_ascii_digit() { value_at(rest) } else { None };
            let length = match found {
                Some((value, length)) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(Part::Value(value));
                    length
                }
                None => {
                    // All digits of an identifier, so that its end is not taken for a number.
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let length = digits.max(first.len_utf8());
                    literal.push_str(rest.get(..length).unwrap_or_default());
                    length
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Self::from_parts(parts)
    }

    /// The name that the pattern stands for.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Value(value) => value.write(&mut name),
            }
        }
        name
    }

    /// The name of the same sequence with the values moved on: `steps` has one number for each value.
    #[must_use]
    pub fn moved(&self, steps: &[i64]) -> Self {
        let mut steps = steps.iter();
        let parts = self.parts.iter().map(|part| match part {
            Part::Text(text) => Part::Text(text.clone()),
            Part::Value(value) => {
                let ordinal = value.ordinal.saturating_add(steps.next().copied().unwrap_or(0));
                Part::Value(Value { ordinal, ..*value })
            }
        });
        Self::from_parts(parts.collect())
    }

    /// How far each value is from that of an earlier name of the same sequence; `None` for names of another one.
    pub fn steps_from(&self, earlier: &Self) -> Option<Vec<i64>> {
        let alike = self.text == earlier.text && self.values.len() == earlier.values.len();
        let pairs = self.values.iter().zip(&earlier.values);
        alike.then(|| pairs.map(|(now, then)| now.ordinal.saturating_sub(then.ordinal)).collect())
    }

    fn from_parts(parts: Vec<Part>) -> Self {
        let (mut text, mut values) = (String::new(), Vec::new());
        for part in &parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Value(value) => {
                    text.push_str(value.form.placeholder());
                    values.push(*value);
                }
            }
        }
        Self { text, values, parts }
    }
}

impl Form {
    fn placeholder(self) -> &'static str {
        match self {
            Self::Date { separator: None } => "{date}",
            Self::Date { .. } => "{date-}",
            Self::Hour => "{hour}",
            Self::Month { separator: None } => "{month}",
            Self::Month { .. } => "{month-}",
            Self::Week { .. } => "{week}",
            Self::Quarter { .. } => "{quarter}",
            Self::Year => "{year}",
            Self::Number { .. } => "{n}",
        }
    }

    /// Whether values of both forms count the same.
    pub fn counts_as(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Value {
    fn write(self, name: &mut String) {
        let between = |separator: Option<char>| separator.map(String::from).unwrap_or_default();
        let date = |days: i64| {
            let epoch = NaiveDate::default();
            u64::try_from(days).ok().and_then(|days| epoch.checked_add_days(Days::new(days))).unwrap_or(epoch)
        };
        // Writing to a string cannot fail.
        let _ = match self.form {
            Form::Date { separator } => {
                let (date, between) = (date(self.ordinal), between(separator));
                write!(name, "{:04}{between}{:02}{between}{:02}", date.year(), date.month(), date.day())
            }
            Form::Hour => {
                let (date, hour) = (date(self.ordinal.div_euclid(24)), self.ordinal.rem_euclid(24));
                write!(name, "{:04}{:02}{:02}{hour:02}", date.year(), date.month(), date.day())
            }
            Form::Month { separator } => {
                let (year, month) = (self.ordinal.div_euclid(12), self.ordinal.rem_euclid(12) + 1);
                write!(name, "{year:04}{}{month:02}", between(separator))
            }
            Form::Week { separator } => {
                let week = date(self.ordinal * 7 + MONDAY).iso_week();
                write!(name, "{:04}{}w{:02}", week.year(), between(separator), week.week())
            }
            Form::Quarter { separator } => {
                let (year, quarter) = (self.ordinal.div_euclid(4), self.ordinal.rem_euclid(4) + 1);
                write!(name, "{year:04}{}q{quarter}", between(separator))
            }
            Form::Year => write!(name, "{:04}", self.ordinal),
            Form::Number { width } => write!(name, "{:0width$}", self.ordinal),
        };
    }
}

/// Days from the epoch, a Thursday, to the Monday of its week.
const MONDAY: i64 = -3 + 7;

/// The value that a text begins with, and how long it is. The text begins with a digit.
fn value_at(text: &str) -> Option<(Value, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let value = |form, ordinal, length| Some((Value { form, ordinal }, length));
    let number = |from: usize, length: usize| text.get(from..from + length)?.parse::<i64>().ok();
    match digits {
        10 => {
            if let (Some(days), Some(hour @ 0..24)) = (days(text, 4, 6), number(8, 2)) {
                return value(Form::Hour, days * 24 + hour, 10);
            }
        }
        8 => {
            if let Some(days) = days(text, 4, 6) {
                return value(Form::Date { separator: None }, days, 8);
            }
        }
        6 => {
            if let Some(month) = month(text, 4) {
                return value(Form::Month { separator: None }, month, 6);
            }
        }
        4 => {
            if let Some(found) = after_year(text) {
                return Some(found);
            }
        }
        _ => {}
    }
    // Longer numbers are identifiers, not steps of a sequence.
    let ordinal = number(0, digits).filter(|_| digits <= 15)?;
    let width = if text.starts_with('0') { digits } else { 1 };
    value(Form::Number { width }, ordinal, digits)
}

/// A text that begins with four digits, taken as a year: what else belongs to it.
fn after_year(text: &str) -> Option<(Value, usize)> {
    let year = text.get(..4)?.parse::<i64>().ok().filter(|year| (1900..2200).contains(year))?;
    let value = |form, ordinal, length| Some((Value { form, ordinal }, length));
    let next = text.get(4..)?.chars().next();
    let separator = next.filter(|next| ['_', '-', '.'].contains(next));
    let at = 4 + usize::from(separator.is_some());
    let rest = text.get(at..)?;
    let digits = |from: usize| rest.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let number = |from: usize, length: usize| rest.get(from..from + length)?.parse::<i64>().ok();
    match rest.chars().next() {
        Some('w' | 'W') if digits(1) == 2 => {
            let week = u32::try_from(number(1, 2)?).ok()?;
            let monday = NaiveDate::from_isoywd_opt(i32::try_from(year).ok()?, week, Weekday::Mon)?;
            let days = monday.signed_duration_since(NaiveDate::default()).num_days();
            return value(Form::Week { separator }, (days - MONDAY).div_euclid(7), at + 3);
        }
        Some('q' | 'Q') if digits(1) == 1 => {
            let quarter = number(1, 1).filter(|quarter| (1..=4).contains(quarter))?;
            return value(Form::Quarter { separator }, year * 4 + quarter - 1, at + 2);
        }
        Some(_) if separator.is_some() && digits(0) == 2 => {
            let day = rest.get(2..).filter(|rest| rest.chars().next() == separator);
            if day.is_some()
                && digits(3) == 2
                && let Some(days) = days(text, at, at + 3)
            {
                return value(Form::Date { separator }, days, at + 5);
            }
            if let Some(month) = month(text, at) {
                return value(Form::Month { separator }, month, at + 2);
            }
        }
        _ => {}
    }
    value(Form::Year, year, 4)
}

/// Days since the epoch of the date whose year begins the text.
fn days(text: &str, month: usize, day: usize) -> Option<i64> {
    let part = |from: usize, length: usize| text.get(from..from + length)?.parse::<u32>().ok();
    let year = part(0, 4).filter(|year| (1970..2200).contains(year))?;
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, part(month, 2)?, part(day, 2)?)?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

/// Months since year 0 of the month whose year begins the text.
fn month(text: &str, at: usize) -> Option<i64> {
    let part = |from: usize, length: usize| text.get(from..from + length)?.parse::<i64>().ok();
    let year = part(0, 4).filter(|year| (1900..2200).contains(year))?;
    let month = part(at, 2).filter(|month| (1..=12).contains(month))?;
    Some(year * 12 + month - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_put_together_again_and_continued() {
        for (name, text, next) in [
            ("sales20210803", "sales{date}", "sales20210804"),
            ("sales20211231", "sales{date}", "sales20220101"),
            ("s_2021_08_31_x", "s_{date-}_x", "s_2021_09_01_x"),
            ("s2021-08-03", "s{date-}", "s2021-08-04"),
            ("load2021080323", "load{hour}", "load2021080400"),
            ("m202112", "m{month}", "m202201"),
            ("m_2021_12", "m_{month-}", "m_2022_01"),
            ("w2020w53", "w{week}", "w2021w01"),
            ("w2021_w31", "w{week}", "w2021_w32"),
            ("q2021q4", "q{quarter}", "q2022q1"),
            ("y2021", "y{year}", "y2022"),
            ("part7", "part{n}", "part8"),
            ("part009", "part{n}", "part010"),
            ("größe9", "größe{n}", "größe10"),
        ] {
            let pattern = Pattern::of(name);
            assert_eq!((pattern.text.as_str(), pattern.name().as_str()), (text, name));
            assert_eq!(pattern.moved(&[1]).name(), next);
            assert_eq!(Pattern::of(next).steps_from(&pattern), Some(vec![1]), "{name}");
        }
    }

    #[test]
    fn what_is_no_date_is_a_number() {
        for (name, text) in [
            ("t20211399", "t{n}"),
            ("t99", "t{n}"),
            ("t202113", "t{n}"),
            ("t12345678901234567890", "t12345678901234567890"),
            ("products", "products"),
        ] {
            let pattern = Pattern::of(name);
            assert_eq!((pattern.text.as_str(), pattern.name().as_str()), (text, name));
        }
    }
}
