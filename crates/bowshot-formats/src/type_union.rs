//! The type that holds the values of two columns without loss.

use crate::extension_types::{EXTENSION, PARAMETERS};
use crate::parquet::columns::UNREAD;
use crate::schema::{Typing, plain_type};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields, TimeUnit,
};
use std::sync::Arc;

/// What a file says of a column beyond its type, such as that 16 bytes are a UUID, is true of the table if all files say so.
pub(crate) fn unite_metadata(field: &mut Field, other: &Field) {
    if field.data_type().is_null() {
        field.set_metadata(other.metadata().clone());
    } else if !other.data_type().is_null() {
        let is_same = field.metadata().get(EXTENSION) == other.metadata().get(EXTENSION);
        let metadata = field.metadata_mut();
        metadata.retain(|key, _| is_same || key != EXTENSION && key != PARAMETERS);
        let unread = other.metadata().get_key_value(UNREAD);
        metadata.extend(unread.map(|(key, why)| (key.clone(), why.clone())));
    }
}

/// The type that holds all values of two columns, if there is one.
pub(crate) fn unite_types(one: &DataType, other: &DataType, typing: Typing) -> Option<DataType> {
    use DataType as T;
    if one == other {
        return Some(one.clone());
    }
    match (&plain_type(one), &plain_type(other)) {
        (one, other) if one == other => Some(one.clone()),
        (T::Null, known) | (known, T::Null) => Some(known.clone()),
        (T::FixedSizeList(a, size), T::FixedSizeList(b, same)) if size == same => {
            Some(T::FixedSizeList(unite_fields(a, b, typing)?, *size))
        }
        (T::LargeList(a), T::LargeList(b) | T::List(b) | T::FixedSizeList(b, _))
        | (T::List(a) | T::FixedSizeList(a, _), T::LargeList(b)) => {
            Some(T::LargeList(unite_fields(a, b, typing)?))
        }
        (T::List(a) | T::FixedSizeList(a, _), T::List(b) | T::FixedSizeList(b, _)) => {
            Some(T::List(unite_fields(a, b, typing)?))
        }
        (T::Struct(a), T::Struct(b)) => Some(T::Struct(unite_structs(a, b, typing)?)),
        (T::Map(a, sorted), T::Map(b, same)) => Some(T::Map(unite_entries(a, b, typing)?, *sorted && *same)),
        (T::Dictionary(_, a), T::Dictionary(_, b)) => unite_types(a, b, typing),
        (T::Dictionary(_, a), b) | (b, T::Dictionary(_, a)) => unite_types(a, b, typing),
        (T::Utf8, T::LargeUtf8) | (T::LargeUtf8, T::Utf8) => Some(T::LargeUtf8),
        (T::LargeBinary, b) | (b, T::LargeBinary) if b.is_binary() => Some(T::LargeBinary),
        (a, b) if a.is_binary() && b.is_binary() => Some(T::Binary),
        // The same points in time, whatever the clocks of their zones show.
        (T::Timestamp(a, zone), T::Timestamp(b, other)) if zone.is_some() == other.is_some() => {
            let zone = if zone == other { zone.clone() } else { Some("UTC".into()) };
            Some(T::Timestamp(finer(*a, *b), zone))
        }
        (one, other) => match typing {
            Typing::Guessed => unite_guesses(one, other),
            Typing::Declared => unite_times(one, other).or_else(|| unite_numbers(one, other)),
        },
    }
}

/// Dates, times of day and durations. A date is no point in time without a zone.
fn unite_times(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    use TimeUnit as U;
    match (one, other) {
        (T::Date32, T::Date64) | (T::Date64, T::Date32) => Some(T::Date64),
        (T::Date32, stamp @ T::Timestamp(_, None)) | (stamp @ T::Timestamp(_, None), T::Date32) => {
            Some(stamp.clone())
        }
        // In nanoseconds there are no dates beyond some centuries.
        (T::Date64, T::Timestamp(unit, None)) | (T::Timestamp(unit, None), T::Date64)
            if *unit != U::Nanosecond =>
        {
            Some(T::Timestamp(finer(*unit, U::Millisecond), None))
        }
        (T::Time32(a) | T::Time64(a), T::Time32(b) | T::Time64(b)) => Some(match finer(*a, *b) {
            unit @ (U::Second | U::Millisecond) => T::Time32(unit),
            unit => T::Time64(unit),
        }),
        (T::Duration(a), T::Duration(b)) => Some(T::Duration(finer(*a, *b))),
        _ => None,
    }
}

/// The type of values that were seen as these two: what a reader cannot take in it without loss, it refuses with its line.
fn unite_guesses(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    Some(match (one, other) {
        (T::Int64, T::Float64) | (T::Float64, T::Int64) => T::Float64,
        (T::Decimal128(p, s), T::Decimal128(q, t)) => T::Decimal128(*p.max(q), *s.max(t)),
        (T::Int64 | T::UInt64, decimal @ T::Decimal128(..))
        | (decimal @ T::Decimal128(..), T::Int64 | T::UInt64) => decimal.clone(),
        (T::Int64, T::UInt64) | (T::UInt64, T::Int64) => T::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        (T::Date32, stamp @ T::Timestamp(_, None)) | (stamp @ T::Timestamp(_, None), T::Date32) => {
            stamp.clone()
        }
        // Of numbers of which some have more digits than floating point, and of JSON, whose nested values are text, too.
        _ => T::Utf8,
    })
}

fn unite_numbers(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    let wide = |bits: usize| match bits {
        0..=8 => Some(T::Int8),
        9..=16 => Some(T::Int16),
        17..=32 => Some(T::Int32),
        33..=64 => Some(T::Int64),
        _ => None,
    };
    if one.is_decimal() || other.is_decimal() {
        return unite_decimals(as_decimal(one)?, as_decimal(other)?);
    }
    let bits = |data_type: &DataType| data_type.primitive_width().map(|bytes| bytes * 8);
    let (a, b) = (bits(one)?, bits(other)?);
    match (one, other) {
        _ if one.is_signed_integer() && other.is_signed_integer() => wide(a.max(b)),
        _ if one.is_unsigned_integer() && other.is_unsigned_integer() => {
            Some(if a > b { one.clone() } else { other.clone() })
        }
        (T::UInt64, _) | (_, T::UInt64) if one.is_integer() && other.is_integer() => {
            Some(T::Decimal128(20, 0))
        }
        _ if one.is_signed_integer() && other.is_unsigned_integer() => wide(a.max(b * 2)),
        _ if one.is_unsigned_integer() && other.is_signed_integer() => wide(b.max(a * 2)),
        _ if one.is_floating() && other.is_floating() => {
            Some(if a > b { one.clone() } else { other.clone() })
        }
        // Of 64 bits see [`expect_small`].
        _ if one.is_floating() && other.is_integer() && b <= 32 => Some(T::Float64),
        _ if one.is_integer() && other.is_floating() && a <= 32 => Some(T::Float64),
        _ => None,
    }
}

fn unite_decimals((p, s): (u8, i8), (q, t): (u8, i8)) -> Option<DataType> {
    let scale = s.max(t);
    let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
    let digits = u8::try_from(whole(p, s).max(whole(q, t)) + i16::from(scale)).ok()?;
    match digits {
        ..=DECIMAL128_MAX_PRECISION => Some(DataType::Decimal128(digits, scale)),
        ..=DECIMAL256_MAX_PRECISION => Some(DataType::Decimal256(digits, scale)),
        _ => None,
    }
}

/// Precision and scale of the decimal numbers that hold all numbers of a type.
fn as_decimal(number: &DataType) -> Option<(u8, i8)> {
    Some(match number {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (*precision, *scale)
        }
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::UInt64 => (20, 0),
        _ => return None,
    })
}

fn unite_fields(one: &FieldRef, other: &FieldRef, typing: Typing) -> Option<FieldRef> {
    let data_type = unite_types(one.data_type(), other.data_type(), typing)?;
    let nullable = one.is_nullable() || other.is_nullable();
    let mut united = one.as_ref().clone();
    unite_metadata(&mut united, other);
    Some(Arc::new(united.with_data_type(data_type).with_nullable(nullable)))
}

/// Keys and values, by their place: writers name them differently.
fn unite_entries(one: &FieldRef, other: &FieldRef, typing: Typing) -> Option<FieldRef> {
    let (DataType::Struct(fields), DataType::Struct(others)) = (one.data_type(), other.data_type()) else {
        return None;
    };
    let pairs = fields.iter().zip(others).map(|(field, twin)| unite_fields(field, twin, typing));
    let united = pairs.collect::<Option<Fields>>().filter(|united| united.len() == 2)?;
    Some(Arc::new(one.as_ref().clone().with_data_type(DataType::Struct(united))))
}

fn unite_structs(one: &Fields, other: &Fields, typing: Typing) -> Option<Fields> {
    let mut fields: Vec<FieldRef> = Vec::with_capacity(one.len());
    for field in one {
        fields.push(match other.iter().find(|candidate| candidate.name() == field.name()) {
            Some(twin) => unite_fields(field, twin, typing)?,
            None => Arc::new(field.as_ref().clone().with_nullable(true)),
        });
    }
    for field in other {
        if one.iter().all(|known| known.name() != field.name()) {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Some(fields.into())
}

/// The unit that loses nothing of either.
pub(crate) fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    let rank = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(one) >= rank(other) { one } else { other }
}
