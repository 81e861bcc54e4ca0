//! What values of JSON are: the shape that holds all of them, in the order in which keys come.
//!
//! Numbers are widened. Texts and numbers in one place are text. What is nested in one row and not in another is kept as
//! JSON text, so that nothing is lost and no row fails.

use crate::csv::values::{self, Notation, Stamp};
use crate::schema;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, TimeUnit};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Deeper values are text.
const MAX_DEPTH: usize = 32;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Shape {
    #[default]
    Nothing,
    Truth,
    Whole(Whole),
    Float,
    Text(Times),
    List(Box<Shape>),
    Object(Members),
    /// JSON text.
    Mixed,
}

static NOTHING: Shape = Shape::Nothing;

/// What is known of whole numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Whole {
    negative: bool,
    /// Some are larger than the largest signed number of 64 bits.
    large: bool,
}

impl Whole {
    fn data_type(self) -> DataType {
        match (self.large, self.negative) {
            (false, _) => DataType::Int64,
            (true, false) => DataType::UInt64,
            (true, true) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        }
    }
}

/// The members of objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Members {
    names: Vec<String>,
    shapes: Vec<Shape>,
    places: HashMap<String, usize>,
}

impl Members {
    fn of(&mut self, name: String) -> &mut Shape {
        let place = match self.places.get(&name) {
            Some(place) => *place,
            None => {
                self.places.insert(name.clone(), self.names.len());
                self.names.push(name);
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

    /// What elements of a list are.
    pub(super) fn item(&self) -> &Self {
        match self {
            Self::List(item) => item,
            _ => &NOTHING,
        }
    }

    /// What the member of a name is.
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
            Self::Whole(whole) => whole.data_type(),
            Self::Float => DataType::Float64,
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

    /// Takes a value that is no list and no object.
    fn take(&mut self, other: Self) {
        let old = std::mem::take(self);
        *self = match (old, other) {
            (Self::Nothing, other) => other,
            (same @ (Self::Truth | Self::Float), other) if same == other => same,
            (Self::Whole(one), Self::Whole(other)) => Self::Whole(Whole {
                negative: one.negative || other.negative,
                large: one.large || other.large,
            }),
            (Self::Whole(_) | Self::Float, Self::Whole(_) | Self::Float) => Self::Float,
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

    fn of(text: &str) -> Self {
        let text = text.as_bytes();
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
        self.unit = schema::finer(self.unit, other.unit);
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

/// `2024-01-31T10:00:00` with or without fraction and zone, as the column has it; or a date, which other files of a table
/// may have there.
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

/// Takes one value into a shape, at a depth.
pub(super) struct Into<'a>(pub(super) &'a mut Shape, pub(super) usize);

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.0.take(Shape::Truth);
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.take(Shape::Whole(Whole { negative: value < 0, large: false }));
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.take(Shape::Whole(Whole { negative: false, large: i64::try_from(value).is_err() }));
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.0.take(Shape::Float);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.take(Shape::Text(Times::of(text)));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if *self.0 == Shape::Nothing && self.1 < MAX_DEPTH {
            *self.0 = Shape::List(Box::default());
        }
        if let Shape::List(item) = self.0 {
            while list.next_element_seed(Into(item, self.1 + 1))?.is_some() {}
            return Ok(());
        }
        *self.0 = Shape::Mixed;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        if *self.0 == Shape::Nothing && self.1 < MAX_DEPTH {
            *self.0 = Shape::Object(Members::default());
        }
        if let Shape::Object(members) = self.0 {
            while let Some(name) = object.next_key::<String>()? {
                object.next_value_seed(Into(members.of(name), self.1 + 1))?;
            }
            return Ok(());
        }
        *self.0 = Shape::Mixed;
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Takes the elements of a list as rows, up to a number of them.
pub(super) struct Elements<'a> {
    pub(super) shape: &'a mut Shape,
    pub(super) rows: &'a mut usize,
    pub(super) most: usize,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while *self.rows < self.most && list.next_element_seed(Into(self.shape, 0))?.is_some() {
            *self.rows += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Into, Shape};
    use serde::de::DeserializeSeed;

    fn types(rows: &[&str]) -> String {
        let mut shape = Shape::default();
        for row in rows {
            Into(&mut shape, 0).deserialize(&mut serde_json::Deserializer::from_str(row)).unwrap();
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
