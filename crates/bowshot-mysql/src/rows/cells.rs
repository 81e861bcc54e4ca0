//! The cells of scalar columns. Types that differ only in their width are brought together first, where nothing is lost.

use super::times::{self, Day, Interval};
use super::types::{fraction, is};
use super::{Cell, Done, Kind, Of, Texts, json};
use crate::reply::put_counted;
use crate::rows::ColumnType;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, GenericBinaryArray,
    GenericStringArray, OffsetSizeTrait, PrimitiveArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Field, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bytes::{BufMut, BytesMut};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The cell of a column, whose points of time are shown in a time zone.
pub(super) fn cell(array: &ArrayRef, field: &Field, zone: &str) -> Result<Box<dyn Cell>, Failure> {
    if let Some(to) = wider(array.data_type()) {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let array = cast_with_options(array, &to, &strict).map_err(|error| {
            let message =
                format!("column `{}` of type {} cannot be sent: {error}", field.name(), field.data_type());
            Failure::new(1264, "22003", message).with_hint("cast it in the query")
        })?;
        return cell(&array, &field.clone().with_data_type(to), zone);
    }
    if ColumnType::of(field).kind == Kind::Json && field.data_type().is_nested() {
        return json::cell(array, field, zone);
    }
    match number(array).or_else(|| text_or_bytes(array, is(field, "uuid"))) {
        Some(cell) => Ok(cell),
        None => time(array, zone),
    }
}

/// The type to which one is brought before it is written.
fn wider(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::ListView(item) => DataType::List(Arc::clone(item)),
        DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
        _ => return None,
    })
}

fn number(array: &ArrayRef) -> Option<Box<dyn Cell>> {
    Some(match array.data_type() {
        DataType::Null => Box::new(Nulls),
        DataType::Boolean => sure(
            array.as_boolean().clone(),
            |array, row, out| out.put_u8(if array.value(row) { b'1' } else { b'0' }),
            |array, row, out| out.put_u8(u8::from(array.value(row))),
        ),
        DataType::Int8 => integer::<Int8Type>(array, |out, value| out.put_i8(value)),
        DataType::UInt8 => integer::<UInt8Type>(array, |out, value| out.put_u8(value)),
        DataType::Int16 => integer::<Int16Type>(array, |out, value| out.put_i16_le(value)),
        DataType::UInt16 => integer::<UInt16Type>(array, |out, value| out.put_u16_le(value)),
        DataType::Int32 => integer::<Int32Type>(array, |out, value| out.put_i32_le(value)),
        DataType::UInt32 => integer::<UInt32Type>(array, |out, value| out.put_u32_le(value)),
        DataType::Int64 => integer::<Int64Type>(array, |out, value| out.put_i64_le(value)),
        DataType::UInt64 => integer::<UInt64Type>(array, |out, value| out.put_u64_le(value)),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(array, *precision, *scale),
        DataType::Float32 => sure(
            array.as_primitive::<Float32Type>().clone(),
            |array, row, out| put_float(&format!("{:e}", array.value(row)), out),
            |array, row, out| out.put_f32_le(array.value(row)),
        ),
        DataType::Float64 => sure(
            array.as_primitive::<Float64Type>().clone(),
            |array, row, out| put_float(&format!("{:e}", array.value(row)), out),
            |array, row, out| out.put_f64_le(array.value(row)),
        ),
        _ => return None,
    })
}

fn text_or_bytes(array: &ArrayRef, is_uuid: bool) -> Option<Box<dyn Cell>> {
    Some(match array.data_type() {
        DataType::Utf8 => text::<i32>(array),
        DataType::LargeUtf8 => text::<i64>(array),
        DataType::Binary => bytes::<i32>(array),
        DataType::LargeBinary => bytes::<i64>(array),
        DataType::FixedSizeBinary(16) if is_uuid => {
            texts(array.as_fixed_size_binary().clone(), |array: &FixedSizeBinaryArray, row, out| {
                put_uuid(array.value(row), out);
                Ok(())
            })
        }
        DataType::FixedSizeBinary(_) => sure(
            array.as_fixed_size_binary().clone(),
            |array: &FixedSizeBinaryArray, row, out| out.put_slice(array.value(row)),
            |array, row, out| put_counted(out, array.value(row)),
        ),
        _ => return None,
    })
}

fn time(array: &ArrayRef, zone: &str) -> Result<Box<dyn Cell>, Failure> {
    Ok(match array.data_type() {
        DataType::Date32 => of(
            array.as_primitive::<Date32Type>().clone(),
            |array, row, out| {
                Day::of(array.value(row).into())?.put(out);
                Ok(())
            },
            |array, row, out| {
                Day::of(array.value(row).into())?.binary(out);
                Ok(())
            },
        ),
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => span(array, *unit)?,
        DataType::Timestamp(unit, None) => timestamp(array, *unit, None)?,
        DataType::Timestamp(unit, Some(_)) => timestamp(array, *unit, times::clocks(zone)?)?,
        DataType::Interval(unit) => interval(array, *unit),
        other => return Err(Failure::new(1105, "HY000", format!("values of type {other} cannot be sent"))),
    })
}

/// A cell whose values may not fit.
fn of<A, T, B>(array: A, text: T, binary: B) -> Box<dyn Cell>
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync + 'static,
    B: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync + 'static,
{
    Box::new(Of { array, text, binary })
}

/// A cell all of whose values fit.
pub(super) fn sure<A, T, B>(array: A, text: T, binary: B) -> Box<dyn Cell>
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) + Send + Sync + 'static,
    B: Fn(&A, usize, &mut BytesMut) + Send + Sync + 'static,
{
    of(
        array,
        move |array, row, out| {
            text(array, row, out);
            Ok(())
        },
        move |array, row, out| {
            binary(array, row, out);
            Ok(())
        },
    )
}

/// A cell whose binary form is its text.
fn texts<A, T>(array: A, text: T) -> Box<dyn Cell>
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) -> Done + Send + Sync + 'static,
{
    Box::new(Texts { array, text })
}

/// Writes what shows itself; a buffer of memory takes all of it.
pub(super) fn put(out: &mut BytesMut, shown: fmt::Arguments<'_>) {
    _ = out.write_fmt(shown);
}

/// Every row is null, whatever the array says: one of type `Null` has no marks for it.
struct Nulls;

impl Cell for Nulls {
    fn is_null(&self, _: usize) -> bool {
        true
    }

    fn text(&self, _: usize, _: &mut BytesMut) -> Done {
        Ok(())
    }

    fn binary(&self, _: usize, _: &mut BytesMut, _: &mut BytesMut) -> Done {
        Ok(())
    }
}

fn integer<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    binary: impl Fn(&mut BytesMut, T::Native) + Send + Sync + 'static,
) -> Box<dyn Cell>
where
    T::Native: fmt::Display,
{
    sure(
        array.as_primitive::<T>().clone(),
        |array, row, out| put(out, format_args!("{}", array.value(row))),
        move |array, row, out| binary(out, array.value(row)),
    )
}

fn decimal<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Box<dyn Cell> {
    texts(array.as_primitive::<T>().clone(), move |array: &PrimitiveArray<T>, row, out| {
        out.put_slice(T::format_decimal(array.value(row), precision, scale).as_bytes());
        Ok(())
    })
}

/// Numbers of this size or larger have an exponent in their text, as in MySQL.
const LARGE_EXPONENT: i32 = 15;

/// Writes a number that Rust has written with an exponent (`1.5e20`) as MySQL does: `1.5e20`, `0.0001`. MySQL has no infinities
/// and nothing that is no number; they are called as Java and C call them.
fn put_float(shown: &str, out: &mut BytesMut) {
    let Some((mantissa, exponent)) = shown.split_once('e') else {
        out.put_slice(match shown {
            "inf" => b"Infinity",
            "-inf" => b"-Infinity",
            _ => b"NaN",
        });
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-5..LARGE_EXPONENT).contains(&exponent) {
        out.put_slice(shown.as_bytes());
        return;
    }
    let unsigned = mantissa.trim_start_matches('-');
    if unsigned.len() < mantissa.len() {
        out.put_u8(b'-');
    }
    let digits = unsigned.replace('.', "");
    let whole = usize::try_from(exponent + 1).unwrap_or(0);
    if whole == 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', usize::try_from(-exponent - 1).unwrap_or(0));
        out.put_slice(digits.as_bytes());
        return;
    }
    let (before, after) = digits.split_at(whole.min(digits.len()));
    out.put_slice(before.as_bytes());
    out.put_bytes(b'0', whole - before.len());
    if !after.is_empty() {
        out.put_u8(b'.');
        out.put_slice(after.as_bytes());
    }
}

fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_string::<O>().clone(),
        |array: &GenericStringArray<O>, row, out| out.put_slice(array.value(row).as_bytes()),
        |array, row, out| put_counted(out, array.value(row).as_bytes()),
    )
}

fn bytes<O: OffsetSizeTrait>(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_binary::<O>().clone(),
        |array: &GenericBinaryArray<O>, row, out| out.put_slice(array.value(row)),
        |array, row, out| put_counted(out, array.value(row)),
    )
}

fn put_uuid(bytes: &[u8], out: &mut BytesMut) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.put_u8(b'-');
        }
        put(out, format_args!("{byte:02x}"));
    }
}

/// The whole numbers below an array of times.
fn ticks(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, Failure> {
    let narrow = match array.data_type() {
        DataType::Time32(_) => DataType::Int32,
        _ => DataType::Int64,
    };
    let broken = |error| Failure::new(1105, "HY000", format!("times are no numbers: {error}"));
    let data = array.to_data().into_builder().data_type(narrow).build().map_err(broken)?;
    let numbers = arrow::array::make_array(data);
    let numbers = arrow::compute::cast(&numbers, &DataType::Int64).map_err(broken)?;
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

fn span(array: &ArrayRef, unit: TimeUnit) -> Result<Box<dyn Cell>, Failure> {
    let decimals = fraction(unit);
    Ok(of(
        ticks(array)?,
        move |array, row, out| {
            times::put_time(times::micros(array.value(row), unit)?, decimals, out);
            Ok(())
        },
        move |array, row, out| {
            times::binary_time(times::micros(array.value(row), unit)?, out);
            Ok(())
        },
    ))
}

/// Points of time, shown as the clocks of a zone do, or as they are.
fn timestamp(array: &ArrayRef, unit: TimeUnit, zone: Option<Tz>) -> Result<Box<dyn Cell>, Failure> {
    let decimals = fraction(unit);
    let shown = move |array: &PrimitiveArray<Int64Type>, row: usize| {
        let micros = times::micros(array.value(row), unit)?;
        zone.map_or(Ok(micros), |zone| times::local(micros, zone))
    };
    Ok(of(
        ticks(array)?,
        move |array, row, out| times::put_timestamp(shown(array, row)?, decimals, out),
        move |array, row, out| times::binary_timestamp(shown(array, row)?, out),
    ))
}

fn interval(array: &ArrayRef, unit: IntervalUnit) -> Box<dyn Cell> {
    match unit {
        IntervalUnit::YearMonth => texts(
            array.as_primitive::<IntervalYearMonthType>().clone(),
            |array: &PrimitiveArray<_>, row, out| {
                Interval { months: array.value(row), days: 0, micros: 0 }.put(out);
                Ok(())
            },
        ),
        IntervalUnit::DayTime => texts(
            array.as_primitive::<IntervalDayTimeType>().clone(),
            |array: &PrimitiveArray<_>, row, out| {
                let value = array.value(row);
                let micros = i64::from(value.milliseconds) * 1_000;
                Interval { months: 0, days: value.days, micros }.put(out);
                Ok(())
            },
        ),
        IntervalUnit::MonthDayNano => texts(
            array.as_primitive::<IntervalMonthDayNanoType>().clone(),
            |array: &PrimitiveArray<_>, row, out| {
                let value = array.value(row);
                Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 }
                    .put(out);
                Ok(())
            },
        ),
    }
}
