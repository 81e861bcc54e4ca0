//! The shape of a value's bytes, before the library reads them: it calls itself for each level, takes members that share their bytes
//! for as many values, and panics at days and UUIDs that are none.
//! <https://github.com/apache/parquet-format/blob/master/VariantEncoding.md>

use super::invalid;
use arrow::error::ArrowError;

/// How deep lists and objects may be inside of one another, as in JSON.
const DEPTH: usize = 128;
/// Days around 1970 that a calendar has, on either side.
const DAYS: u32 = 95_000_000;
/// Types of scalars: their number is in the upper bits of the first byte.
const DATE: u8 = 11;
const UUID: u8 = 20;

/// Checks that lists and objects are not too deep, and have parts of their own.
///
/// # Errors
/// For bytes that are no value.
pub fn check_value(value: &[u8]) -> Result<(), ArrowError> {
    let mut open = vec![(0_usize, 0_usize)];
    // A value has a byte at least, and no two share one.
    let mut left = value.len();
    while let Some((start, depth)) = open.pop() {
        left = left.checked_sub(1).ok_or_else(|| invalid("its parts overlap"))?;
        let bytes = value.get(start..).filter(|bytes| !bytes.is_empty()).ok_or_else(short)?;
        let Some(parts) = parts(bytes)? else { continue };
        if depth >= DEPTH {
            return Err(invalid(&format!("it is nested deeper than {DEPTH}")));
        }
        // Refused before there is an entry for each of the parts that a header claims.
        if parts.count > left {
            return Err(invalid("its parts overlap"));
        }
        for index in 0..parts.count {
            let offset = number(bytes, parts.offsets + index * parts.width, parts.width)?;
            let place = parts.values.checked_add(offset).and_then(|within| start.checked_add(within));
            open.push((place.ok_or_else(short)?, depth + 1));
        }
    }
    Ok(())
}

/// Where the parts of a list or of an object are, in bytes from its beginning.
struct Parts {
    count: usize,
    offsets: usize,
    width: usize,
    values: usize,
}

/// `None` for a scalar.
fn parts(bytes: &[u8]) -> Result<Option<Parts>, ArrowError> {
    let header = bytes.first().copied().ok_or_else(short)?;
    let bits = header >> 2;
    // Bits of the width of an offset, of the width of a name's number in objects, and of that of the count.
    let (ids, is_large) = match header & 3 {
        0 => return scalar(bits, bytes).map(|()| None),
        1 => return Ok(None),
        2 => (usize::from((bits >> 2) & 3) + 1, (bits >> 4) & 1 == 1),
        _ => (0, (bits >> 2) & 1 == 1),
    };
    let width = usize::from(bits & 3) + 1;
    let of_count = if is_large { 4 } else { 1 };
    let count = number(bytes, 1, of_count)?;
    let offsets = count.checked_mul(ids).and_then(|ids| ids.checked_add(1 + of_count)).ok_or_else(short)?;
    let table = count.checked_add(1).and_then(|count| count.checked_mul(width)).ok_or_else(short)?;
    let values = offsets.checked_add(table).filter(|end| *end <= bytes.len()).ok_or_else(short)?;
    Ok(Some(Parts { count, offsets, width, values }))
}

fn scalar(kind: u8, bytes: &[u8]) -> Result<(), ArrowError> {
    match kind {
        DATE => {
            let days = bytes.get(1..5).and_then(|days| days.try_into().ok()).map(i32::from_le_bytes);
            match days.ok_or_else(short)? {
                days if days.unsigned_abs() <= DAYS => Ok(()),
                days => Err(invalid(&format!("there is no date {days} days from 1970"))),
            }
        }
        UUID if bytes.len() < 17 => Err(short()),
        _ => Ok(()),
    }
}

/// A number of up to four bytes.
fn number(bytes: &[u8], start: usize, width: usize) -> Result<usize, ArrowError> {
    let digits = bytes.get(start..start + width).ok_or_else(short)?;
    Ok(digits.iter().rev().fold(0, |number, digit| (number << 8) | usize::from(*digit)))
}

fn short() -> ArrowError {
    invalid("it ends early")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list around a value.
    fn list(value: &[u8]) -> Vec<u8> {
        let length = u32::try_from(value.len()).unwrap().to_le_bytes();
        [&[0b1111, 1, 0, 0, 0, 0][..], &length, value].concat()
    }

    #[test]
    fn depth_and_parts_are_bounded() {
        let nested = |levels: usize| (0..levels).fold(vec![0], |value, _| list(&value));
        assert!(check_value(&nested(DEPTH)).is_ok());
        assert!(check_value(&nested(DEPTH + 1)).is_err());
        assert!(check_value(&nested(2_000)).is_err());
        // Two parts that are the same bytes, in each of forty levels.
        let shared = (0..40).fold(vec![0], |value, _| {
            [&[0b0011, 2, 0, 0, u8::try_from(value.len()).unwrap()][..], &value].concat()
        });
        assert!(check_value(&shared).is_err());
        // A header that claims four billion parts.
        assert!(check_value(&[0b1_0011, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(check_value(&[]).is_err());
    }
}
