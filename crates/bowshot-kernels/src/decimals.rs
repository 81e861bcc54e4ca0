//! Arithmetic on decimals whose values fit into 64 bits: nothing can overflow the 128 bits of a result, and nothing need be
//! checked value by value.

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType, Decimal128Type};
use bowshot_api::{Error, Reason};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Operator};
use std::sync::Arc;

/// Powers of ten that fit into 60 bits: with one of them a value of 64 bits becomes one of 124, and two of those are added
/// without overflow.
const MAX_SHIFT: u32 = 18;

/// Checks that wide values have no more digits than their type, which Arrow's kernels let pass.
pub fn in_range(values: &ColumnarValue, kind: &DataType) -> Result<()> {
    let DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) = kind else { return Ok(()) };
    let valid = match values {
        ColumnarValue::Array(array) => array
            .as_primitive_opt::<Decimal128Type>()
            .is_none_or(|array| array.validate_decimal_precision(DECIMAL128_MAX_PRECISION).is_ok()),
        ColumnarValue::Scalar(ScalarValue::Decimal128(Some(value), ..)) => {
            value.unsigned_abs() < 10_u128.pow(u32::from(DECIMAL128_MAX_PRECISION))
        }
        ColumnarValue::Scalar(_) => true,
    };
    if valid {
        return Ok(());
    }
    let error = Error::invalid("numeric overflow: more than 38 digits")
        .with_reason(Reason::OutOfRange)
        .with_hint("cast an operand to `DOUBLE`");
    Err(DataFusionError::External(Box::new(error)))
}

/// One side of an operation.
struct Side<'a> {
    values: Values<'a>,
    precision: u8,
    scale: u8,
}

enum Values<'a> {
    Each(&'a Decimal128Array),
    All(i64),
}

/// `left op right` of type `result`. `None` where a value needs more than 64 bits, and for all that is rare enough to be left
/// to Arrow: two scalars, a scalar `NULL`, negative scales, results that do not have the type of Arrow's kernels.
pub fn narrow(
    op: Operator,
    left: &ColumnarValue,
    right: &ColumnarValue,
    result: &DataType,
) -> Option<ArrayRef> {
    let (left, right) = (side(left)?, side(right)?);
    let DataType::Decimal128(precision, scale) = *result else { return None };
    if result_type(op, &left, &right)? != (precision, u8::try_from(scale).ok()?) {
        return None;
    }
    let values = match op {
        Operator::Multiply => combined(&left.values, &right.values, |a, b| i128::from(a) * i128::from(b))?,
        Operator::Plus => added(&left, &right, 1)?,
        Operator::Minus => added(&left, &right, -1)?,
        _ => return None,
    };
    let nulls = NullBuffer::union(nulls(&left.values), nulls(&right.values));
    let array = Decimal128Array::try_new(values, nulls).ok()?;
    Some(Arc::new(array.with_precision_and_scale(precision, scale).ok()?))
}

fn side(value: &ColumnarValue) -> Option<Side<'_>> {
    let (values, precision, scale) = match value {
        ColumnarValue::Array(array) => match *array.data_type() {
            DataType::Decimal128(precision, scale) => {
                (Values::Each(array.as_primitive_opt::<Decimal128Type>()?), precision, scale)
            }
            _ => return None,
        },
        ColumnarValue::Scalar(ScalarValue::Decimal128(Some(value), precision, scale)) => {
            (Values::All(i64::try_from(*value).ok()?), *precision, *scale)
        }
        ColumnarValue::Scalar(_) => return None,
    };
    Some(Side { values, precision, scale: u8::try_from(scale).ok()? })
}

/// Precision and scale of Arrow's kernels, which follow Hive: `p1 + p2 + 1` and `s1 + s2` of a product, and the digits before
/// and behind the point that either side has, with one more before it, of a sum.
fn result_type(op: Operator, left: &Side, right: &Side) -> Option<(u8, u8)> {
    let (precision, scale) = if op == Operator::Multiply {
        (left.precision + right.precision + 1, left.scale + right.scale)
    } else {
        let scale = left.scale.max(right.scale);
        let before = left.precision.checked_sub(left.scale)?.max(right.precision.checked_sub(right.scale)?);
        (scale + before + 1, scale)
    };
    let most = u8::try_from(DECIMAL128_MAX_SCALE).ok()?;
    (scale <= most).then_some((precision.min(DECIMAL128_MAX_PRECISION), scale))
}

/// `left + sign * right`, brought to one scale.
fn added(left: &Side, right: &Side, sign: i64) -> Option<ScalarBuffer<i128>> {
    let scale = left.scale.max(right.scale);
    let (shift_left, shift_right) = (power(scale - left.scale)?, sign * power(scale - right.scale)?);
    if (shift_left, shift_right.abs()) == (1, 1) {
        let sign = i128::from(sign);
        return combined(&left.values, &right.values, |a, b| i128::from(a) + sign * i128::from(b));
    }
    let shifted = |value: i64, shift: i64| i128::from(value) * i128::from(shift);
    combined(&left.values, &right.values, |a, b| shifted(a, shift_left) + shifted(b, shift_right))
}

fn power(exponent: u8) -> Option<i64> {
    (u32::from(exponent) <= MAX_SHIFT).then(|| 10_i64.pow(u32::from(exponent)))
}

/// The results of all rows, if all values fit. What is below a `NULL` counts too: it is zero as a rule.
fn combined(
    left: &Values,
    right: &Values,
    operation: impl Fn(i64, i64) -> i128,
) -> Option<ScalarBuffer<i128>> {
    let results: Vec<i128> = match (left, right) {
        (Values::Each(left), Values::Each(right)) => {
            let (left, right) = (fitting(left)?, fitting(right)?);
            if left.len() != right.len() {
                return None;
            }
            left.iter().zip(right).map(|(a, b)| operation(low(*a), low(*b))).collect()
        }
        (Values::Each(left), Values::All(b)) => {
            fitting(left)?.iter().map(|a| operation(low(*a), *b)).collect()
        }
        (Values::All(a), Values::Each(right)) => {
            fitting(right)?.iter().map(|b| operation(*a, low(*b))).collect()
        }
        (Values::All(_), Values::All(_)) => return None,
    };
    Some(results.into())
}

fn fitting(array: &Decimal128Array) -> Option<&[i128]> {
    let values: &[i128] = array.values();
    // Without a branch, so that it is done for many values at a time.
    let beyond = values.iter().fold(0, |found, value| found | (*value ^ i128::from(low(*value))));
    (beyond == 0).then_some(values)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low(value: i128) -> i64 {
    value as i64
}

fn nulls<'a>(values: &'a Values) -> Option<&'a NullBuffer> {
    match values {
        Values::Each(array) => array.nulls(),
        Values::All(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(values: Vec<Option<i128>>) -> ColumnarValue {
        let array = Decimal128Array::from(values).with_precision_and_scale(38, 2).expect("type");
        ColumnarValue::Array(Arc::new(array))
    }

    #[test]
    fn narrow_values_take_the_short_way_and_wide_ones_do_not() {
        let result = DataType::Decimal128(38, 4);
        let times = |left, right| narrow(Operator::Multiply, &decimals(left), &decimals(right), &result);
        let product =
            times(vec![Some(i128::from(i64::MIN)), None], vec![Some(i128::from(i64::MIN)), Some(1)]);
        let product = product.expect("narrow");
        assert_eq!(product.as_primitive::<Decimal128Type>().value(0), 1 << 126);
        assert!(product.is_null(1));
        assert!(times(vec![Some(1 << 63)], vec![Some(1)]).is_none());
        assert!(times(vec![Some(1)], vec![Some(-(1 << 63) - 1)]).is_none());
    }
}
