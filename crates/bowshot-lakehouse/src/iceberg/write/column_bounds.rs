//! Values as bytes, for bounds of columns and partitions (specification, "Binary single-value serialization").

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use std::cmp::Ordering;

/// Characters of a text that bounds have; readers need no more to leave a file out.
const BOUND_CHARS: usize = 16;

/// The bytes of a value; `None` for NULL and for types that have no bounds here.
pub(super) fn value_bytes(value: &ScalarValue) -> Option<Vec<u8>> {
    Some(match value {
        ScalarValue::Boolean(Some(it)) => vec![u8::from(*it)],
        ScalarValue::Int32(Some(it)) | ScalarValue::Date32(Some(it)) => it.to_le_bytes().to_vec(),
        ScalarValue::Int64(Some(it))
        | ScalarValue::Time64Microsecond(Some(it))
        | ScalarValue::TimestampMicrosecond(Some(it), _)
        | ScalarValue::TimestampNanosecond(Some(it), _) => it.to_le_bytes().to_vec(),
        ScalarValue::Float32(Some(it)) => it.to_le_bytes().to_vec(),
        ScalarValue::Float64(Some(it)) => it.to_le_bytes().to_vec(),
        ScalarValue::Decimal128(Some(it), ..) => unscaled_bytes(*it),
        ScalarValue::Utf8(Some(it)) => it.as_bytes().to_vec(),
        ScalarValue::Binary(Some(it)) | ScalarValue::FixedSizeBinary(_, Some(it)) => it.clone(),
        _ => return None,
    })
}

/// A decimal without its scale: as few bytes as it takes, the highest first.
pub(super) fn unscaled_bytes(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let is_needless = |pair: &[u8]| pair[0] == sign && (pair[1] & 0x80) == (sign & 0x80);
    let skipped = bytes.windows(2).take_while(|pair| is_needless(pair)).count();
    bytes[skipped..].to_vec()
}

/// Whether files have bounds for a type: floats do not (Parquet leaves NaN out), nor binary values (readers order them differently).
pub(super) fn has_bounds(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Decimal128(..)
            | DataType::Utf8
    )
}

/// The lowest and the highest of some values, without NULLs and NaNs.
pub(super) fn extremes<'v>(
    values: impl Iterator<Item = &'v ScalarValue>,
) -> Option<(&'v ScalarValue, &'v ScalarValue)> {
    values.filter(|value| !value.is_null() && !is_nan(value)).fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((
            if value.partial_cmp(low) == Some(Ordering::Less) { value } else { low },
            if value.partial_cmp(high) == Some(Ordering::Greater) { value } else { high },
        )),
    })
}

pub(super) fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(it)) => it.is_nan(),
        ScalarValue::Float64(Some(it)) => it.is_nan(),
        _ => false,
    }
}

/// What no value is below.
pub(super) fn lower_bound(lowest: &ScalarValue) -> Option<Vec<u8>> {
    match lowest {
        ScalarValue::Utf8(Some(text)) => {
            Some(text.chars().take(BOUND_CHARS).collect::<String>().into_bytes())
        }
        other => value_bytes(other),
    }
}

/// What no value is above; `None` for a text of which no short one is above.
pub(super) fn upper_bound(highest: &ScalarValue) -> Option<Vec<u8>> {
    let ScalarValue::Utf8(Some(text)) = highest else { return value_bytes(highest) };
    let mut chars: Vec<char> = text.chars().take(BOUND_CHARS + 1).collect();
    if chars.len() <= BOUND_CHARS {
        return Some(text.as_bytes().to_vec());
    }
    chars.truncate(BOUND_CHARS);
    while let Some(last) = chars.pop() {
        // There are no characters between U+D7FF and U+E000.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect::<String>().into_bytes());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_as_few_bytes_as_they_can() {
        for (value, wanted) in [
            (0_i128, vec![0]),
            (1, vec![1]),
            (127, vec![0x7f]),
            (128, vec![0, 0x80]),
            (-1, vec![0xff]),
            (-128, vec![0x80]),
            (-129, vec![0xff, 0x7f]),
            (1420, vec![0x05, 0x8c]),
        ] {
            assert_eq!(unscaled_bytes(value), wanted, "{value}");
        }
        assert_eq!(unscaled_bytes(i128::MIN).len(), 16);
    }

    #[test]
    fn bounds_of_texts_are_short_and_hold() {
        let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
        let long = "abcdefghijklmnopqrstuvwxyz";
        assert_eq!(lower_bound(&text(long)).unwrap(), b"abcdefghijklmnop");
        assert_eq!(upper_bound(&text(long)).unwrap(), b"abcdefghijklmnoq");
        assert_eq!(upper_bound(&text("abc")).unwrap(), b"abc");
        let last = format!("a{}", "\u{10ffff}".repeat(20));
        assert_eq!(upper_bound(&text(&last)).unwrap(), b"b");
        assert!(upper_bound(&text(&"\u{10ffff}".repeat(20))).is_none());
        let gap = format!("{}\u{d7ff}x", "a".repeat(15));
        assert_eq!(upper_bound(&text(&gap)).unwrap(), format!("{}\u{e000}", "a".repeat(15)).into_bytes());
    }

    #[test]
    fn extremes_leave_null_and_nan_out() {
        let floats = [Some(2.0), None, Some(f64::NAN), Some(-1.0)].map(ScalarValue::Float64);
        let (low, high) = extremes(floats.iter()).unwrap();
        assert_eq!((low, high), (&ScalarValue::Float64(Some(-1.0)), &ScalarValue::Float64(Some(2.0))));
        assert!(extremes([ScalarValue::Int32(None)].iter()).is_none());
    }
}
