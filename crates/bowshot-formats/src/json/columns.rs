//! Columns under construction: each takes values off the text, and becomes an array. What a column's type cannot hold without
//! losing some of it is refused here: `1.5` is no whole number.
//!
//! A row that turns out to be none is taken back ([`Column::truncate`]), so columns keep plain vectors. What a row lacks is
//! filled in when the next value comes, all at once: rows of few keys are cheap in tables of many.

use super::cursor::{Cursor, Quoted, Trouble, Unfit, compact};
use super::object::Object;
use super::others;
use super::texts::Texts;
use super::type_inference::{self, Shape};
use crate::csv::values::{self, Notation};
use crate::digits;
use crate::text::shown;
use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, ListArray,
    NullBufferBuilder, StructArray, UInt64Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields};
use arrow::error::ArrowError;
use std::sync::Arc;

/// Whole numbers up to here are floating-point numbers without loss.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Debug)]
pub(super) struct Wrong {
    /// The row, counted from zero, if one row is to blame.
    pub(super) row: Option<usize>,
    pub(super) detail: String,
}

impl From<ArrowError> for Wrong {
    fn from(error: ArrowError) -> Self {
        Self { row: None, detail: error.to_string() }
    }
}

#[derive(Clone)]
pub(super) struct Reading {
    /// Whether the column's type was asked for, so that texts are taken for what they say.
    pub(super) asked: bool,
    pub(super) notation: Notation,
    /// Whether a value is checked when it comes, because its row may be left out for it.
    pub(super) checked: bool,
}

pub(super) struct Column {
    pub(super) name: String,
    data_type: DataType,
    values: Values,
    valid: NullBufferBuilder,
    reading: Reading,
}

enum Values {
    /// Of a file that has shown no value yet.
    Nothing,
    Truth(Vec<bool>),
    Whole {
        values: Vec<i64>,
        least: i64,
        most: i64,
    },
    Large(Vec<u64>),
    Huge {
        values: Vec<i128>,
        scale: i8,
    },
    Real(Vec<f64>),
    Date(Vec<i32>),
    Moment {
        values: Vec<i64>,
        per_second: i64,
        zoned: bool,
    },
    /// `json`: each value as it is written; `nested`: lists and objects too.
    Text {
        texts: Texts,
        json: bool,
        nested: bool,
    },
    List {
        ends: Vec<i32>,
        item: Box<Column>,
    },
    Object(Box<Object>),
    /// Types that only a table of our own has: each value as it is written, until the batch is full.
    Other(Texts),
}

impl Column {
    /// `shape`: what the file was seen to have there.
    pub(super) fn new(name: &str, data_type: &DataType, shape: &Shape, reading: &Reading) -> Self {
        let whole = |least: i64, most: i64| Values::Whole { values: Vec::new(), least, most };
        let values = match data_type {
            DataType::Null => Values::Nothing,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text_values(shape, reading),
            DataType::Boolean => Values::Truth(Vec::new()),
            DataType::Int64 => whole(i64::MIN, i64::MAX),
            DataType::Int32 => whole(i32::MIN.into(), i32::MAX.into()),
            DataType::Int16 => whole(i16::MIN.into(), i16::MAX.into()),
            DataType::Int8 => whole(i8::MIN.into(), i8::MAX.into()),
            DataType::UInt32 => whole(0, u32::MAX.into()),
            DataType::UInt16 => whole(0, u16::MAX.into()),
            DataType::UInt8 => whole(0, u8::MAX.into()),
            DataType::UInt64 => Values::Large(Vec::new()),
            // What was asked for is rounded as casts do it.
            DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale) if *scale == 0 || !reading.asked => {
                Values::Huge { values: Vec::new(), scale: *scale }
            }
            DataType::Float64 | DataType::Float32 | DataType::Float16 => Values::Real(Vec::new()),
            DataType::Date32 => Values::Date(Vec::new()),
            DataType::Timestamp(unit, zone) => Values::Moment {
                values: Vec::new(),
                per_second: values::per_second(*unit),
                zoned: zone.is_some(),
            },
            DataType::List(field) => {
                let item = Self::new(name, field.data_type(), shape.item(), reading);
                Values::List { ends: vec![0], item: Box::new(item) }
            }
            DataType::Struct(fields) if !fields.is_empty() => {
                let columns = fields.iter().map(|field| {
                    Self::new(field.name(), field.data_type(), shape.member(field.name()), reading)
                });
                Values::Object(Box::new(Object::new(columns.collect(), std::iter::empty(), false)))
            }
            _ => Values::Other(Texts::default()),
        };
        let valid = NullBufferBuilder::new(0);
        Self { name: name.to_owned(), data_type: data_type.clone(), values, valid, reading: reading.clone() }
    }

    /// Takes the value at the cursor as that of a row. Of a key that comes twice in an object, the last value counts.
    pub(super) fn take(&mut self, cursor: &mut Cursor<'_>, row: usize) -> Result<(), Trouble> {
        if self.valid.len() > row {
            self.truncate(row);
        }
        self.pad(row);
        if cursor.peek()? == b'n' {
            cursor.word(b"null")?;
            self.pad(row + 1);
            return Ok(());
        }
        let mut again = *cursor;
        if self.values.take(cursor, (&self.reading, &self.data_type), row)? {
            self.valid.append_non_null();
            return Ok(());
        }
        Err(Trouble::Unfit(Box::new(Unfit {
            column: self.name.clone(),
            value: shown(again.skip()?),
            data_type: self.data_type.to_string(),
            asked: self.reading.asked,
        })))
    }

    /// Nulls up to a number of rows.
    fn pad(&mut self, rows: usize) {
        let missing = rows.saturating_sub(self.valid.len());
        if missing == 0 {
            return;
        }
        self.valid.append_n_nulls(missing);
        match &mut self.values {
            Values::Truth(values) => values.resize(rows, false),
            Values::Whole { values, .. } | Values::Moment { values, .. } => values.resize(rows, 0),
            Values::Large(values) => values.resize(rows, 0),
            Values::Huge { values, .. } => values.resize(rows, 0),
            Values::Real(values) => values.resize(rows, 0.0),
            Values::Date(values) => values.resize(rows, 0),
            Values::Text { texts, .. } | Values::Other(texts) => texts.pad(rows),
            Values::List { ends, .. } => ends.resize(rows + 1, ends.last().copied().unwrap_or(0)),
            // The columns of an object are filled up by themselves.
            Values::Nothing | Values::Object(_) => {}
        }
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.valid.truncate(rows.min(self.valid.len()));
        match &mut self.values {
            Values::Nothing => {}
            Values::Truth(values) => values.truncate(rows),
            Values::Whole { values, .. } | Values::Moment { values, .. } => values.truncate(rows),
            Values::Large(values) => values.truncate(rows),
            Values::Huge { values, .. } => values.truncate(rows),
            Values::Real(values) => values.truncate(rows),
            Values::Date(values) => values.truncate(rows),
            Values::Text { texts, .. } | Values::Other(texts) => texts.truncate(rows),
            Values::List { ends, item } => {
                ends.truncate(rows + 1);
                // Also of a list that was never closed.
                item.truncate(usize::try_from(ends.last().copied().unwrap_or(0)).unwrap_or(0));
            }
            Values::Object(object) => object.truncate(rows),
        }
    }

    /// The array of so many rows, and the column is empty again.
    pub(super) fn finish(&mut self, rows: usize) -> Result<ArrayRef, Wrong> {
        self.pad(rows);
        let nulls = std::mem::replace(&mut self.valid, NullBufferBuilder::new(0)).finish();
        let array: ArrayRef = match &mut self.values {
            Values::Nothing => new_null_array(&self.data_type, rows),
            Values::Truth(values) => Arc::new(BooleanArray::new(std::mem::take(values).into(), nulls)),
            Values::Whole { values, .. } | Values::Moment { values, .. } => {
                Arc::new(Int64Array::new(std::mem::take(values).into(), nulls))
            }
            Values::Large(values) => Arc::new(UInt64Array::new(std::mem::take(values).into(), nulls)),
            Values::Huge { values, scale } => {
                let huge = Decimal128Array::new(std::mem::take(values).into(), nulls);
                Arc::new(huge.with_precision_and_scale(DECIMAL128_MAX_PRECISION, *scale)?)
            }
            Values::Real(values) => Arc::new(Float64Array::new(std::mem::take(values).into(), nulls)),
            Values::Date(values) => Arc::new(Date32Array::new(std::mem::take(values).into(), nulls)),
            Values::Text { texts, .. } => Arc::new(std::mem::take(texts).finish(nulls)?),
            Values::List { ends, item } => list(ends, item, (&self.data_type, nulls))?,
            Values::Object(object) => {
                let columns = object.finish(rows)?;
                Arc::new(StructArray::try_new(members(&self.data_type), columns, nulls)?)
            }
            Values::Other(texts) => {
                others::array(&std::mem::take(texts), nulls.as_ref(), (&self.name, &self.data_type))?
            }
        };
        if *array.data_type() == self.data_type {
            return Ok(array);
        }
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        Ok(cast_with_options(&array, &self.data_type, &strict)?)
    }
}

impl Values {
    /// Takes the value at the cursor; false if it is none of these.
    fn take(
        &mut self,
        cursor: &mut Cursor<'_>,
        (reading, data_type): (&Reading, &DataType),
        row: usize,
    ) -> Result<bool, Trouble> {
        let first = cursor.peek()?;
        match self {
            Self::Nothing => return Ok(false),
            Self::Text { texts, json, nested } => return text(texts, cursor, (*json, *nested)),
            Self::List { ends, item } => return elements(ends, item, cursor),
            Self::Object(object) => {
                let fits = first == b'{';
                if fits {
                    object.take(cursor, row)?;
                }
                return Ok(fits);
            }
            Self::Other(texts) => {
                let raw = cursor.skip()?;
                let fits = !reading.checked || others::fits(raw, data_type);
                return Ok(fits && texts.push(raw));
            }
            _ => {}
        }
        let taken = match first {
            b'"' => {
                let text = cursor.text()?;
                self.take_text(text, reading)?
            }
            b't' | b'f' => {
                let truth = first == b't';
                cursor.word(if truth { b"true" } else { b"false" })?;
                match self {
                    Self::Truth(values) => {
                        values.push(truth);
                        Some(())
                    }
                    _ => None,
                }
            }
            b'-' | b'0'..=b'9' => {
                let number = cursor.number()?;
                self.take_number(number, reading)
            }
            _ => None,
        };
        Ok(taken.is_some())
    }

    fn take_number(&mut self, number: &[u8], reading: &Reading) -> Option<()> {
        match self {
            Self::Whole { values, least, most } => {
                let value = whole(number).filter(|value| (*least..=*most).contains(value))?;
                values.push(value);
            }
            Self::Large(values) => {
                let plain = || std::str::from_utf8(number).ok()?.parse::<u64>().ok();
                values.push(plain().or_else(|| u64::try_from(whole(number)?).ok())?);
            }
            Self::Huge { values, scale } => {
                let unit = || 10_i128.checked_pow(u32::try_from(*scale).ok()?);
                let short = || i128::from(whole(number)?).checked_mul(unit()?);
                values.push(digits::decimal(number, *scale).or_else(short)?);
            }
            // Who has asked for such numbers takes what they do to digits.
            Self::Real(values) => {
                values.push(real(number).filter(|_| reading.asked || digits::is_exact(number))?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Texts are dates and times, and anything else where that was asked for.
    fn take_text(&mut self, text: Quoted<'_>, reading: &Reading) -> Result<Option<()>, Trouble> {
        let text = text.meant()?;
        let (text, asked) = (text.trim_ascii(), reading.asked);
        Ok(match self {
            Self::Date(values) => {
                let days =
                    if asked { values::date(text, &reading.notation) } else { type_inference::date(text) };
                days.map(|days| values.push(days))
            }
            Self::Moment { values, per_second, zoned } => {
                let stamp = if asked {
                    values::stamp(text, &reading.notation)
                } else {
                    type_inference::moment(text, *zoned)
                };
                stamp.and_then(|stamp| stamp.in_units(*per_second)).map(|moment| values.push(moment))
            }
            Self::Truth(values) if asked => values::any_boolean(text).map(|truth| values.push(truth)),
            Self::Whole { .. } | Self::Large(_) | Self::Huge { .. } | Self::Real(_) if asked => {
                self.take_number(text, reading)
            }
            _ => None,
        })
    }
}

fn text_values(shape: &Shape, reading: &Reading) -> Values {
    let json = matches!(shape, Shape::Mixed | Shape::List(_) | Shape::Object(_));
    match shape {
        Shape::Nothing if !reading.asked => Values::Nothing,
        _ => Values::Text { texts: Texts::default(), json, nested: json || reading.asked },
    }
}

fn text(texts: &mut Texts, cursor: &mut Cursor<'_>, (json, nested): (bool, bool)) -> Result<bool, Trouble> {
    let fits = match cursor.peek()? {
        b'"' if !json => texts.push(&cursor.text()?.meant()?),
        b'{' | b'[' if !nested => false,
        b'{' | b'[' => {
            let raw = cursor.skip()?;
            texts.push_with(|bytes| compact(raw, bytes))
        }
        _ => texts.push(cursor.skip()?),
    };
    Ok(fits)
}

fn elements(ends: &mut Vec<i32>, item: &mut Column, cursor: &mut Cursor<'_>) -> Result<bool, Trouble> {
    if cursor.peek()? != b'[' {
        return Ok(false);
    }
    let mut more = cursor.enter(b']')?;
    while more {
        let row = item.valid.len();
        item.take(cursor, row)?;
        more = cursor.more(b']')?;
    }
    let end = i32::try_from(item.valid.len());
    if let Ok(end) = end {
        ends.push(end);
    }
    Ok(end.is_ok())
}

fn list(
    ends: &mut Vec<i32>,
    item: &mut Column,
    (data_type, nulls): (&DataType, Option<NullBuffer>),
) -> Result<ArrayRef, Wrong> {
    let DataType::List(field) = data_type else {
        return Err(ArrowError::CastError(format!("{data_type} is not a list")).into());
    };
    let ends = std::mem::replace(ends, vec![0]);
    let count = usize::try_from(ends.last().copied().unwrap_or(0)).unwrap_or(0);
    // Which of the rows an element belongs to, nobody needs to know.
    let items = item.finish(count).map_err(|wrong| Wrong { row: None, ..wrong })?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, items, nulls)?))
}

fn members(data_type: &DataType) -> Fields {
    match data_type {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::from(Vec::<Field>::new()),
    }
}

/// A whole number, also as `1.0` or `1e3`.
fn whole(number: &[u8]) -> Option<i64> {
    if let Some(value) = values::integer(number, None) {
        return Some(value);
    }
    let value = plain_real(number)?;
    // In this range each whole number is exact.
    (value.fract() == 0.0 && value.abs() <= MAX_EXACT).then_some(value as i64)
}

fn real(number: &[u8]) -> Option<f64> {
    // Most numbers are short and whole, and those are sooner read as such.
    match number.len() <= 15 {
        true => values::integer(number, None)
            .map(|value| value as f64)
            .or_else(|| values::short_decimal(number))
            .or_else(|| plain_real(number)),
        false => plain_real(number),
    }
}

fn plain_real(number: &[u8]) -> Option<f64> {
    std::str::from_utf8(number).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}
