//! The tree of values that XGBoost writes, as JSON or as UBJSON. Lists of numbers are kept as numbers: a model is little
//! else, and the whole stays near the size of its file.

use crate::error::{Error, Result};
use crate::limits::{DOCUMENT_DEPTH, DOCUMENT_VALUES};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// A value of a document.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// The value of a key, if this is an object that has it.
    pub(crate) fn find(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value of a key, or an error that names it.
    pub(crate) fn get(&self, key: &str) -> Result<&Value> {
        self.find(key).ok_or_else(|| Error::damaged(format!("`{key}` is missing")))
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str> {
        match self.get(key)? {
            Value::Text(text) => Ok(text),
            _ => Err(Error::damaged(format!("`{key}` is not a string"))),
        }
    }

    /// The number of a key; XGBoost writes parameters as texts.
    pub(crate) fn number(&self, key: &str) -> Result<f64> {
        let number = match self.get(key)? {
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| Error::damaged(format!("`{key}` is not a number")))
    }

    pub(crate) fn count(&self, key: &str) -> Result<usize> {
        place(self.number(key)?).ok_or_else(|| Error::damaged(format!("`{key}` is not a whole number")))
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<&[f64]> {
        match self.get(key)? {
            Value::Numbers(numbers) => Ok(numbers),
            Value::List(list) if list.is_empty() => Ok(&[]),
            _ => Err(Error::damaged(format!("`{key}` is not a list of numbers"))),
        }
    }

    /// The values of a key, where they are no numbers.
    pub(crate) fn list(&self, key: &str) -> Result<&[Value]> {
        match self.get(key)? {
            Value::List(list) => Ok(list),
            Value::Numbers(numbers) if numbers.is_empty() => Ok(&[]),
            _ => Err(Error::damaged(format!("`{key}` is not a list"))),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at before")]
pub(crate) fn place(number: f64) -> Option<usize> {
    (number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0).then_some(number as usize)
}

pub(crate) fn from_json(bytes: &[u8]) -> Result<Value> {
    let left = Cell::new(DOCUMENT_VALUES);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed { left: &left, depth: 0 }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| Error::damaged(error.to_string()))
}

/// Reads one value, as long as the document has not too many and is not too deep.
#[derive(Clone, Copy)]
struct Seed<'a> {
    left: &'a Cell<usize>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seed<'_> {
    fn below<E: serde::de::Error>(self) -> std::result::Result<Self, E> {
        if self.depth == DOCUMENT_DEPTH {
            return Err(E::custom("too many levels"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Counts a value that is more than a number in a list.
    fn count<E: serde::de::Error>(self) -> std::result::Result<(), E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| E::custom("too many values"))?;
        self.left.set(left);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Number(f64::from(u8::from(value))))
    }

    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "places are small")]
    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> std::result::Result<Value, E> {
        self.count()?;
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> std::result::Result<Value, A::Error> {
        self.count()?;
        let below = self.below()?;
        let mut list = Growing::Numbers(Vec::new());
        while let Some(value) = values.next_element_seed(below)? {
            if !list.push(value) {
                return Err(A::Error::custom("a list of numbers and other values"));
            }
        }
        Ok(list.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Value, A::Error> {
        self.count()?;
        let below = self.below()?;
        let mut object = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.count()?;
            object.push((key, entries.next_value_seed(below)?));
        }
        Ok(Value::Object(object))
    }
}

/// A list while it is read: of numbers, until something else comes first.
pub(crate) enum Growing {
    Numbers(Vec<f64>),
    Values(Vec<Value>),
}

impl Growing {
    /// False if numbers and other values are mixed, which no model does.
    pub(crate) fn push(&mut self, value: Value) -> bool {
        match (&mut *self, value) {
            (Self::Numbers(numbers), Value::Number(number)) => numbers.push(number),
            (Self::Numbers(numbers), value) if numbers.is_empty() => *self = Self::Values(vec![value]),
            (Self::Values(values), value) if !matches!(value, Value::Number(_)) => values.push(value),
            _ => return false,
        }
        true
    }

    pub(crate) fn finish(self) -> Value {
        match self {
            Self::Numbers(numbers) => Value::Numbers(numbers),
            Self::Values(values) => Value::List(values),
        }
    }
}
