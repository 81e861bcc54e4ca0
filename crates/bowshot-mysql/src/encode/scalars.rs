//! The encoders of scalar columns. Types that differ only in their width are brought together first, where nothing is lost.

use super::times::{self, Day};
use super::types::fraction;
use super::{ColumnType, Encoder, Kind, Written, json};
use crate::server_packets::{put_counted, put_counted_by};
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, GenericBinaryArray,
    GenericStringArray, OffsetSizeTrait, PrimitiveArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Field, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bowshot_rowwire::encode::float::put_float;
use bowshot_rowwire::encode::interval::Interval;
use bowshot_rowwire::encode::{
    convert, encoder, fallible_encoder, has_type, integer_encoder, null_encoder, plain_type, put_display,
    put_uuid, time,
};
use bytes::{BufMut, BytesMut};

/// The encoder of a column, whose timestamps are those of a time zone.
pub(super) fn column_encoder(array: &ArrayRef, field: &Field, zone: &str) -> Result<Encoder, Failure> {
    let to = match array.data_type() {
        DataType::Utf8View => Some(DataType::LargeUtf8),
        DataType::BinaryView => Some(DataType::LargeBinary),
        other => plain_type(other),
    };
    if let Some(to) = to {
        let (array, field) = convert(array, field, &to)
            .map_err(|message| Failure::new(1264, "22003", message).with_hint("cast it in the query"))?;
        return column_encoder(&array, &field, zone);
    }
    if ColumnType::from_field(field).kind == Kind::Json && field.data_type().is_nested() {
        return json::json_encoder(array, field, zone);
    }
    match number(array).or_else(|| text_or_bytes(array, has_type(field, "uuid"))) {
        Some(column) => Ok(column),
        None => temporal(array, zone),
    }
}

fn number(array: &ArrayRef) -> Option<Encoder> {
    Some(match array.data_type() {
        DataType::Null => null_encoder(),
        DataType::Boolean => encoder(
            array.as_boolean().clone(),
            |array, row, out| out.put_u8(if array.value(row) { b'1' } else { b'0' }),
            |array, row, out| out.put_u8(u8::from(array.value(row))),
        ),
        DataType::Int8 => integer_encoder::<_, Int8Type>(array, |out, value| out.put_i8(value)),
        DataType::UInt8 => integer_encoder::<_, UInt8Type>(array, |out, value| out.put_u8(value)),
        DataType::Int16 => integer_encoder::<_, Int16Type>(array, |out, value| out.put_i16_le(value)),
        DataType::UInt16 => integer_encoder::<_, UInt16Type>(array, |out, value| out.put_u16_le(value)),
        DataType::Int32 => integer_encoder::<_, Int32Type>(array, |out, value| out.put_i32_le(value)),
        DataType::UInt32 => integer_encoder::<_, UInt32Type>(array, |out, value| out.put_u32_le(value)),
        DataType::Int64 => integer_encoder::<_, Int64Type>(array, |out, value| out.put_i64_le(value)),
        DataType::UInt64 => integer_encoder::<_, UInt64Type>(array, |out, value| out.put_u64_le(value)),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(array, *precision, *scale),
        DataType::Float32 => encoder(
            array.as_primitive::<Float32Type>().clone(),
            |array, row, out| put_mysql_float(&format!("{:e}", array.value(row)), out),
            |array, row, out| out.put_f32_le(array.value(row)),
        ),
        DataType::Float64 => encoder(
            array.as_primitive::<Float64Type>().clone(),
            |array, row, out| put_mysql_float(&format!("{:e}", array.value(row)), out),
            |array, row, out| out.put_f64_le(array.value(row)),
        ),
        _ => return None,
    })
}

fn text_or_bytes(array: &ArrayRef, is_uuid: bool) -> Option<Encoder> {
    Some(match array.data_type() {
        DataType::Utf8 => text::<i32>(array),
        DataType::LargeUtf8 => text::<i64>(array),
        DataType::Binary => bytes::<i32>(array),
        DataType::LargeBinary => bytes::<i64>(array),
        DataType::FixedSizeBinary(16) if is_uuid => {
            text_encoder(array.as_fixed_size_binary().clone(), |array: &FixedSizeBinaryArray, row, out| {
                put_uuid(array.value(row), out);
                Ok(())
            })
        }
        DataType::FixedSizeBinary(_) => encoder(
            array.as_fixed_size_binary().clone(),
            |array: &FixedSizeBinaryArray, row, out| out.put_slice(array.value(row)),
            |array, row, out| put_counted(out, array.value(row)),
        ),
        _ => return None,
    })
}

fn temporal(array: &ArrayRef, zone: &str) -> Result<Encoder, Failure> {
    Ok(match array.data_type() {
        DataType::Date32 => fallible_encoder(
            array.as_primitive::<Date32Type>().clone(),
            |array, row, out| {
                Day::from_days(array.value(row).into())?.put(out);
                Ok(())
            },
            |array, row, out| {
                Day::from_days(array.value(row).into())?.binary(out);
                Ok(())
            },
        ),
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => span(array, *unit)?,
        DataType::Timestamp(unit, None) => timestamp(array, *unit, None)?,
        DataType::Timestamp(unit, Some(_)) => timestamp(array, *unit, times::time_zone(zone)?)?,
        DataType::Interval(unit) => interval(array, *unit),
        other => return Err(Failure::new(1105, "HY000", format!("values of type {other} cannot be sent"))),
    })
}

/// An encoder of values whose binary form is their text.
pub(super) fn text_encoder<A, T>(array: A, text: T) -> Encoder
where
    A: Array + 'static,
    T: Fn(&A, usize, &mut BytesMut) -> Written + Clone + Send + Sync + 'static,
{
    let binary = text.clone();
    fallible_encoder(array, text, move |array, row, out| put_counted_by(out, |out| binary(array, row, out)))
}

fn decimal<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Encoder {
    text_encoder(array.as_primitive::<T>().clone(), move |array: &PrimitiveArray<T>, row, out| {
        out.put_slice(T::format_decimal(array.value(row), precision, scale).as_bytes());
        Ok(())
    })
}

/// Numbers from this exponent on have one in their text, as in MySQL.
const LARGE_EXPONENT: i32 = 15;

/// MySQL has no infinities and nothing that is no number: their texts are those of PostgreSQL.
fn put_mysql_float(formatted: &str, out: &mut BytesMut) {
    put_float(formatted, -5..LARGE_EXPONENT, out, |mantissa, exponent, out| {
        put_display(out, format_args!("{mantissa}e{exponent}"));
    });
}

fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> Encoder {
    encoder(
        array.as_string::<O>().clone(),
        |array: &GenericStringArray<O>, row, out| out.put_slice(array.value(row).as_bytes()),
        |array, row, out| put_counted(out, array.value(row).as_bytes()),
    )
}

fn bytes<O: OffsetSizeTrait>(array: &ArrayRef) -> Encoder {
    encoder(
        array.as_binary::<O>().clone(),
        |array: &GenericBinaryArray<O>, row, out| out.put_slice(array.value(row)),
        |array, row, out| put_counted(out, array.value(row)),
    )
}

/// The integers of an array of times.
fn ticks(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, Failure> {
    time::ticks(array).map_err(|error| Failure::new(1105, "HY000", format!("times are no numbers: {error}")))
}

fn span(array: &ArrayRef, unit: TimeUnit) -> Result<Encoder, Failure> {
    let decimals = fraction(unit);
    Ok(fallible_encoder(
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

/// Timestamps, in a time zone or without one.
fn timestamp(array: &ArrayRef, unit: TimeUnit, zone: Option<Tz>) -> Result<Encoder, Failure> {
    let decimals = fraction(unit);
    let local_micros = move |array: &PrimitiveArray<Int64Type>, row: usize| {
        let micros = times::micros(array.value(row), unit)?;
        zone.map_or(Ok(micros), |zone| times::local(micros, zone))
    };
    Ok(fallible_encoder(
        ticks(array)?,
        move |array, row, out| times::put_timestamp(local_micros(array, row)?, decimals, out),
        move |array, row, out| times::binary_timestamp(local_micros(array, row)?, out),
    ))
}

fn interval(array: &ArrayRef, unit: IntervalUnit) -> Encoder {
    match unit {
        IntervalUnit::YearMonth => intervals(array.as_primitive::<IntervalYearMonthType>()),
        IntervalUnit::DayTime => intervals(array.as_primitive::<IntervalDayTimeType>()),
        IntervalUnit::MonthDayNano => intervals(array.as_primitive::<IntervalMonthDayNanoType>()),
    }
}

fn intervals<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Encoder
where
    Interval: From<T::Native>,
{
    text_encoder(array.clone(), |array: &PrimitiveArray<T>, row, out| {
        times::put_interval(array.value(row).into(), out);
        Ok(())
    })
}
