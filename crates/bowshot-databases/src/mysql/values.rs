//! Values of MySQL to arrays. A value that does not fit the type of its column is an error.

use crate::error::DatabaseError;
use crate::kind::ZeroDates;
use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, DurationMicrosecondBuilder,
    Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use mysql_async::Value;
use std::sync::Arc;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// The day 1970-01-01, counted from the year 1.
pub(super) const EPOCH: i32 = 719_163;

/// A column under construction.
pub(super) enum Values {
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Truth(BooleanBuilder),
    /// With its scale, and the first number with too many digits.
    Decimal(Decimal128Builder, usize, i128),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Day(Date32Builder),
    Moment(TimestampMicrosecondBuilder),
    Span(DurationMicrosecondBuilder),
}

/// Why a value is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is of another type.
    Type,
    /// It is not valid UTF-8.
    Text,
    /// It is an invalid date.
    NoDay,
}

impl Wrong {
    /// The error for a column.
    pub(super) fn of(self, field: &Field) -> DatabaseError {
        let (name, wanted) = (field.name(), field.data_type());
        match self {
            Self::Type => {
                DatabaseError::Unexpected(format!("column `{name}` has a value that is not of type {wanted}"))
            }
            Self::Text => DatabaseError::Value(format!("has invalid UTF-8 in column `{name}`")),
            Self::NoDay => DatabaseError::Value(format!(
                "has an invalid date, such as 0000-00-00, in column `{name}`; the operator can read those as NULL with `zero_dates = \"null\"`"
            )),
        }
    }
}

/// Does the same with the values of every type.
macro_rules! with_values {
    ($column:expr, $values:ident => $what:expr) => {
        match $column {
            Values::Int8($values) => $what,
            Values::Int16($values) => $what,
            Values::Int32($values) => $what,
            Values::Int64($values) => $what,
            Values::UInt8($values) => $what,
            Values::UInt16($values) => $what,
            Values::UInt32($values) => $what,
            Values::UInt64($values) => $what,
            Values::Float32($values) => $what,
            Values::Float64($values) => $what,
            Values::Truth($values) => $what,
            Values::Decimal($values, ..) => $what,
            Values::Text($values) => $what,
            Values::Bytes($values) => $what,
            Values::Day($values) => $what,
            Values::Moment($values) => $what,
            Values::Span($values) => $what,
        }
    };
}

impl Values {
    /// An empty column; `None` for an unsupported type.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Int8 => Self::Int8(Int8Builder::new()),
            T::Int16 => Self::Int16(Int16Builder::new()),
            T::Int32 => Self::Int32(Int32Builder::new()),
            T::Int64 => Self::Int64(Int64Builder::new()),
            T::UInt8 => Self::UInt8(UInt8Builder::new()),
            T::UInt16 => Self::UInt16(UInt16Builder::new()),
            T::UInt32 => Self::UInt32(UInt32Builder::new()),
            T::UInt64 => Self::UInt64(UInt64Builder::new()),
            T::Float32 => Self::Float32(Float32Builder::new()),
            T::Float64 => Self::Float64(Float64Builder::new()),
            T::Boolean => Self::Truth(BooleanBuilder::new()),
            T::Decimal128(precision, scale) => {
                let builder = Decimal128Builder::new().with_data_type(data_type.clone());
                let end = 10_i128.checked_pow(u32::from(*precision))?;
                Self::Decimal(builder, usize::try_from(*scale).ok()?, end)
            }
            T::Utf8 => Self::Text(StringBuilder::new()),
            T::Binary => Self::Bytes(BinaryBuilder::new()),
            T::Date32 => Self::Day(Date32Builder::new()),
            T::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Moment(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()))
            }
            T::Duration(TimeUnit::Microsecond) => Self::Span(DurationMicrosecondBuilder::new()),
            _ => return None,
        })
    }

    /// Appends a value; returns its approximate size.
    pub(super) fn push(&mut self, value: Value, zero_dates: ZeroDates) -> Result<usize, Wrong> {
        if value == Value::NULL {
            self.push_null();
            return Ok(1);
        }
        match self {
            Self::Int8(values) => values.append_value(whole(&value)?),
            Self::Int16(values) => values.append_value(whole(&value)?),
            Self::Int32(values) => values.append_value(whole(&value)?),
            Self::Int64(values) => values.append_value(whole(&value)?),
            Self::UInt8(values) => values.append_value(whole(&value)?),
            Self::UInt16(values) => values.append_value(whole(&value)?),
            Self::UInt32(values) => values.append_value(whole(&value)?),
            Self::UInt64(values) => values.append_value(whole(&value)?),
            Self::Float32(values) => match value {
                Value::Float(number) => values.append_value(number),
                _ => return Err(Wrong::Type),
            },
            Self::Float64(values) => match value {
                Value::Double(number) => values.append_value(number),
                Value::Float(number) => values.append_value(f64::from(number)),
                _ => return Err(Wrong::Type),
            },
            Self::Truth(values) => values.append_value(whole::<u8>(&value)? != 0),
            Self::Decimal(values, scale, end) => {
                let Value::Bytes(digits) = &value else { return Err(Wrong::Type) };
                let number = decimal(digits, *scale).filter(|number| -*end < *number && *number < *end);
                values.append_value(number.ok_or(Wrong::Type)?);
            }
            Self::Text(values) => {
                let text = text(value)?;
                values.append_value(&text);
                return Ok(text.len() + 4);
            }
            Self::Bytes(values) => match value {
                Value::Bytes(bytes) => {
                    values.append_value(&bytes);
                    return Ok(bytes.len() + 4);
                }
                _ => return Err(Wrong::Type),
            },
            Self::Day(values) => values.append_option(dated(&value, zero_dates)?.map(|(day, _)| day)),
            Self::Moment(values) => {
                let moment = dated(&value, zero_dates)?;
                values.append_option(moment.map(|(day, micros)| i64::from(day) * DAY + micros));
            }
            Self::Span(values) => values.append_value(span(&value)?),
        }
        Ok(8)
    }

    fn push_null(&mut self) {
        with_values!(self, values => values.append_null());
    }

    /// Takes the values as an array.
    pub(super) fn finish(&mut self) -> ArrayRef {
        with_values!(self, values => Arc::new(values.finish()))
    }
}

/// An integer. Bits are big-endian bytes.
fn whole<T: TryFrom<i128>>(value: &Value) -> Result<T, Wrong> {
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Bytes(bits) if bits.len() <= 8 => {
            bits.iter().fold(0, |number, byte| number << 8 | i128::from(*byte))
        }
        _ => return Err(Wrong::Type),
    };
    T::try_from(number).map_err(|_| Wrong::Type)
}

fn text(value: Value) -> Result<String, Wrong> {
    match value {
        Value::Bytes(bytes) => String::from_utf8(bytes).map_err(|_| Wrong::Text),
        Value::Int(number) => Ok(number.to_string()),
        Value::UInt(number) => Ok(number.to_string()),
        _ => Err(Wrong::Type),
    }
}

/// Parses `-12.50` as an unscaled integer.
fn decimal(written: &[u8], scale: usize) -> Option<i128> {
    let (negative, digits) = match written {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut number, mut behind, mut any) = (0_i128, None, false);
    for byte in digits {
        match byte {
            b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                behind = behind.map(|behind: usize| behind + 1);
                any = true;
            }
            b'.' if behind.is_none() => behind = Some(0),
            _ => return None,
        }
    }
    let missing = scale.checked_sub(behind.unwrap_or(0)).filter(|_| any)?;
    let number = number.checked_mul(10_i128.checked_pow(u32::try_from(missing).ok()?)?)?;
    Some(if negative { -number } else { number })
}

/// Days since 1970 and microseconds of the day; `None` for an invalid date that is read as NULL.
fn dated(value: &Value, zero_dates: ZeroDates) -> Result<Option<(i32, i64)>, Wrong> {
    let Value::Date(year, month, day, hour, minute, second, micros) = value else { return Err(Wrong::Type) };
    let time = (i64::from(*hour) * 3_600 + i64::from(*minute) * 60 + i64::from(*second)) * SECOND;
    match (days(*year, *month, *day), zero_dates) {
        (Some(days), _) => Ok(Some((days, time + i64::from(*micros)))),
        (None, ZeroDates::Null) => Ok(None),
        (None, ZeroDates::Error) => Err(Wrong::NoDay),
    }
}

/// Days since 1970 of a valid date.
fn days(year: u16, month: u8, day: u8) -> Option<i32> {
    let date = NaiveDate::from_ymd_opt(i32::from(year), u32::from(month), u32::from(day))?;
    Some(date.num_days_from_ce() - EPOCH)
}

fn span(value: &Value) -> Result<i64, Wrong> {
    let Value::Time(negative, days, hours, minutes, seconds, micros) = value else { return Err(Wrong::Type) };
    let hours = i64::from(*days) * 24 + i64::from(*hours);
    let whole =
        (hours * 3_600 + i64::from(*minutes) * 60 + i64::from(*seconds)) * SECOND + i64::from(*micros);
    Ok(if *negative { -whole } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_none() {
        assert_eq!(decimal(b"-12.50", 2), Some(-1_250));
        assert_eq!(decimal(b"00012", 3), Some(12_000));
        assert_eq!(decimal(b"0.5", 2), Some(50));
        assert_eq!(decimal(b"99999999999999999999999999999999999999", 0), Some(10_i128.pow(38) - 1));
        for wrong in [&b""[..], b"-", b".", b"1.2.3", b"1e5", b"NaN", b"1.234", b"+1", b" 1"] {
            assert_eq!(decimal(wrong, 2), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_has_no_place_is_an_error() {
        let push = |data_type: &DataType, value: Value| {
            let mut values = Values::of(data_type).unwrap();
            values.push(value, ZeroDates::Error).map(|_| values.finish())
        };
        assert_eq!(push(&DataType::Int8, Value::Int(128)).unwrap_err(), Wrong::Type);
        assert_eq!(push(&DataType::UInt64, Value::Int(-1)).unwrap_err(), Wrong::Type);
        assert_eq!(push(&DataType::Utf8, Value::Bytes(vec![0xff])).unwrap_err(), Wrong::Text);
        assert_eq!(push(&DataType::Date32, Value::Date(0, 0, 0, 0, 0, 0, 0)).unwrap_err(), Wrong::NoDay);
        assert_eq!(push(&DataType::Date32, Value::Int(1)).unwrap_err(), Wrong::Type);
        let mut days = Values::of(&DataType::Date32).unwrap();
        days.push(Value::Date(2024, 0, 1, 0, 0, 0, 0), ZeroDates::Null).unwrap();
        assert_eq!(days.finish().null_count(), 1);
        assert_eq!(whole::<u64>(&Value::Bytes(vec![0xff; 8])), Ok(u64::MAX));
        assert_eq!(span(&Value::Time(true, 34, 22, 59, 59, 1)), Ok(-3_020_399_000_001));
        assert!(Values::of(&DataType::Float16).is_none());
    }
}
