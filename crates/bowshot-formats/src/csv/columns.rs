//! Columns under construction: each takes values as they are written, and becomes an array. A type that was guessed from the
//! first rows takes no value that it would not give back: `007` is no number then.

use super::type_inference::is_null_word;
use super::values::{self, Notation};
use crate::digits;
use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    NullBufferBuilder, StringArray,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// The empty text, and in columns that are no text also the words for nothing.
    Usual,
    Listed(Vec<Vec<u8>>),
}

impl Nulls {
    pub(super) fn lists(&self, text: &[u8]) -> bool {
        matches!(self, Self::Listed(listed) if listed.iter().any(|null| null == text))
    }
}

pub(super) struct Column {
    values: Values,
    notation: Notation,
    nulls: Arc<Nulls>,
    data_type: DataType,
    typing: Typing,
}

/// Who has said the type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typing {
    /// A statement, an operator or a table: whatever can mean a value of it is one.
    Asked,
    /// The first rows.
    Guessed,
}

enum Values {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Huge {
        builder: Decimal128Builder,
        scale: i8,
    },
    Float(Float64Builder),
    Date(Date32Builder),
    /// Units of which a second has so many.
    Moment {
        builder: Int64Builder,
        per_second: i64,
        zoned: bool,
    },
    Time(Int64Builder),
    Text(Texts),
    /// Read as text, and made what it is when the batch is full.
    Cast(Texts),
}

impl Column {
    pub(super) fn new(
        (data_type, typing): (&DataType, Typing),
        notation: &Notation,
        nulls: &Arc<Nulls>,
        rows: usize,
    ) -> Self {
        let values = match data_type {
            DataType::Boolean => Values::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::Int64 => Values::Integer(Int64Builder::with_capacity(rows)),
            // What was asked for is rounded as casts do it.
            DataType::Decimal128(38, scale) if *scale == 0 || typing == Typing::Guessed => {
                Values::Huge { builder: Decimal128Builder::with_capacity(rows), scale: *scale }
            }
            DataType::Float64 => Values::Float(Float64Builder::with_capacity(rows)),
            DataType::Date32 => Values::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp(unit, zone) => Values::Moment {
                builder: Int64Builder::with_capacity(rows),
                per_second: values::per_second(*unit),
                zoned: zone.is_some(),
            },
            DataType::Time64(TimeUnit::Microsecond) => Values::Time(Int64Builder::with_capacity(rows)),
            DataType::Utf8 => Values::Text(Texts::new(rows)),
            _ => Values::Cast(Texts::new(rows)),
        };
        let (notation, nulls, data_type) = (notation.clone(), Arc::clone(nulls), data_type.clone());
        Self { values, notation, nulls, data_type, typing }
    }

    /// Takes a value; false if it is none of the type, and then the column has it not.
    pub(super) fn push(&mut self, text: &[u8]) -> bool {
        let text = if matches!(self.values, Values::Text(_)) { text } else { text.trim_ascii() };
        if self.is_null(text) {
            self.push_null();
            return true;
        }
        if !self.keeps(text) {
            return false;
        }
        let notation = &self.notation;
        match &mut self.values {
            Values::Boolean(builder) => values::any_boolean(text).map(|value| builder.append_value(value)),
            Values::Integer(builder) => {
                values::integer(text, notation.thousands).map(|value| builder.append_value(value))
            }
            Values::Huge { builder, scale } => {
                huge(text, *scale, notation).map(|value| builder.append_value(value))
            }
            Values::Float(builder) => values::float(text, notation).map(|value| builder.append_value(value)),
            Values::Date(builder) => values::date(text, notation).map(|value| builder.append_value(value)),
            Values::Moment { builder, per_second, zoned } => values::stamp(text, notation)
                .filter(|stamp| self.typing == Typing::Asked || stamp.zoned == *zoned)
                .and_then(|stamp| stamp.in_units(*per_second))
                .map(|value| builder.append_value(value)),
            Values::Time(builder) => values::time(text).map(|value| builder.append_value(value)),
            Values::Text(texts) | Values::Cast(texts) => texts.push(text),
        }
        .is_some()
    }

    pub(super) fn takes(&self, text: &[u8]) -> bool {
        let is_text = matches!(self.values, Values::Text(_));
        let text = if is_text { text } else { text.trim_ascii() };
        if self.is_null(text) {
            return true;
        }
        if !self.keeps(text) {
            return false;
        }
        match &self.values {
            Values::Boolean(_) => values::any_boolean(text).is_some(),
            Values::Integer(_) => values::integer(text, self.notation.thousands).is_some(),
            Values::Huge { scale, .. } => huge(text, *scale, &self.notation).is_some(),
            Values::Float(_) => values::float(text, &self.notation).is_some(),
            Values::Date(_) => values::date(text, &self.notation).is_some(),
            Values::Moment { per_second, zoned, .. } => {
                values::stamp(text, &self.notation).is_some_and(|stamp| {
                    let said = self.typing == Typing::Asked || stamp.zoned == *zoned;
                    said && stamp.in_units(*per_second).is_some()
                })
            }
            Values::Time(_) => values::time(text).is_some(),
            Values::Text(_) => std::str::from_utf8(text).is_ok(),
            Values::Cast(_) => std::str::from_utf8(text).is_ok_and(|text| {
                let one = StringArray::from(vec![text]);
                cast_with_options(&one, &self.data_type, &strict()).is_ok()
            }),
        }
    }

    /// Whether the type gives a value back as it stands, as far as that is a question: in the first rows such values are what makes
    /// a column text.
    fn keeps(&self, text: &[u8]) -> bool {
        let whole = || !values::is_padded(text) && values::is_well_grouped(text, &self.notation);
        match &self.values {
            _ if self.typing == Typing::Asked => true,
            Values::Boolean(_) => values::boolean(text).is_some(),
            Values::Integer(_) | Values::Huge { .. } => whole(),
            Values::Float(_) => {
                let plain = values::plain(text, &self.notation);
                whole() && plain.is_some_and(|plain| digits::is_exact(&plain))
            }
            Values::Date(_) | Values::Moment { .. } | Values::Time(_) | Values::Text(_) | Values::Cast(_) => {
                true
            }
        }
    }

    fn is_null(&self, text: &[u8]) -> bool {
        let is_text = matches!(self.values, Values::Text(_));
        match self.nulls.as_ref() {
            Nulls::Usual => {
                text.is_empty() || (!is_text && is_null_word(text) && !matches!(self.values, Values::Cast(_)))
            }
            Nulls::Listed(listed) => listed.iter().any(|null| null == text) || (text.is_empty() && !is_text),
        }
    }

    fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(builder) => builder.append_null(),
            Values::Integer(builder) | Values::Moment { builder, .. } | Values::Time(builder) => {
                builder.append_null()
            }
            Values::Huge { builder, .. } => builder.append_null(),
            Values::Float(builder) => builder.append_null(),
            Values::Date(builder) => builder.append_null(),
            Values::Text(texts) | Values::Cast(texts) => texts.push_null(),
        }
    }

    /// The array, and the column is empty again.
    ///
    /// # Errors
    /// What is wrong of which row, counted from zero.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, Wrong> {
        Ok(match &mut self.values {
            Values::Boolean(builder) => Arc::new(builder.finish()),
            Values::Integer(builder) => Arc::new(builder.finish()),
            Values::Huge { builder, .. } => Arc::new(builder.finish().with_data_type(self.data_type.clone())),
            Values::Float(builder) => Arc::new(builder.finish()),
            Values::Date(builder) => Arc::new(builder.finish()),
            Values::Moment { builder, .. } | Values::Time(builder) => {
                cast_with_options(&builder.finish(), &self.data_type, &strict())?
            }
            Values::Text(texts) => Arc::new(texts.finish()?),
            Values::Cast(texts) => {
                let texts = texts.finish()?;
                let cast = cast_with_options(&texts, &self.data_type, &strict());
                cast.map_err(|error| Wrong::found(&texts, &self.data_type, error))?
            }
        })
    }

    pub(super) fn data_type(&self) -> &DataType {
        &self.data_type
    }
}

fn huge(text: &[u8], scale: i8, notation: &Notation) -> Option<i128> {
    match scale {
        0 => values::huge(text),
        _ => digits::decimal(&values::plain(text, notation)?, scale),
    }
}

#[derive(Debug)]
pub(crate) struct Wrong {
    pub row: usize,
    /// The value, where one value is what is wrong.
    pub value: Option<String>,
    pub error: ArrowError,
}

impl Wrong {
    /// Looks for the first text that is no value of a type.
    fn found(texts: &StringArray, data_type: &DataType, error: ArrowError) -> Self {
        let lenient = CastOptions { safe: true, ..CastOptions::default() };
        let row = cast_with_options(texts, data_type, &lenient)
            .ok()
            .and_then(|cast| (0..texts.len()).find(|row| texts.is_valid(*row) && cast.is_null(*row)));
        match row {
            Some(row) => Self { row, value: Some(texts.value(row).to_owned()), error },
            None => Self::from(error),
        }
    }
}

impl From<ArrowError> for Wrong {
    fn from(error: ArrowError) -> Self {
        Self { row: 0, value: None, error }
    }
}

fn strict() -> CastOptions<'static> {
    CastOptions { safe: false, ..CastOptions::default() }
}

/// Texts side by side. They are checked to be UTF-8 all at once, when they become an array.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Texts {
    fn new(rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self { bytes: Vec::new(), ends, nulls: NullBufferBuilder::new(rows) }
    }

    fn push(&mut self, text: &[u8]) -> Option<()> {
        let end = i32::try_from(self.bytes.len() + text.len()).ok()?;
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        self.nulls.append_non_null();
        Some(())
    }

    fn push_null(&mut self) {
        self.ends.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
        self.nulls.append_null();
    }

    fn finish(&mut self) -> Result<StringArray, ArrowError> {
        let capacity = self.ends.len();
        let bytes = std::mem::take(&mut self.bytes);
        let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(capacity));
        self.ends.push(0);
        let nulls = self.nulls.finish();
        self.bytes.reserve(bytes.len() + bytes.len() / 16);
        StringArray::try_new(OffsetBuffer::new(ScalarBuffer::from(ends)), Buffer::from_vec(bytes), nulls)
    }
}
