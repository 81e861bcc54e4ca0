//! Names that count: `sales20210803`, `logs_2021_w31`, `part7`. A name is split into text and values, so that names of one sequence can be
//! recognised, compared and continued. Joined again, every name is what it was.

mod calendar;
mod layout;
mod months;
#[cfg(test)]
mod tests;

use layout::{Layout, Order, Style};
use months::Length;
use std::fmt::Write as _;

/// A name as text and values. Ordered by the text first, then by the values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pattern {
    /// The name with a placeholder for each value: what all names of a sequence have in common. It is the same in every
    /// reading of the name.
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
    parts: Vec<NamePiece>,
}

/// One value of a name. Ordered by what it counts first: `part099` comes before `part100`, which has no leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Value {
    /// How many days, months, … since a fixed one.
    pub(crate) ordinal: i64,
    pub(crate) form: Form,
}

/// What a value counts and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Form(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Time {
        layout: &'static Layout,
        style: Style,
    },
    /// A number, with leading zeros up to this width.
    Number {
        width: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NamePiece {
    Text(String),
    Value(Value),
}

/// How ambiguous names are parsed. Other names of a sequence decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Of `03_08_2021`.
    order: Order,
    /// Of `may`, which is as long in full.
    may: Length,
}

impl Reading {
    /// The default: day first, as in most countries, and short months.
    pub(crate) const USUAL: Self = Self { order: Order::DayFirst, may: Length::Short };
    /// All of them, the usual one first.
    pub(crate) const ALL: [Self; 4] = [
        Self::USUAL,
        Self { order: Order::DayFirst, may: Length::Full },
        Self { order: Order::MonthFirst, may: Length::Short },
        Self { order: Order::MonthFirst, may: Length::Full },
    ];
}

impl Pattern {
    pub(crate) fn of(name: &str) -> Self {
        Self::read(name, Reading::USUAL)
    }

    /// Parses the name of a schema. Only times count in it: `tenant7` is rather a tenant than the seventh of a
    /// sequence, and tables of tenants do not continue one another.
    pub(crate) fn of_schema(name: &str) -> Self {
        Self::read_schema(name, Reading::USUAL)
    }

    pub(crate) fn read(name: &str, reading: Reading) -> Self {
        Self::taken_apart(name, |text| time_at(text, reading).or_else(|| number_at(text)))
    }

    pub(crate) fn read_schema(name: &str, reading: Reading) -> Self {
        Self::taken_apart(name, |text| time_at(text, reading))
    }

    /// Splits a name into the values that `value_at` finds at the start of a text, with their length, and the text
    /// between them.
    fn taken_apart(name: &str, value_at: impl Fn(&str) -> Option<(Value, usize)>) -> Self {
        let (mut parts, mut rest, mut literal) = (Vec::new(), name, String::new());
        if !name.bytes().any(|byte| byte.is_ascii_digit()) {
            // Every value has a digit; most names have none.
            (rest, literal) = ("", name.to_owned());
        }
        while let Some(first) = rest.chars().next() {
            let found = if first.is_ascii_alphanumeric() { value_at(rest) } else { None };
            let length = match found {
                Some((value, length)) => {
                    if !literal.is_empty() {
                        parts.push(NamePiece::Text(std::mem::take(&mut literal)));
                    }
                    parts.push(NamePiece::Value(value));
                    length
                }
                None => {
                    // All digits of an identifier, so that its end does not look like a number.
                    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                    let length = digits.max(first.len_utf8());
                    literal.push_str(rest.get(..length).unwrap_or_default());
                    length
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
        if !literal.is_empty() {
            parts.push(NamePiece::Text(literal));
        }
        Self::from_parts(parts)
    }

    pub(crate) fn name(&self) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                NamePiece::Text(text) => name.push_str(text),
                NamePiece::Value(value) => value.write(&mut name),
            }
        }
        name
    }

    /// The name of the same sequence with the values moved on: `steps` has one number for each value.
    #[must_use]
    pub(crate) fn moved(&self, steps: &[i64]) -> Self {
        let mut steps = steps.iter();
        let parts = self.parts.iter().map(|part| match part {
            NamePiece::Text(text) => NamePiece::Text(text.clone()),
            NamePiece::Value(value) => {
                let ordinal = value.ordinal.saturating_add(steps.next().copied().unwrap_or(0));
                NamePiece::Value(Value { ordinal, ..*value })
            }
        });
        Self::from_parts(parts.collect())
    }

    /// The steps from an earlier name of the same sequence; `None` for another sequence.
    pub(crate) fn steps_from(&self, earlier: &Self) -> Option<Vec<i64>> {
        let alike = self.text == earlier.text && self.values.len() == earlier.values.len();
        let pairs = self.values.iter().zip(&earlier.values);
        alike.then(|| pairs.map(|(now, then)| now.ordinal.saturating_sub(then.ordinal)).collect())
    }

    fn from_parts(parts: Vec<NamePiece>) -> Self {
        let (mut text, mut values) = (String::new(), Vec::new());
        for part in &parts {
            match part {
                NamePiece::Text(literal) => text.push_str(literal),
                NamePiece::Value(value) => {
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
        match self.0 {
            Kind::Time { layout, .. } => layout.placeholder,
            Kind::Number { .. } => "{n}",
        }
    }

    /// Whether values of both forms count the same.
    pub(crate) fn counts_as(self, other: Self) -> bool {
        match (self.0, other.0) {
            (Kind::Time { layout: one, .. }, Kind::Time { layout: other, .. }) => one.unit == other.unit,
            (Kind::Number { .. }, Kind::Number { .. }) => true,
            _ => false,
        }
    }

    /// Whether its values are numbers and no times.
    pub(crate) fn is_number(self) -> bool {
        matches!(self.0, Kind::Number { .. })
    }
}

impl Value {
    fn write(self, name: &mut String) {
        match self.form.0 {
            Kind::Time { layout, style } => layout.write(self.ordinal, style, name),
            Kind::Number { width } => {
                // Writing to a string cannot fail.
                let _ = write!(name, "{:0width$}", self.ordinal);
            }
        }
    }
}

/// The time at the start of a text, and its length. The text starts with a digit that follows none, or with
/// a letter.
fn time_at(text: &str, reading: Reading) -> Option<(Value, usize)> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        // Most letters do not start a month.
        months::name_at(text, reading.may)?;
    }
    let found = layout::read(text, reading)?;
    let form = Form(Kind::Time { layout: found.layout, style: found.style });
    Some((Value { ordinal: found.ordinal, form }, found.length))
}

/// The number at the start of a text, and its length.
fn number_at(text: &str) -> Option<(Value, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // Longer numbers are identifiers, not steps of a sequence.
    let ordinal = text.get(..digits).filter(|_| digits <= 15)?.parse::<i64>().ok()?;
    let width = if text.starts_with('0') { digits } else { 1 };
    Some((Value { ordinal, form: Form(Kind::Number { width }) }, digits))
}
