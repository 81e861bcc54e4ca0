//! Floating-point numbers: quotients, roundings, and the greatest and least of each group.

use arrow::array::{ArrowNativeTypeOp, ArrowPrimitiveType, Float64Array};
use arrow::compute::binary;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion::logical_expr::GroupsAccumulator;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// `left / right` of each row. `None` where one of them is not finite, as by a divisor of zero.
pub fn finite_quotients(
    left: &Float64Array,
    right: &Float64Array,
) -> Result<Option<Float64Array>, ArrowError> {
    let quotients: Float64Array = binary(left, right, |left, right| left / right)?;
    let all = quotients.iter().flatten().all(f64::is_finite);
    Ok(all.then_some(quotients))
}

/// The nearest whole numbers, half to even.
pub fn rounded(numbers: &Float64Array) -> Float64Array {
    numbers.unary::<_, Float64Type>(f64::round_ties_even)
}

/// The greatest or the least number of each group, by IEEE 754's total order; `None` for types that are no floating-point
/// numbers.
pub fn extremes(data_type: &DataType, greatest: bool) -> Option<Box<dyn GroupsAccumulator>> {
    match data_type {
        DataType::Float16 => Some(groups::<Float16Type>(greatest)),
        DataType::Float32 => Some(groups::<Float32Type>(greatest)),
        DataType::Float64 => Some(groups::<Float64Type>(greatest)),
        _ => None,
    }
}

fn groups<T: ArrowPrimitiveType + Send>(greatest: bool) -> Box<dyn GroupsAccumulator>
where
    T::Native: ArrowNativeTypeOp,
{
    fn take<N: Copy>(into: &mut N, value: N, better: bool) {
        if better {
            *into = value;
        }
    }
    if greatest {
        let new = PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, |one, other| {
            take(one, other, other.is_gt(*one));
        });
        Box::new(new.with_starting_value(T::Native::MIN_TOTAL_ORDER))
    } else {
        let new = PrimitiveGroupsAccumulator::<T, _>::new(&T::DATA_TYPE, |one, other| {
            take(one, other, other.is_lt(*one));
        });
        Box::new(new.with_starting_value(T::Native::MAX_TOTAL_ORDER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray};
    use std::sync::Arc;

    #[test]
    fn a_divisor_of_zero_gives_no_quotients() {
        let of = |numbers: Vec<Option<f64>>| Float64Array::from(numbers);
        let quotients = finite_quotients(&of(vec![Some(1.0), None]), &of(vec![Some(4.0), Some(0.0)]));
        assert_eq!(quotients.unwrap(), Some(of(vec![Some(0.25), None])));
        assert_eq!(finite_quotients(&of(vec![Some(1.0)]), &of(vec![Some(0.0)])).unwrap(), None);
    }

    #[test]
    fn nan_is_above_all_in_a_group() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, f64::INFINITY, -1.0]));
        for (greatest, expected) in [(true, [f64::NAN, f64::INFINITY]), (false, [1.0, -1.0])] {
            let mut groups = extremes(&DataType::Float64, greatest).unwrap();
            groups.update_batch(&[Arc::clone(&numbers)], &[0, 0, 1, 1], None, 2).unwrap();
            let found = groups.evaluate(datafusion::logical_expr::EmitTo::All).unwrap();
            let found = found.as_primitive::<Float64Type>().values().iter().map(|number| number.to_bits());
            assert_eq!(found.collect::<Vec<_>>(), expected.map(f64::to_bits));
        }
        assert!(extremes(&DataType::Int64, true).is_none());
    }
}
