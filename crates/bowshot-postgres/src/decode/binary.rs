//! Values in binary.

use super::column::{Values, canonical};
use super::{FIRST_DAY, FIRST_MICRO, LAST_DAY, LAST_MICRO, array, malformed};
use crate::encode::{EPOCH_DAYS, EPOCH_MICROS, binary_numeric};
use crate::frontend_messages::Format;
use crate::status::Failure;
use bytes::Buf;

/// Bytes of exactly this many.
fn exact<const N: usize>(bytes: &[u8], kind: &str) -> Result<[u8; N], Failure> {
    bytes.try_into().map_err(|_| malformed(kind))
}

fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| Failure::new("22021", "a text is not UTF-8"))
}

/// Days since 1970-01-01 from days since 2000-01-01. The ends of the range mean infinity.
fn days(days: i32) -> Result<i32, Failure> {
    match days {
        i32::MIN => Ok(FIRST_DAY),
        i32::MAX => Ok(LAST_DAY),
        _ => days.checked_add(EPOCH_DAYS).ok_or_else(|| Failure::new("22008", "date out of range")),
    }
}

fn micros(micros: i64) -> Result<i64, Failure> {
    match micros {
        i64::MIN => Ok(FIRST_MICRO),
        i64::MAX => Ok(LAST_MICRO),
        _ => micros.checked_add(EPOCH_MICROS).ok_or_else(|| Failure::new("22008", "timestamp out of range")),
    }
}

/// Reads one value.
pub(super) fn push(values: &mut Values, bytes: &[u8]) -> Result<(), Failure> {
    match values {
        Values::Bool(builder) => builder.append_value(exact::<1>(bytes, "boolean")? != [0]),
        Values::Int2(builder) => builder.append_value(i16::from_be_bytes(exact(bytes, "smallint")?)),
        Values::Int4(builder) => builder.append_value(i32::from_be_bytes(exact(bytes, "integer")?)),
        Values::Int8(builder) => builder.append_value(i64::from_be_bytes(exact(bytes, "bigint")?)),
        Values::Oid(builder) => builder.append_value(i64::from(u32::from_be_bytes(exact(bytes, "oid")?))),
        Values::Float4(builder) => builder.append_value(f32::from_be_bytes(exact(bytes, "real")?)),
        Values::Float8(builder) => {
            builder.append_value(f64::from_be_bytes(exact(bytes, "double precision")?))
        }
        Values::Numeric(numbers) => {
            numbers.push(&binary_numeric(bytes).ok_or_else(|| malformed("numeric"))?)?;
        }
        Values::Text(builder) | Values::Json(builder) => builder.append_value(utf8(bytes)?),
        Values::Jsonb(builder) => match bytes.split_first() {
            Some((1, json)) => builder.append_value(utf8(json)?),
            _ => return Err(malformed("jsonb")),
        },
        Values::Bytea(builder) => builder.append_value(bytes),
        Values::Date(builder) => builder.append_value(days(i32::from_be_bytes(exact(bytes, "date")?))?),
        Values::Time(builder) => builder.append_value(i64::from_be_bytes(exact(bytes, "time")?)),
        Values::Timestamp(builder) | Values::Timestamptz(builder) => {
            builder.append_value(micros(i64::from_be_bytes(exact(bytes, "timestamp")?))?);
        }
        Values::Interval(builder) => {
            let mut bytes: &[u8] = &exact::<16>(bytes, "interval")?;
            let (micros, days, months) = (bytes.get_i64(), bytes.get_i32(), bytes.get_i32());
            Values::push_interval(builder, (months, days, micros))?;
        }
        Values::Uuid(builder) => builder.append_value(canonical(exact(bytes, "uuid")?)),
        Values::List(list) => {
            let items = array::binary(bytes, list.element)?;
            Values::push_list(list, items.into_iter().map(Ok), Format::Binary)?;
        }
    }
    Ok(())
}
