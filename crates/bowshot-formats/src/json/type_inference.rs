//! Infers the type of JSON values. Numbers are widened, to decimals or text where others would lose digits. Texts mixed with numbers are
//! text. A value that is nested in only some rows is JSON text.

use super::cursor::{Cursor, Trouble};
use crate::csv::values::{self, Notation, Stamp};
use crate::digits::Digits;
use crate::type_union;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use std::collections::HashMap;
use std::sync::Arc;

/// Deeper values are text.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Shape {
    #[default]
    Nothing,
    Truth,
    Number(Number),
    Text(Times),
    List(Box<Shape>),
    Object(Members),
    /// JSON text.
    Mixed,
}

static NOTHING: Shape = Shape::Nothing;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Number {
    negative: bool,
    /// Some are larger than the largest signed number of 64 bits.
    large: bool,
    /// Some are whole numbers that 64 bits do not hold.
    huge: bool,
    /// Some have a fraction or an exponent.
    real: bool,
    digits: Digits,
}

impl Number {
    fn of(number: &[u8]) -> Self {
        let digits = Digits::of(number);
        let negative = number.starts_with(b"-");
        let real = number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if real || values::integer(number, None).is_some() {
            return Self { negative, real, digits, ..Self::default() };
        }
        let large = std::str::from_utf8(number).is_ok_and(|text| text.parse::<u64>().is_ok());
        Self { negative, large, huge: !large, real, digits }
    }

    fn unite(&mut self, other: Self) {
        self.negative |= other.negative;
        self.large |= other.large;
        self.huge |= other.huge;
        self.real |= other.real;
        self.digits.unite(other.digits);
    }

    fn data_type(self) -> DataType {
        match self {
            Self { real: true, digits, .. } => digits.real_type(),
            Self { huge: true, digits, .. } | Self { large: true, negative: true, digits, .. } => {
                digits.huge_type()
            }
            Self { large: true, .. } => DataType::UInt64,
            _ => DataType::Int64,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Members {
    names: Vec<String>,
    shapes: Vec<Shape>,
    places: HashMap<String, usize>,
}

impl Members {
    fn of(&mut self, name: &str) -> &mut Shape {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                self.places.insert(name.to_owned(), self.names.len());
                self.names.push(name.to_owned());
                self.shapes.push(Shape::Nothing);
                self.shapes.len() - 1
            }
        };
        &mut self.shapes[place]
    }

    fn get(&self, name: &str) -> Option<&Shape> {
        self.shapes.get(*self.places.get(name)?)
    }

    /// The columns that rows of these members have.
    pub(super) fn fields(&self) -> Fields {
        let fields = self.names.iter().zip(&self.shapes).map(|(name, shape)| {
            let data_type = match shape {
                Shape::Text(times) => times.data_type(),
                other => other.data_type(),
            };
            Field::new(name, data_type, true)
        });
        fields.collect()
    }
}

impl Shape {
    /// Names of members, in the order in which they came.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::Object(members) => members.names.as_slice(),
            _ => &[],
        };
        names.iter().map(String::as_str)
    }

    pub(super) fn item(&self) -> &Self {
        match self {
            Self::List(item) => item,
            _ => &NOTHING,
        }
    }

    pub(super) fn member(&self, name: &str) -> &Self {
        match self {
            Self::Object(members) => members.get(name).unwrap_or(&NOTHING),
            _ => &NOTHING,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Nothing => DataType::Null,
            Self::Truth => DataType::Boolean,
            Self::Number(number) => number.data_type(),
            Self::Text(_) | Self::Mixed => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.data_type(), true))),
            // A struct needs a member.
            Self::Object(members) if members.names.is_empty() => DataType::Utf8,
            Self::Object(members) => DataType::Struct(
                members
                    .names
                    .iter()
                    .zip(&members.shapes)
                    .map(|(n, s)| Field::new(n, s.data_type(), true))
                    .collect(),
            ),
        }
    }

    /// Takes the value at the cursor. Taking it twice changes nothing, so that a truncated value may be begun again.
    pub(super) fn see(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<(), Trouble> {
        match cursor.peek()? {
            b'n' => cursor.word(b"null")?,
            first @ (b't' | b'f') => {
                cursor.word(if first == b't' { b"true" } else { b"false" })?;
                self.take(Self::Truth);
            }
            b'"' => {
                let times = Times::of(&cursor.text()?.meant()?);
                self.take(Self::Text(times));
            }
            b'[' => return self.see_list(cursor, depth),
            b'{' => return self.see_object(cursor, depth),
            _ => {
                let number = Number::of(cursor.number()?);
                self.take(Self::Number(number));
            }
        }
        Ok(())
    }

    fn see_list(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<(), Trouble> {
        if *self == Self::Nothing && depth < MAX_DEPTH {
            *self = Self::List(Box::default());
        }
        let Self::List(item) = self else {
            *self = Self::Mixed;
            return cursor.skip().map(drop);
        };
        let mut more = cursor.enter(b']')?;
        while more {
            item.see(cursor, depth + 1)?;
            more = cursor.more(b']')?;
        }
        Ok(())
    }

    fn see_object(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<(), Trouble> {
        if *self == Self::Nothing && depth < MAX_DEPTH {
            *self = Self::Object(Members::default());
        }
        let Self::Object(members) = self else {
            *self = Self::Mixed;
            return cursor.skip().map(drop);
        };
        let mut more = cursor.enter(b'}')?;
        while more {
            let key = cursor.key()?.meant()?;
            let name = std::str::from_utf8(&key).map_err(|_| Trouble::Syntax("a key is not valid UTF-8"))?;
            members.of(name).see(cursor, depth + 1)?;
            more = cursor.more(b'}')?;
        }
        Ok(())
    }

    /// Takes a value that is no list and no object.
    fn take(&mut self, other: Self) {
        let old = std::mem::take(self);
        *self = match (old, other) {
            (Self::Nothing, other) => other,
            (Self::Truth, Self::Truth) => Self::Truth,
            (Self::Number(mut number), Self::Number(more)) => {
                number.unite(more);
                Self::Number(number)
            }
            (Self::Text(mut times), Self::Text(more)) => {
                times.unite(&more);
                Self::Text(times)
            }
            (Self::Mixed | Self::List(_) | Self::Object(_), _) => Self::Mixed,
            _ => Self::Text(Times::none()),
        };
    }
}

/// Whether texts are all dates, or all times of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    dates: bool,
    times: bool,
    zoned: bool,
    unit: TimeUnit,
    /// Whether 64 bits hold them all in billionths of a second.
    fits_nanoseconds: bool,
}

impl Times {
    fn none() -> Self {
        let (dates, times, zoned, fits_nanoseconds) = (false, false, false, false);
        Self { dates, times, zoned, unit: TimeUnit::Second, fits_nanoseconds }
    }

    fn of(text: &[u8]) -> Self {
        let dates = date(text).is_some();
        match any_moment(text) {
            Some(stamp) => Self {
                dates,
                times: true,
                zoned: stamp.zoned,
                unit: unit_of(stamp.digits),
                fits_nanoseconds: stamp.in_units(1_000_000_000).is_some(),
            },
            None => Self { dates, ..Self::none() },
        }
    }

    fn unite(&mut self, other: &Self) {
        self.dates &= other.dates;
        self.times &= other.times && self.zoned == other.zoned;
        self.unit = type_union::finer(self.unit, other.unit);
        self.fits_nanoseconds &= other.fits_nanoseconds;
    }

    fn data_type(self) -> DataType {
        match self {
            Self { dates: true, .. } => DataType::Date32,
            Self { times: true, unit: TimeUnit::Nanosecond, fits_nanoseconds: false, .. } => DataType::Utf8,
            Self { times: true, zoned, unit, .. } => DataType::Timestamp(unit, zoned.then(|| "UTC".into())),
            _ => DataType::Utf8,
        }
    }
}

/// `2024-01-31`, in days since 1970.
pub(super) fn date(text: &[u8]) -> Option<i32> {
    let dashed = text.len() == 10 && text[4] == b'-' && text[7] == b'-';
    dashed.then(|| values::date(text, &Notation::default())).flatten()
}

/// `2024-01-31T10:00:00` with or without fraction and zone, as in the column; or a date, as other files may have it.
pub(super) fn moment(text: &[u8], zoned: bool) -> Option<Stamp> {
    if let Some(days) = date(text) {
        return Some(Stamp { seconds: i64::from(days) * 86_400, nanos: 0, digits: 0, zoned });
    }
    any_moment(text).filter(|stamp| stamp.zoned == zoned)
}

fn any_moment(text: &[u8]) -> Option<Stamp> {
    let long = text.len() >= 19 && text[4] == b'-' && matches!(text[10], b'T' | b' ');
    long.then(|| values::stamp(text, &Notation::default())).flatten()
}

/// The unit that keeps the digits behind the second.
fn unit_of(digits: usize) -> TimeUnit {
    match digits {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::Shape;

    fn types(rows: &[&str]) -> String {
        let mut shape = Shape::default();
        for row in rows {
            shape.see(&mut Cursor::new(row.as_bytes(), 0), 0).unwrap();
        }
        let Shape::Object(members) = shape else { panic!("no object") };
        let fields = members.fields();
        fields.iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn shapes_hold_all_values() {
        for (rows, expected) in [
            (&[r#"{"b": 1, "a": 2.5}"#, r#"{"a": 1, "c": null}"#][..], "b Int64, a Float64, c Null"),
            (&[r#"{"a": 1}"#, r#"{"a": "x"}"#], "a Utf8"),
            (&[r#"{"a": 1}"#, r#"{"a": {"b": 1}}"#], "a Utf8"),
            (&[r#"{"a": [1]}"#, r#"{"a": [2.5, null]}"#], "a List(Float64)"),
            (&[r#"{"a": "2024-01-01"}"#, r#"{"a": "2024-01-02"}"#], "a Date32"),
            (&[r#"{"a": 18446744073709551615}"#], "a UInt64"),
            (&[r#"{"a": 18446744073709551615}"#, r#"{"a": -1}"#], "a Decimal128(38, 0)"),
            (&[r#"{"a": 18446744073709551616}"#, r#"{"a": -1}"#], "a Decimal128(38, 0)"),
            (&[r#"{"a": 9007199254740992}"#, r#"{"a": 1.5}"#], "a Float64"),
            (&[r#"{"a": 1.5}"#, r#"{"a": 9007199254740993}"#], "a Decimal128(38, 1)"),
            (&[r#"{"a": 9007199254740993}"#, r#"{"a": 1e300}"#], "a Utf8"),
            (&[r#"{"a": [9007199254740993, 0.25]}"#], "a List(Decimal128(38, 2))"),
            (&[r#"{"a": 1000000000000000000000000000000000000000}"#], "a Utf8"),
            (&[r#"{"a": "1500-01-01T00:00:00"}"#], "a Timestamp(s)"),
            (&[r#"{"a": "1500-01-01T00:00:00.123456789"}"#], "a Utf8"),
            (&[r#"{"a": "2024-01-01T00:00:00"}"#, r#"{"a": "2024-01-01T00:00:00Z"}"#], "a Utf8"),
            (&[r#"{"a": {}}"#], "a Utf8"),
            (&[r#"{"a": {"x": 1}}"#, r#"{"a": {"y": "z"}}"#], "a Struct(\"x\": Int64, \"y\": Utf8)"),
        ] {
            assert_eq!(types(rows), expected, "{rows:?}");
        }
    }
}
