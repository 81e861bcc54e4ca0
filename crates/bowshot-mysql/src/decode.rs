//! Values of parameters from MySQL to Arrow ("Binary Protocol Value"). They are untrusted: a value that is malformed or does
//! not fit is an error of its statement.

use crate::payload::Payload;
use crate::status::Failure;
use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, DurationMicrosecondArray, Float32Array, Float64Array, Int64Array,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::sync::Arc;

/// The type of a parameter, as the client declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParameterType {
    code: u8,
    is_unsigned: bool,
}

const UNSIGNED: u8 = 0x80;
const NULL: u8 = 6;
const DAY: i64 = 86_400_000_000;

/// The parameters as one row; `None` without parameters. Types that are not declared again are those of the last execution.
pub(crate) fn values(
    mut body: Payload,
    parameters: &Schema,
    types: &mut Vec<ParameterType>,
    long: &HashMap<u16, BytesMut>,
) -> Result<Option<RecordBatch>, Failure> {
    let count = parameters.fields().len();
    if count == 0 {
        return Ok(None);
    }
    let nulls = body.bytes(count.div_ceil(8))?;
    if body.byte()? == 1 {
        types.clear();
        for _ in 0..count {
            let (code, flags) = (body.byte()?, body.byte()?);
            types.push(ParameterType { code, is_unsigned: flags & UNSIGNED != 0 });
        }
    }
    if types.len() != count {
        return Err(Failure::new(1210, "HY000", "incorrect arguments to EXECUTE: types are missing"));
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for (index, (given, planned)) in types.iter().zip(parameters.fields()).enumerate() {
        let is_null = nulls.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0);
        let part = u16::try_from(index).ok().and_then(|index| long.get(&index));
        let array = if let Some(part) = part {
            let bytes = Bytes::copy_from_slice(part);
            if given.is_bytes() { bytes_array(&bytes) } else { text_array(&bytes) }
        } else if is_null || given.code == NULL {
            new_null_array(given.data_type().as_ref().unwrap_or(planned.data_type()), 1)
        } else {
            given.read(&mut body).map_err(|failure| Failure {
                message: format!("parameter {}: {}", index + 1, failure.message),
                ..failure
            })?
        };
        let array = cast_text(array, planned.data_type());
        fields.push(Field::new(format!("${}", index + 1), array.data_type().clone(), true));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map(Some)
        .map_err(|error| Failure::new(1105, "HY000", format!("parameters make no row: {error}")))
}

/// Clients send values of unsupported types as text: they are cast to the planned type, if possible.
fn cast_text(array: ArrayRef, planned: &DataType) -> ArrayRef {
    let is_text = matches!(array.data_type(), DataType::Utf8);
    let is_other = planned.is_numeric() || planned.is_temporal() || planned.is_binary();
    if !is_text || !is_other {
        return array;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    // Timestamps are planned in milliseconds, whatever the unit of their column.
    let planned = match planned {
        DataType::Timestamp(_, zone) => &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        other => other,
    };
    cast_with_options(&array, planned, &strict).unwrap_or(array)
}

fn bytes_array(bytes: &[u8]) -> ArrayRef {
    Arc::new(BinaryArray::from_vec(vec![bytes]))
}

/// Some clients send bytes as strings: a string that is not UTF-8 is bytes.
fn text_array(bytes: &[u8]) -> ArrayRef {
    match std::str::from_utf8(bytes) {
        Ok(text) => Arc::new(StringArray::from(vec![text])),
        Err(_) => bytes_array(bytes),
    }
}

impl ParameterType {
    fn is_bytes(self) -> bool {
        matches!(self.code, 16 | 249..=252 | 255)
    }

    /// The type of a null; `None` where the client does not know one.
    fn data_type(self) -> Option<DataType> {
        Some(match self.code {
            1 | 2 | 3 | 8 | 9 | 13 => DataType::Int64,
            4 => DataType::Float32,
            5 => DataType::Float64,
            16 | 249..=252 | 255 => DataType::Binary,
            _ => return None,
        })
    }

    fn read(self, body: &mut Payload) -> Result<ArrayRef, Failure> {
        Ok(match self.code {
            1 | 2 | 3 | 8 | 9 | 13 => self.integer(body)?,
            4 => Arc::new(Float32Array::from(vec![f32::from_bits(body.int()?)])),
            5 => Arc::new(Float64Array::from(vec![f64::from_bits(body.long()?)])),
            0 | 246 => decimal(&body.counted()?)?,
            7 | 12 => Arc::new(TimestampMicrosecondArray::from(vec![timestamp(body)?])),
            10 | 14 => {
                let days = timestamp(body)?.div_euclid(DAY);
                Arc::new(Date32Array::from(vec![i32::try_from(days).map_err(|_| incorrect("date"))?]))
            }
            11 => time(body)?,
            15 | 245 | 247 | 248 | 253 | 254 => text_array(&body.counted()?),
            16 | 249..=252 | 255 => bytes_array(&body.counted()?),
            other => {
                return Err(Failure::new(1210, "HY000", format!("values of type {other} cannot be read")));
            }
        })
    }

    fn integer(self, body: &mut Payload) -> Result<ArrayRef, Failure> {
        let signed = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        Ok(match (self.code, self.is_unsigned) {
            (1, true) => signed(body.byte()?.into()),
            (1, false) => signed(body.byte()?.cast_signed().into()),
            (2 | 13, true) => signed(body.short()?.into()),
            (2 | 13, false) => signed(body.short()?.cast_signed().into()),
            (3 | 9, true) => signed(body.int()?.into()),
            (3 | 9, false) => signed(body.int()?.cast_signed().into()),
            (_, false) => signed(body.long()?.cast_signed()),
            (_, true) => match body.long()? {
                small if i64::try_from(small).is_ok() => signed(small.cast_signed()),
                large => Arc::new(UInt64Array::from(vec![large])),
            },
        })
    }
}

fn incorrect(kind: &str) -> Failure {
    Failure::new(1292, "22007", format!("incorrect {kind} value"))
}

/// A decimal with the precision and scale of its text.
fn decimal(bytes: &[u8]) -> Result<ArrayRef, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| incorrect("DECIMAL"))?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = whole.len() + fraction.len();
    let is_number = digits > 0 && whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit());
    if !is_number || digits > 76 {
        return Err(incorrect("DECIMAL"));
    }
    let (precision, scale) = (digits as u8, fraction.len() as i8);
    let to = if digits <= 38 {
        DataType::Decimal128(precision, scale)
    } else {
        DataType::Decimal256(precision, scale)
    };
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let array: ArrayRef = Arc::new(StringArray::from(vec![text]));
    cast_with_options(&array, &to, &strict).map_err(|_| incorrect("DECIMAL"))
}

/// A date, with a time or without one, in microseconds since 1970-01-01.
fn timestamp(body: &mut Payload) -> Result<i64, Failure> {
    let length = body.byte()?;
    if !matches!(length, 4 | 7 | 11) {
        // Also the zero date of MySQL.
        return Err(incorrect("date"));
    }
    let days = days(body.short()?, body.byte()?, body.byte()?).ok_or_else(|| incorrect("date"))?;
    let mut micros = days * DAY;
    if length > 4 {
        micros += clock([body.byte()?, body.byte()?, body.byte()?])?;
    }
    if length > 7 {
        micros += fraction(body.int()?)?;
    }
    Ok(micros)
}

fn clock([hour, minute, second]: [u8; 3]) -> Result<i64, Failure> {
    if hour > 23 || minute > 59 || second > 59 {
        return Err(incorrect("time"));
    }
    Ok(((i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second)) * 1_000_000)
}

fn fraction(micros: u32) -> Result<i64, Failure> {
    if micros < 1_000_000 { Ok(micros.into()) } else { Err(incorrect("time")) }
}

/// Days since 1970-01-01, in the Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days(year: u16, month: u8, day: u8) -> Option<i64> {
    let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if year > 9_999 || !(1..=last).contains(&day) {
        return None;
    }
    let (month, day) = (i64::from(month), i64::from(day));
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// A time of the day, or a duration if it is none.
fn time(body: &mut Payload) -> Result<ArrayRef, Failure> {
    let (mut micros, mut negative) = (0, false);
    match body.byte()? {
        0 => {}
        length @ (8 | 12) => {
            negative = body.byte()? == 1;
            let days = i64::from(body.int()?);
            micros = days * DAY + clock([body.byte()?, body.byte()?, body.byte()?])?;
            if length == 12 {
                micros += fraction(body.int()?)?;
            }
        }
        _ => return Err(incorrect("time")),
    }
    Ok(match negative || micros >= DAY {
        true => Arc::new(DurationMicrosecondArray::from(vec![if negative { -micros } else { micros }])),
        false => Arc::new(Time64MicrosecondArray::from(vec![micros])),
    })
}

#[cfg(test)]
mod tests;
