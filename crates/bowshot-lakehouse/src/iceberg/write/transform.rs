//! What rows are partitioned by (specification, "Partition Transforms").

use super::column_bounds::unscaled_bytes;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Date32Array, Int32Array, Int64Array, StringArray, new_null_array,
};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use bowshot_kernels::murmur::hash;
use std::sync::Arc;

const HOUR_MICROS: i64 = 3_600_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    Identity,
    Void,
    Bucket(i32),
    Truncate(i32),
    Year,
    Month,
    Day,
    Hour,
}

impl Transform {
    /// `None` for one that is not known, and for a width that makes no sense.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let width = |name: &str| {
            let digits = text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            digits.trim().parse().ok().filter(|width: &i32| *width > 0)
        };
        Some(match text {
            "identity" => Self::Identity,
            "void" => Self::Void,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            _ => match width("bucket") {
                Some(buckets) => Self::Bucket(buckets),
                None => Self::Truncate(width("truncate")?),
            },
        })
    }

    /// The type of what it makes of values of a type; `None` for a type that it cannot be used with.
    pub(super) fn result(self, source: &DataType) -> Option<DataType> {
        let is_date = matches!(source, DataType::Date32);
        let is_time = matches!(source, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _));
        let is_primitive = !source.is_nested() && (is_time || !matches!(source, DataType::Timestamp(..)));
        match self {
            Self::Identity | Self::Void => is_primitive.then(|| source.clone()),
            Self::Bucket(_) => {
                let is_hashed = is_primitive && !source.is_floating() && *source != DataType::Boolean;
                is_hashed.then_some(DataType::Int32)
            }
            Self::Truncate(_) => matches!(
                source,
                DataType::Int32
                    | DataType::Int64
                    | DataType::Decimal128(..)
                    | DataType::Utf8
                    | DataType::Binary
            )
            .then(|| source.clone()),
            Self::Year | Self::Month => (is_date || is_time).then_some(DataType::Int32),
            Self::Day => (is_date || is_time).then_some(DataType::Date32),
            Self::Hour => is_time.then_some(DataType::Int32),
        }
    }

    /// What it makes of the values, which are of a type that [`Self::result`] knows.
    pub(super) fn apply(self, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Identity => Ok(Arc::clone(values)),
            Self::Void => Ok(new_null_array(values.data_type(), values.len())),
            Self::Bucket(buckets) => bucketed(values, buckets),
            Self::Truncate(width) => truncated(values, width),
            Self::Year => years(values),
            Self::Month => {
                let days: ArrayRef = Arc::new(days(values)?);
                let (years, months) = (years(&days)?, date_part(&days, DatePart::Month)?);
                let pairs = years.as_primitive::<Int32Type>().iter().zip(months.as_primitive::<Int32Type>());
                let month = |(year, month): (Option<i32>, Option<i32>)| Some(year? * 12 + month? - 1);
                Ok(Arc::new(pairs.map(month).collect::<Int32Array>()))
            }
            Self::Day => Ok(Arc::new(days(values)?)),
            Self::Hour => {
                let hour = |micros: i64| i32::try_from(micros.div_euclid(HOUR_MICROS)).ok();
                let micros = whole_numbers(values)?;
                let hours = micros.iter().map(|micros| hour(micros?));
                Ok(Arc::new(hours.collect::<Int32Array>()))
            }
        }
    }
}

fn days(values: &ArrayRef) -> Result<Date32Array, ArrowError> {
    if let Some(days) = values.as_primitive_opt::<Date32Type>() {
        return Ok(days.clone());
    }
    let day = |micros: i64| i32::try_from(micros.div_euclid(DAY_MICROS)).ok();
    Ok(whole_numbers(values)?.iter().map(|micros| day(micros?)).collect())
}

/// Numbers as such, and times as microseconds, also those of nanoseconds.
fn whole_numbers(values: &ArrayRef) -> Result<Int64Array, ArrowError> {
    let numbers = cast(values, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    Ok(match values.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers.unary(|nanos| nanos.div_euclid(1000)),
        _ => numbers.clone(),
    })
}

fn years(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let years = date_part(&days(values)?, DatePart::Year)?;
    Ok(Arc::new(years.as_primitive::<Int32Type>().unary::<_, Int32Type>(|year| year - 1970)))
}

fn bucketed(values: &ArrayRef, buckets: i32) -> Result<ArrayRef, ArrowError> {
    let bucket = |bytes: &[u8]| (hash(bytes, 0) & i32::MAX.cast_unsigned()).cast_signed() % buckets;
    let found: Int32Array = match values.data_type() {
        DataType::Utf8 => {
            values.as_string::<i32>().iter().map(|text| text.map(|text| bucket(text.as_bytes()))).collect()
        }
        DataType::Binary => values.as_binary::<i32>().iter().map(|bytes| bytes.map(bucket)).collect(),
        DataType::FixedSizeBinary(_) => {
            values.as_fixed_size_binary().iter().map(|bytes| bytes.map(bucket)).collect()
        }
        DataType::Decimal128(..) => {
            let values = values.as_primitive::<Decimal128Type>().iter();
            values.map(|value| value.map(|value| bucket(&unscaled_bytes(value)))).collect()
        }
        // Numbers and times have the hash of the same number of 64 bits.
        _ => {
            let values = whole_numbers(values)?;
            values.iter().map(|value| value.map(|value| bucket(&value.to_le_bytes()))).collect()
        }
    };
    Ok(Arc::new(found))
}

fn truncated(values: &ArrayRef, width: i32) -> Result<ArrayRef, ArrowError> {
    let length = usize::try_from(width).unwrap_or(usize::MAX);
    Ok(match values.data_type() {
        DataType::Int32 => {
            let values = values.as_primitive::<Int32Type>();
            Arc::new(values.unary::<_, Int32Type>(|value| value.wrapping_sub(value.rem_euclid(width))))
        }
        DataType::Int64 => {
            let width = i64::from(width);
            let values = values.as_primitive::<Int64Type>();
            Arc::new(values.unary::<_, Int64Type>(|value| value.wrapping_sub(value.rem_euclid(width))))
        }
        DataType::Decimal128(..) => {
            let (data_type, width) = (values.data_type().clone(), i128::from(width));
            let values = values.as_primitive::<Decimal128Type>();
            let truncated = values.unary::<_, Decimal128Type>(|value| value - value.rem_euclid(width));
            let truncated = truncated.with_data_type(data_type);
            // A wide step may leave the digits of the column, and its bytes in a manifest.
            truncated.validate_decimal_precision(truncated.precision())?;
            Arc::new(truncated)
        }
        DataType::Utf8 => {
            let prefix = |text: &str| text.chars().take(length).collect::<String>();
            let texts = values.as_string::<i32>().iter().map(|text| text.map(prefix));
            Arc::new(texts.collect::<StringArray>())
        }
        DataType::Binary => {
            let values = values.as_binary::<i32>().iter();
            let prefix = |bytes: &[u8]| bytes.iter().take(length).copied().collect::<Vec<u8>>();
            Arc::new(values.map(|bytes| bytes.map(prefix)).collect::<BinaryArray>())
        }
        other => return Err(ArrowError::NotYetImplemented(format!("truncate of {other}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::TimestampMicrosecondArray;
    use datafusion::common::ScalarValue;

    /// The values of the specification's appendix "32-bit Hash Requirements".
    #[test]
    fn hashes_are_those_of_the_specification() {
        assert_eq!(hash(&unscaled_bytes(1420), 0), (-500_754_589_i32).cast_unsigned());
        assert_eq!(hash(&17_486_i64.to_le_bytes(), 0), (-653_330_422_i32).cast_unsigned());
        assert_eq!(hash(&81_068_000_000_i64.to_le_bytes(), 0), (-662_762_989_i32).cast_unsigned());
        assert_eq!(hash(&[0, 1, 2, 3], 0), (-188_683_207_i32).cast_unsigned());
    }

    #[test]
    fn nanoseconds_are_in_the_partitions_of_their_microseconds() {
        let one = |transform: &str, value: ScalarValue| {
            let made = Transform::parse(transform).unwrap().apply(&value.to_array().unwrap()).unwrap();
            ScalarValue::try_from_array(&made, 0).unwrap()
        };
        for transform in ["year", "month", "day", "hour", "bucket[16]"] {
            for micros in [1_510_871_468_000_000, -1] {
                let nanos = ScalarValue::TimestampNanosecond(Some(micros * 1000 + 1), None);
                let micros = ScalarValue::TimestampMicrosecond(Some(micros), None);
                assert_eq!(one(transform, nanos), one(transform, micros), "{transform}");
            }
        }
    }

    #[test]
    fn a_decimal_that_leaves_its_digits_is_an_error() {
        let values = ScalarValue::Decimal128(Some(-99), 2, 0).to_array().unwrap();
        assert!(Transform::Truncate(1000).apply(&values).is_err());
        assert!(Transform::Truncate(9).apply(&values).is_ok());
    }

    #[test]
    fn null_stays_null_and_odd_transforms_are_none() {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(5)]));
        let bucketed = Transform::Bucket(4).apply(&values).unwrap();
        assert!(bucketed.is_null(0) && bucketed.is_valid(1));
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![None::<i64>]));
        for transform in [Transform::Year, Transform::Month, Transform::Day, Transform::Hour] {
            assert!(transform.apply(&times).unwrap().is_null(0), "{transform:?}");
        }
        for text in ["bucket[0]", "bucket[-1]", "bucket", "truncate[x]", "zorder[1]", ""] {
            assert!(Transform::parse(text).is_none(), "{text}");
        }
        assert!(Transform::Hour.result(&DataType::Date32).is_none());
        assert!(Transform::Bucket(4).result(&DataType::Float64).is_none());
    }
}
