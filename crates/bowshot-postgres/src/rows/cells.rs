//! The cells of scalar columns. Types that differ only in their width are brought together first, where nothing is lost.

use super::numbers::{numeric_binary, put_float4, put_float8};
use super::times::{self, Interval};
use super::{Cell, Done, Kind, Of, PgType, json, lists};
use crate::read::uuid_bytes;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, FixedSizeBinaryArray, GenericBinaryArray,
    GenericStringArray, OffsetSizeTrait, PrimitiveArray, StringViewArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Field, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time64MicrosecondType, TimeUnit, UInt64Type,
};
use bytes::{BufMut, BytesMut};
use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The cell of a column.
pub(super) fn cell(array: &ArrayRef, field: &Field) -> Result<Box<dyn Cell>, Failure> {
    let kind = PgType::of(field).kind;
    if let Some(to) = wider(array.data_type(), kind) {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let array = cast_with_options(array, &to, &strict).map_err(|error| {
            let message =
                format!("column `{}` of type {} cannot be sent: {error}", field.name(), field.data_type());
            Failure::new("22003", message).with_hint("cast it in the query")
        })?;
        return cell(&array, &field.clone().with_data_type(to));
    }
    if PgType::of(field).is_array {
        return lists::cell(array, field);
    }
    match number(array).or_else(|| text_or_bytes(array, kind)) {
        Some(cell) => Ok(cell),
        None => match time(array)? {
            Some(cell) => Ok(cell),
            None => json::cell(array, field),
        },
    }
}

/// The type to which one is brought before it is written.
fn wider(data_type: &DataType, kind: Kind) -> Option<DataType> {
    Some(match data_type {
        DataType::LargeUtf8 | DataType::Utf8View if matches!(kind, Kind::Uuid | Kind::Jsonb) => {
            DataType::Utf8
        }
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        DataType::ListView(item) => DataType::List(Arc::clone(item)),
        DataType::LargeListView(item) => DataType::LargeList(Arc::clone(item)),
        _ => return None,
    })
}

fn number(array: &ArrayRef) -> Option<Box<dyn Cell>> {
    Some(match array.data_type() {
        DataType::Null => Box::new(Nulls),
        DataType::Boolean => boolean(array),
        DataType::Int16 => integer::<Int16Type>(array, |out, value| out.put_i16(value)),
        DataType::Int32 => integer::<Int32Type>(array, |out, value| out.put_i32(value)),
        DataType::Int64 => integer::<Int64Type>(array, |out, value| out.put_i64(value)),
        DataType::UInt64 => numeric(array.as_primitive::<UInt64Type>(), |value| value.to_string()),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(array, *precision, *scale),
        DataType::Float32 => sure(
            array.as_primitive::<Float32Type>().clone(),
            |array, row, out| put_float4(array.value(row), out),
            |array, row, out| out.put_f32(array.value(row)),
        ),
        DataType::Float64 => sure(
            array.as_primitive::<Float64Type>().clone(),
            |array, row, out| put_float8(array.value(row), out),
            |array, row, out| out.put_f64(array.value(row)),
        ),
        _ => return None,
    })
}

fn text_or_bytes(array: &ArrayRef, kind: Kind) -> Option<Box<dyn Cell>> {
    Some(match array.data_type() {
        DataType::Utf8 if kind == Kind::Uuid => text_uuid(array),
        DataType::Utf8 if kind == Kind::Jsonb => jsonb(array),
        DataType::Utf8 => text::<i32>(array),
        DataType::LargeUtf8 => text::<i64>(array),
        DataType::Utf8View => {
            let put = |array: &StringViewArray, row: usize, out: &mut BytesMut| {
                out.put_slice(array.value(row).as_bytes());
            };
            sure(array.as_string_view().clone(), put, put)
        }
        DataType::Binary => bytes::<i32>(array),
        DataType::LargeBinary => bytes::<i64>(array),
        DataType::BinaryView => sure(
            array.as_binary_view().clone(),
            |array: &BinaryViewArray, row, out| put_hex(array.value(row), out),
            |array, row, out| out.put_slice(array.value(row)),
        ),
        DataType::FixedSizeBinary(16) if kind == Kind::Uuid => uuid(array),
        DataType::FixedSizeBinary(_) => sure(
            array.as_fixed_size_binary().clone(),
            |array: &FixedSizeBinaryArray, row, out| put_hex(array.value(row), out),
            |array, row, out| out.put_slice(array.value(row)),
        ),
        _ => return None,
    })
}

fn time(array: &ArrayRef) -> Result<Option<Box<dyn Cell>>, Failure> {
    Ok(Some(match array.data_type() {
        DataType::Date32 => of(
            array.as_primitive::<Date32Type>().clone(),
            |array, row, out| {
                times::put_date(array.value(row), out);
                Ok(())
            },
            |array, row, out| times::binary_date(array.value(row), out),
        ),
        DataType::Time64(TimeUnit::Microsecond) => sure(
            array.as_primitive::<Time64MicrosecondType>().clone(),
            |array, row, out| times::put_time(array.value(row), out),
            |array, row, out| out.put_i64(array.value(row)),
        ),
        DataType::Timestamp(unit, zone) => timestamp(array, *unit, zone.is_some())?,
        DataType::Duration(unit) => duration(array, *unit)?,
        DataType::Interval(unit) => interval(array, *unit),
        _ => return Ok(None),
    }))
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

    fn binary(&self, _: usize, _: &mut BytesMut) -> Done {
        Ok(())
    }
}

fn boolean(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_boolean().clone(),
        |array, row, out| out.put_u8(if array.value(row) { b't' } else { b'f' }),
        |array, row, out| out.put_u8(u8::from(array.value(row))),
    )
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
    numeric(array.as_primitive::<T>(), move |value| T::format_decimal(value, precision, scale))
}

fn numeric<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    digits: impl Fn(T::Native) -> String + Send + Sync + Clone + 'static,
) -> Box<dyn Cell> {
    let shown = digits.clone();
    of(
        array.clone(),
        move |array, row, out| {
            out.put_slice(shown(array.value(row)).as_bytes());
            Ok(())
        },
        move |array, row, out| numeric_binary(&digits(array.value(row)), out),
    )
}

fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> Box<dyn Cell> {
    let put = |array: &GenericStringArray<O>, row: usize, out: &mut BytesMut| {
        out.put_slice(array.value(row).as_bytes());
    };
    sure(array.as_string::<O>().clone(), put, put)
}

/// In binary, the version of the format comes first.
fn jsonb(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_string::<i32>().clone(),
        |array, row, out| out.put_slice(array.value(row).as_bytes()),
        |array, row, out| {
            out.put_u8(1);
            out.put_slice(array.value(row).as_bytes());
        },
    )
}

fn bytes<O: OffsetSizeTrait>(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_binary::<O>().clone(),
        |array: &GenericBinaryArray<O>, row, out| put_hex(array.value(row), out),
        |array, row, out| out.put_slice(array.value(row)),
    )
}

fn uuid(array: &ArrayRef) -> Box<dyn Cell> {
    sure(
        array.as_fixed_size_binary().clone(),
        |array: &FixedSizeBinaryArray, row, out| {
            for (index, byte) in array.value(row).iter().enumerate() {
                if matches!(index, 4 | 6 | 8 | 10) {
                    out.put_u8(b'-');
                }
                put_byte(*byte, out);
            }
        },
        |array, row, out| out.put_slice(array.value(row)),
    )
}

/// UUIDs that are kept as texts.
fn text_uuid(array: &ArrayRef) -> Box<dyn Cell> {
    of(
        array.as_string::<i32>().clone(),
        |array, row, out| {
            out.put_slice(array.value(row).as_bytes());
            Ok(())
        },
        |array, row, out| {
            let text = array.value(row);
            let bytes =
                uuid_bytes(text).ok_or_else(|| Failure::new("22P02", format!("`{text}` is no UUID")))?;
            out.put_slice(&bytes);
            Ok(())
        },
    )
}

/// `\x` and two digits for each byte, the form `hex` of `bytea_output`.
fn put_hex(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len().saturating_mul(2).saturating_add(2));
    out.put_slice(br"\x");
    bytes.iter().for_each(|byte| put_byte(*byte, out));
}

fn put_byte(byte: u8, out: &mut BytesMut) {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    out.put_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

/// The whole numbers below an array of times.
fn ticks(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, Failure> {
    let data = array.to_data().into_builder().data_type(DataType::Int64).build();
    let data = data.map_err(|error| Failure::new("XX000", format!("times are no numbers: {error}")))?;
    Ok(PrimitiveArray::from(data))
}

fn timestamp(array: &ArrayRef, unit: TimeUnit, zoned: bool) -> Result<Box<dyn Cell>, Failure> {
    Ok(of(
        ticks(array)?,
        move |array, row, out| {
            times::put_timestamp(times::micros(array.value(row), unit)?, zoned, out);
            Ok(())
        },
        move |array, row, out| times::binary_timestamp(times::micros(array.value(row), unit)?, out),
    ))
}

/// The same as the clocks of a zone show it.
pub(super) fn instant(array: &ArrayRef, unit: TimeUnit, zone: Tz) -> Result<Box<dyn Cell>, Failure> {
    Ok(of(
        ticks(array)?,
        move |array, row, out| {
            times::put_instant(times::micros(array.value(row), unit)?, zone, out);
            Ok(())
        },
        move |array, row, out| times::binary_timestamp(times::micros(array.value(row), unit)?, out),
    ))
}

fn duration(array: &ArrayRef, unit: TimeUnit) -> Result<Box<dyn Cell>, Failure> {
    let interval = move |array: &PrimitiveArray<Int64Type>, row| {
        Ok(Interval { months: 0, days: 0, micros: times::micros(array.value(row), unit)? })
    };
    Ok(intervals(ticks(array)?, interval))
}

fn interval(array: &ArrayRef, unit: IntervalUnit) -> Box<dyn Cell> {
    match unit {
        IntervalUnit::YearMonth => {
            intervals(array.as_primitive::<IntervalYearMonthType>().clone(), |array, row| {
                Ok(Interval { months: array.value(row), days: 0, micros: 0 })
            })
        }
        IntervalUnit::DayTime => {
            intervals(array.as_primitive::<IntervalDayTimeType>().clone(), |array, row| {
                let value = array.value(row);
                let micros = i64::from(value.milliseconds) * 1_000;
                Ok(Interval { months: 0, days: value.days, micros })
            })
        }
        IntervalUnit::MonthDayNano => {
            intervals(array.as_primitive::<IntervalMonthDayNanoType>().clone(), |array, row| {
                let value = array.value(row);
                Ok(Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 })
            })
        }
    }
}

fn intervals<A: Array + 'static>(
    array: A,
    interval: impl Fn(&A, usize) -> Result<Interval, Failure> + Send + Sync + Clone + 'static,
) -> Box<dyn Cell> {
    let shown = interval.clone();
    of(
        array,
        move |array, row, out| {
            shown(array, row)?.put(out);
            Ok(())
        },
        move |array, row, out| {
            interval(array, row)?.binary(out);
            Ok(())
        },
    )
}
