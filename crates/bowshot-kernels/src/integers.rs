//! Sums, differences and products of integers, with an error on overflow. One pass over each side finds the bits of its values; if nothing
//! can overflow, the loop has no checks.

use arrow::array::{ArrayRef, AsArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow::error::ArrowError;
use bowshot_api::{Error, Reason};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr_common::datum::apply;

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

pub fn compute(operator: Operator, left: &ColumnarValue, right: &ColumnarValue) -> Result<ColumnarValue> {
    let [wrapping, checked]: [Kernel; 2] = match operator {
        Operator::Plus => [numeric::add_wrapping, numeric::add],
        Operator::Minus => [numeric::sub_wrapping, numeric::sub],
        Operator::Multiply => [numeric::mul_wrapping, numeric::mul],
        other => return internal_err!("{other} is no arithmetic of integers"),
    };
    if fits(operator, left, right) {
        return apply(left, right, wrapping);
    }
    let kind = left.data_type();
    apply(left, right, checked).map_err(|error| in_our_words(error, &kind))
}

fn in_our_words(error: DataFusionError, kind: &DataType) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(inner, _) if matches!(**inner, ArrowError::ArithmeticOverflow(_)) => {
            DataFusionError::External(Box::new(out_of_range(kind)))
        }
        _ => error,
    }
}

/// A number that its type cannot hold.
fn out_of_range(kind: &DataType) -> Error {
    let (name, wider) = match kind {
        DataType::Int8 => ("tinyint", "BIGINT"),
        DataType::Int16 => ("smallint", "BIGINT"),
        DataType::Int32 => ("integer", "BIGINT"),
        DataType::Int64 => ("bigint", "DECIMAL(38, 0)"),
        DataType::UInt8 => ("utinyint", "BIGINT"),
        DataType::UInt16 => ("usmallint", "BIGINT"),
        DataType::UInt32 => ("uinteger", "BIGINT"),
        _ => ("ubigint", "DECIMAL(38, 0)"),
    };
    Error::invalid(format!("{name} out of range"))
        .with_reason(Reason::OutOfRange)
        .with_hint(format!("cast an operand to `{wider}`"))
}

fn fits(operator: Operator, left: &ColumnarValue, right: &ColumnarValue) -> bool {
    let (Some((left, width)), Some((right, _))) = (bits(left), bits(right)) else { return false };
    match operator {
        // The least number of a type times itself with a sign is one more than the greatest.
        Operator::Multiply => left + right < width,
        // Below zero there is nothing without a sign.
        Operator::Minus if width % 8 == 0 => false,
        _ => left.max(right) < width,
    }
}

/// How many bits the numbers take at most without their sign, and how many their type has. `NULL`s may count.
fn bits(values: &ColumnarValue) -> Option<(u32, u32)> {
    match values.data_type() {
        DataType::Int8 => of::<Int8Type>(values).map(|bits| (bits, 7)),
        DataType::Int16 => of::<Int16Type>(values).map(|bits| (bits, 15)),
        DataType::Int32 => of::<Int32Type>(values).map(|bits| (bits, 31)),
        DataType::Int64 => of::<Int64Type>(values).map(|bits| (bits, 63)),
        DataType::UInt8 => of::<UInt8Type>(values).map(|bits| (bits, 8)),
        DataType::UInt16 => of::<UInt16Type>(values).map(|bits| (bits, 16)),
        DataType::UInt32 => of::<UInt32Type>(values).map(|bits| (bits, 32)),
        _ => None,
    }
}

fn of<T: ArrowPrimitiveType>(values: &ColumnarValue) -> Option<u32>
where
    T::Native: Into<i64>,
{
    let all = |values: &[T::Native]| {
        values.iter().fold(0_i64, |all, value| {
            let value: i64 = (*value).into();
            all | (value ^ (value >> 63))
        })
    };
    let all = match values {
        ColumnarValue::Array(array) => all(array.as_primitive_opt::<T>()?.values()),
        ColumnarValue::Scalar(scalar) => all(scalar.to_array().ok()?.as_primitive_opt::<T>()?.values()),
    };
    Some(i64::BITS - all.leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int8Array, Int64Array, UInt8Array};
    use datafusion::common::ScalarValue;
    use std::sync::Arc;

    fn values(of: Vec<Option<i64>>) -> ColumnarValue {
        ColumnarValue::Array(Arc::new(Int64Array::from(of)))
    }

    #[test]
    fn numbers_of_each_width_are_right_or_an_error() {
        for left in i8::MIN..=i8::MAX {
            for right in i8::MIN..=i8::MAX {
                for (operator, expected) in [
                    (Operator::Plus, left.checked_add(right)),
                    (Operator::Minus, left.checked_sub(right)),
                    (Operator::Multiply, left.checked_mul(right)),
                ] {
                    let one = ColumnarValue::Array(Arc::new(Int8Array::from(vec![left])));
                    let other = ColumnarValue::Scalar(ScalarValue::Int8(Some(right)));
                    let computed = compute(operator, &one, &other).ok();
                    let computed = computed.map(|value| {
                        let array = value.into_array(1).expect("one row");
                        array.as_primitive::<Int8Type>().value(0)
                    });
                    assert_eq!(computed, expected, "{left} {operator} {right}");
                }
            }
        }
    }

    #[test]
    fn numbers_without_a_sign_do_not_go_below_zero() {
        let of = |value: u8| ColumnarValue::Array(Arc::new(UInt8Array::from(vec![value])));
        assert!(compute(Operator::Minus, &of(1), &of(2)).is_err());
        assert!(compute(Operator::Plus, &of(200), &of(55)).is_ok());
        assert!(compute(Operator::Plus, &of(200), &of(56)).is_err());
    }

    #[test]
    fn nulls_are_never_out_of_range() {
        let sum =
            compute(Operator::Plus, &values(vec![Some(i64::MAX), None]), &values(vec![None, Some(i64::MAX)]));
        assert!(sum.is_ok());
        let error = compute(Operator::Plus, &values(vec![Some(i64::MAX)]), &values(vec![Some(1)]));
        assert!(error.is_err_and(|error| error.to_string().contains("bigint out of range")));
    }
}
