//! The encoders of scalar columns. Types that differ only in their width are brought together first, where nothing is lost.

use super::numbers::{numeric_binary, put_float4, put_float8};
use super::{Column, Kind, PgType, json, lists, times};
use crate::decode::uuid_bytes;
use crate::status::Failure;
use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, FixedSizeBinaryArray, GenericBinaryArray,
    GenericStringArray, OffsetSizeTrait, PrimitiveArray, StringViewArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Field, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time64MicrosecondType, TimeUnit, UInt64Type,
};
use bowshot_rowwire::encode::interval::Interval;
use bowshot_rowwire::encode::{
    convert, encoder, fallible_encoder, integer_encoder, null_encoder, plain_type, put_hex, put_uuid, time,
};
use bytes::{BufMut, BytesMut};

pub(super) fn column_encoder(array: &ArrayRef, field: &Field) -> Result<Column, Failure> {
    let kind = PgType::from_field(field).kind;
    if let Some(to) = sent_type(array.data_type(), kind) {
        let (array, field) = convert(array, field, &to)
            .map_err(|message| Failure::new("22003", message).with_hint("cast it in the query"))?;
        return column_encoder(&array, &field);
    }
    if PgType::from_field(field).is_array {
        return lists::list_encoder(array, field);
    }
    match number(array).or_else(|| text_or_bytes(array, kind)) {
        Some(column) => Ok(column),
        None => match temporal(array)? {
            Some(column) => Ok(column),
            None => json::json_encoder(array, field),
        },
    }
}

/// The type to which a column is brought before it is written, if it has another one.
fn sent_type(data_type: &DataType, kind: Kind) -> Option<DataType> {
    Some(match data_type {
        DataType::LargeUtf8 | DataType::Utf8View if matches!(kind, Kind::Uuid | Kind::Jsonb) => {
            DataType::Utf8
        }
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => {
            DataType::Time64(TimeUnit::Microsecond)
        }
        other => return plain_type(other),
    })
}

fn number(array: &ArrayRef) -> Option<Column> {
    Some(match array.data_type() {
        DataType::Null => null_encoder(),
        DataType::Boolean => boolean(array),
        DataType::Int16 => integer_encoder::<_, Int16Type>(array, |out, value| out.put_i16(value)),
        DataType::Int32 => integer_encoder::<_, Int32Type>(array, |out, value| out.put_i32(value)),
        DataType::Int64 => integer_encoder::<_, Int64Type>(array, |out, value| out.put_i64(value)),
        DataType::UInt64 => numeric(array.as_primitive::<UInt64Type>(), |value| value.to_string()),
        DataType::Decimal128(precision, scale) => decimal::<Decimal128Type>(array, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimal::<Decimal256Type>(array, *precision, *scale),
        DataType::Float32 => encoder(
            array.as_primitive::<Float32Type>().clone(),
            |array, row, out| put_float4(array.value(row), out),
            |array, row, out| out.put_f32(array.value(row)),
        ),
        DataType::Float64 => encoder(
            array.as_primitive::<Float64Type>().clone(),
            |array, row, out| put_float8(array.value(row), out),
            |array, row, out| out.put_f64(array.value(row)),
        ),
        _ => return None,
    })
}

fn text_or_bytes(array: &ArrayRef, kind: Kind) -> Option<Column> {
    Some(match array.data_type() {
        DataType::Utf8 if kind == Kind::Uuid => text_uuid(array),
        DataType::Utf8 if kind == Kind::Jsonb => jsonb(array),
        DataType::Utf8 => text::<i32>(array),
        DataType::LargeUtf8 => text::<i64>(array),
        DataType::Utf8View => {
            let put = |array: &StringViewArray, row: usize, out: &mut BytesMut| {
                out.put_slice(array.value(row).as_bytes());
            };
            encoder(array.as_string_view().clone(), put, put)
        }
        DataType::Binary => bytes::<i32>(array),
        DataType::LargeBinary => bytes::<i64>(array),
        DataType::BinaryView => encoder(
            array.as_binary_view().clone(),
            |array: &BinaryViewArray, row, out| put_bytea(array.value(row), out),
            |array, row, out| out.put_slice(array.value(row)),
        ),
        DataType::FixedSizeBinary(16) if kind == Kind::Uuid => uuid(array),
        DataType::FixedSizeBinary(_) => encoder(
            array.as_fixed_size_binary().clone(),
            |array: &FixedSizeBinaryArray, row, out| put_bytea(array.value(row), out),
            |array, row, out| out.put_slice(array.value(row)),
        ),
        _ => return None,
    })
}

fn temporal(array: &ArrayRef) -> Result<Option<Column>, Failure> {
    Ok(Some(match array.data_type() {
        DataType::Date32 => fallible_encoder(
            array.as_primitive::<Date32Type>().clone(),
            |array, row, out| {
                times::put_date(array.value(row), out);
                Ok(())
            },
            |array, row, out| times::binary_date(array.value(row), out),
        ),
        DataType::Time64(TimeUnit::Microsecond) => encoder(
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

fn boolean(array: &ArrayRef) -> Column {
    encoder(
        array.as_boolean().clone(),
        |array, row, out| out.put_u8(if array.value(row) { b't' } else { b'f' }),
        |array, row, out| out.put_u8(u8::from(array.value(row))),
    )
}

fn decimal<T: DecimalType>(array: &ArrayRef, precision: u8, scale: i8) -> Column {
    numeric(array.as_primitive::<T>(), move |value| T::format_decimal(value, precision, scale))
}

fn numeric<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    digits: impl Fn(T::Native) -> String + Send + Sync + Clone + 'static,
) -> Column {
    let text = digits.clone();
    fallible_encoder(
        array.clone(),
        move |array, row, out| {
            out.put_slice(text(array.value(row)).as_bytes());
            Ok(())
        },
        move |array, row, out| numeric_binary(&digits(array.value(row)), out),
    )
}

fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> Column {
    let put = |array: &GenericStringArray<O>, row: usize, out: &mut BytesMut| {
        out.put_slice(array.value(row).as_bytes());
    };
    encoder(array.as_string::<O>().clone(), put, put)
}

/// In binary, the version of the format comes first.
fn jsonb(array: &ArrayRef) -> Column {
    encoder(
        array.as_string::<i32>().clone(),
        |array, row, out| out.put_slice(array.value(row).as_bytes()),
        |array, row, out| {
            out.put_u8(1);
            out.put_slice(array.value(row).as_bytes());
        },
    )
}

fn bytes<O: OffsetSizeTrait>(array: &ArrayRef) -> Column {
    encoder(
        array.as_binary::<O>().clone(),
        |array: &GenericBinaryArray<O>, row, out| put_bytea(array.value(row), out),
        |array, row, out| out.put_slice(array.value(row)),
    )
}

fn uuid(array: &ArrayRef) -> Column {
    encoder(
        array.as_fixed_size_binary().clone(),
        |array: &FixedSizeBinaryArray, row, out| put_uuid(array.value(row), out),
        |array, row, out| out.put_slice(array.value(row)),
    )
}

/// UUIDs stored as text.
fn text_uuid(array: &ArrayRef) -> Column {
    fallible_encoder(
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
fn put_bytea(bytes: &[u8], out: &mut BytesMut) {
    out.put_slice(br"\x");
    put_hex(bytes, out);
}

/// The integers of an array of times.
fn ticks(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, Failure> {
    time::ticks(array).map_err(|error| Failure::new("XX000", format!("times are no numbers: {error}")))
}

fn timestamp(array: &ArrayRef, unit: TimeUnit, zoned: bool) -> Result<Column, Failure> {
    Ok(fallible_encoder(
        ticks(array)?,
        move |array, row, out| {
            times::put_timestamp(times::micros(array.value(row), unit)?, zoned, out);
            Ok(())
        },
        move |array, row, out| times::binary_timestamp(times::micros(array.value(row), unit)?, out),
    ))
}

/// Timestamps in a time zone.
pub(super) fn instant_encoder(array: &ArrayRef, unit: TimeUnit, zone: Tz) -> Result<Column, Failure> {
    Ok(fallible_encoder(
        ticks(array)?,
        move |array, row, out| {
            times::put_instant(times::micros(array.value(row), unit)?, zone, out);
            Ok(())
        },
        move |array, row, out| times::binary_timestamp(times::micros(array.value(row), unit)?, out),
    ))
}

fn duration(array: &ArrayRef, unit: TimeUnit) -> Result<Column, Failure> {
    let interval = move |ticks| Ok(Interval { months: 0, days: 0, micros: times::micros(ticks, unit)? });
    Ok(intervals(&ticks(array)?, interval))
}

fn interval(array: &ArrayRef, unit: IntervalUnit) -> Column {
    match unit {
        IntervalUnit::YearMonth => {
            intervals(array.as_primitive::<IntervalYearMonthType>(), |value| Ok(Interval::from(value)))
        }
        IntervalUnit::DayTime => {
            intervals(array.as_primitive::<IntervalDayTimeType>(), |value| Ok(Interval::from(value)))
        }
        IntervalUnit::MonthDayNano => {
            intervals(array.as_primitive::<IntervalMonthDayNanoType>(), |value| Ok(Interval::from(value)))
        }
    }
}

fn intervals<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    interval: impl Fn(T::Native) -> Result<Interval, Failure> + Send + Sync + Copy + 'static,
) -> Column {
    fallible_encoder(
        array.clone(),
        move |array, row, out| {
            times::put_interval(interval(array.value(row))?, out);
            Ok(())
        },
        move |array, row, out| {
            times::binary_interval(interval(array.value(row))?, out);
            Ok(())
        },
    )
}
