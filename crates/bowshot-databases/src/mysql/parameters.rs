//! Arrays to parameters of a statement, column by column. A value that MySQL cannot store is an error before it is sent.

use super::values::EPOCH;
use crate::columns::Column;
use crate::error::DatabaseError;
use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use mysql_async::Value;

const SECOND: u64 = 1_000_000;
const DAY: i64 = 86_400_000_000;
/// The last microsecond of a TIME: 838:59:59.999999.
const LAST: u64 = (838 * 3_600 + 59 * 60 + 59) * SECOND + 999_999;

pub(super) fn parameters(array: &ArrayRef, column: &Column) -> Result<Vec<Value>, DatabaseError> {
    let wanted = column.field.data_type();
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let array =
        cast_with_options(array, wanted, &options).map_err(|_| of(column, "a value of another type"))?;
    if !column.field.is_nullable() && array.null_count() > 0 {
        return Err(of(column, "NULL, which is not allowed,"));
    }
    let values = match wanted {
        DataType::Int8 => of_each::<Int8Type>(&array, |number| Some(Value::Int(i64::from(number)))),
        DataType::Int16 => of_each::<Int16Type>(&array, |number| Some(Value::Int(i64::from(number)))),
        DataType::Int32 => of_each::<Int32Type>(&array, |number| Some(Value::Int(i64::from(number)))),
        DataType::Int64 => of_each::<Int64Type>(&array, |number| Some(Value::Int(number))),
        DataType::UInt8 => of_each::<UInt8Type>(&array, |number| Some(Value::UInt(u64::from(number)))),
        DataType::UInt16 => of_each::<UInt16Type>(&array, |number| Some(Value::UInt(u64::from(number)))),
        DataType::UInt32 => of_each::<UInt32Type>(&array, |number| Some(Value::UInt(u64::from(number)))),
        DataType::UInt64 => of_each::<UInt64Type>(&array, |number| Some(Value::UInt(number))),
        DataType::Float32 => {
            of_each::<Float32Type>(&array, |number| number.is_finite().then_some(Value::Float(number)))
        }
        DataType::Float64 => {
            of_each::<Float64Type>(&array, |number| number.is_finite().then_some(Value::Double(number)))
        }
        DataType::Boolean => {
            let truths = array.as_boolean().iter();
            Some(
                truths.map(|truth| truth.map_or(Value::NULL, |truth| Value::Int(i64::from(truth)))).collect(),
            )
        }
        DataType::Decimal128(_, scale) => of_each::<Decimal128Type>(&array, |number| {
            Some(Value::Bytes(decimal(number, *scale)?.into_bytes()))
        }),
        DataType::Utf8 => Some(bytes(array.as_string::<i32>().iter().map(|text| text.map(str::as_bytes)))),
        DataType::Binary => Some(bytes(array.as_binary::<i32>().iter())),
        DataType::Date32 => of_each::<Date32Type>(&array, |day| date(i64::from(day), 0)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            of_each::<TimestampMicrosecondType>(&array, |moment| {
                date(moment.div_euclid(DAY), moment.rem_euclid(DAY).unsigned_abs())
            })
        }
        DataType::Duration(TimeUnit::Microsecond) => of_each::<DurationMicrosecondType>(&array, time),
        _ => None,
    };
    values.ok_or_else(|| of(column, "a value out of range"))
}

fn of_each<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    value: impl Fn(T::Native) -> Option<Value>,
) -> Option<Vec<Value>> {
    let values = array.as_primitive::<T>().iter();
    values.map(|number| number.map_or(Some(Value::NULL), &value)).collect()
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Vec<Value> {
    values.map(|bytes| bytes.map_or(Value::NULL, |bytes| Value::Bytes(bytes.to_vec()))).collect()
}

/// `-12.50`
fn decimal(number: i128, scale: i8) -> Option<String> {
    let scale = usize::try_from(scale).ok()?;
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = scale + 1);
    let (before, behind) = digits.split_at_checked(digits.len() - scale)?;
    let sign = if number < 0 { "-" } else { "" };
    Some(if scale == 0 { format!("{sign}{before}") } else { format!("{sign}{before}.{behind}") })
}

/// A date and time, from days since 1970 and microseconds of the day.
fn date(day: i64, micros: u64) -> Option<Value> {
    let date = NaiveDate::from_num_days_from_ce_opt(i32::try_from(day + i64::from(EPOCH)).ok()?)?;
    let year = u16::try_from(date.year()).ok().filter(|year| (1..=9_999).contains(year))?;
    let seconds = micros / SECOND;
    let part = |number: u64| u8::try_from(number).ok();
    Some(Value::Date(
        year,
        u8::try_from(date.month()).ok()?,
        u8::try_from(date.day()).ok()?,
        part(seconds / 3_600)?,
        part(seconds / 60 % 60)?,
        part(seconds % 60)?,
        u32::try_from(micros % SECOND).ok()?,
    ))
}

fn time(micros: i64) -> Option<Value> {
    let whole = micros.unsigned_abs();
    if whole > LAST {
        return None;
    }
    let seconds = whole / SECOND;
    let part = |number: u64| u8::try_from(number).ok();
    Some(Value::Time(
        micros < 0,
        u32::try_from(seconds / 86_400).ok()?,
        part(seconds / 3_600 % 24)?,
        part(seconds / 60 % 60)?,
        part(seconds % 60)?,
        u32::try_from(whole % SECOND).ok()?,
    ))
}

fn of(column: &Column, what: &str) -> DatabaseError {
    DatabaseError::Value(format!(
        "cannot store {what} in column `{}` of type {}",
        column.field.name(),
        column.declared
    ))
}
