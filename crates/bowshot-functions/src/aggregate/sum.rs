//! `sum` with an error on overflow, where DataFusion's wraps around. Integers and wide decimals are added in 128 bits and checked at the end,
//! so that the order of rows does not matter. Other types use DataFusion's.

mod groups;

use super::average::{SlidingSum, is_interval};
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int64Type,
    UInt64Type,
};
use datafusion::common::{
    DataFusionError, Result, ScalarValue, exec_datafusion_err, internal_datafusion_err,
};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs, Volatility,
};
use groups::Groups;
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    of: Arc<AggregateUDF>,
    signature: Signature,
}

pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Sum {
        of: sum_udaf(),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// What is added up: its type, and how the whole is shown when it does not fit.
#[derive(Debug, Clone)]
struct Range {
    of: DataType,
    scale: i8,
}

trait Number: ArrowPrimitiveType<Native: Into<i128> + TryFrom<i128>> + std::fmt::Debug + Send + Sync {
    /// The sum of a batch, and whether it overflowed.
    fn total(values: &[Self::Native]) -> (i128, bool);
}

impl Number for Int64Type {
    fn total(values: &[i64]) -> (i128, bool) {
        // Halves, whose sums fit into 64 bits for any batch: unlike 128 bits, they are added by vector instructions.
        let high: i64 = values.iter().map(|value| value >> 32).sum();
        let low: i64 = values.iter().map(|value| value & 0xffff_ffff).sum();
        ((i128::from(high) << 32) + i128::from(low), false)
    }
}

impl Number for UInt64Type {
    fn total(values: &[u64]) -> (i128, bool) {
        let high: u64 = values.iter().map(|value| value >> 32).sum();
        let low: u64 = values.iter().map(|value| value & 0xffff_ffff).sum();
        ((i128::from(high) << 32) + i128::from(low), false)
    }
}

impl Number for Decimal128Type {
    fn total(values: &[i128]) -> (i128, bool) {
        values.iter().fold((0, false), |(total, over), value| {
            let (total, more) = total.overflowing_add(*value);
            (total, over | more)
        })
    }
}

impl Range {
    /// The range of a sum that is added up here, of values of that type.
    fn new(given: &DataType, result: &DataType) -> Option<Self> {
        match (given, result) {
            (_, DataType::Int64 | DataType::UInt64) => Some(Self { of: result.clone(), scale: 0 }),
            (DataType::Decimal128(precision, _), DataType::Decimal128(_, scale))
                if precision + 10 > DECIMAL128_MAX_PRECISION =>
            {
                Some(Self { of: result.clone(), scale: *scale })
            }
            _ => None,
        }
    }

    fn state(&self) -> DataType {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, self.scale)
    }

    fn overflow(&self) -> DataFusionError {
        match self.of {
            DataType::Int64 => {
                exec_datafusion_err!("bigint out of range in `sum`; cast to DECIMAL(38, 0) or DOUBLE first")
            }
            DataType::UInt64 => {
                exec_datafusion_err!("unsigned bigint out of range in `sum`; cast to DECIMAL(38, 0) first")
            }
            _ => exec_datafusion_err!(
                "numeric field overflow in `sum`: more than 38 digits; cast to DOUBLE first"
            ),
        }
    }

    fn fits<T: Number>(&self, total: i128) -> Result<T::Native> {
        // Thirty-eight nines.
        const GREATEST: i128 = 10_i128.pow(38) - 1;
        if matches!(self.of, DataType::Decimal128(..)) && total.abs() > GREATEST {
            return Err(self.overflow());
        }
        T::Native::try_from(total).map_err(|_| self.overflow())
    }

    fn scalar<T: Number>(&self, total: Option<i128>) -> Result<ScalarValue> {
        let total = total.map(|total| self.fits::<T>(total)).transpose()?;
        ScalarValue::new_primitive::<T>(total, &self.of)
    }
}

fn range(given: &AccumulatorArgs<'_>) -> Option<Range> {
    Range::new(given.expr_fields.first()?.data_type(), given.return_field.data_type())
}

/// Arguments for the gathering of different values.
fn gathering<'a>(given: AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    let of = given.expr_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
    let list = DataType::List(Arc::new(Field::new_list_field(of, true)));
    AccumulatorArgs { return_field: Arc::new(Field::new("", list, true)), order_bys: &[], ..given }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        fn added(of: &DataType) -> Option<DataType> {
            Some(match of {
                // DuckDB counts the true ones.
                DataType::Boolean | DataType::Null => DataType::Int64,
                of if of.is_signed_integer() => DataType::Int64,
                of if of.is_unsigned_integer() => DataType::UInt64,
                of if of.is_floating() => DataType::Float64,
                // DataFusion's sum of them has as few bits, and wraps around.
                DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                    DataType::Decimal128(*precision, *scale)
                }
                of if of.is_decimal() => of.clone(),
                DataType::Duration(_) | DataType::Interval(_) => of.clone(),
                DataType::Dictionary(_, values) => added(values)?,
                _ => return None,
            })
        }
        match given {
            [of] => added(of).map_or_else(|| no_overload("sum", given), |of| Ok(vec![of])),
            _ => no_overload("sum", given),
        }
    }

    bowshot_api::delegate! { of:
        fn return_type(&self, given: &[DataType]) -> Result<DataType>;
        fn groups_accumulator_supported(&self, given: AccumulatorArgs<'_>) -> bool;
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let of = given.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        match Range::new(&of, given.return_field.data_type()) {
            Some(_) if given.is_distinct => {
                array_agg_udaf().state_fields(StateFieldsArgs { ordering_fields: &[], ..given })
            }
            Some(range) => {
                Ok(vec![Arc::new(Field::new(format!("{}[sum]", given.name), range.state(), true))])
            }
            None => self.of.state_fields(given),
        }
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let Some(range) = range(&given) else { return self.of.accumulator(given) };
        let different =
            if given.is_distinct { Some(array_agg_udaf().accumulator(gathering(given))?) } else { None };
        Ok(match range.of {
            DataType::Int64 => Group::<Int64Type>::boxed(range, different),
            DataType::UInt64 => Group::<UInt64Type>::boxed(range, different),
            _ => Group::<Decimal128Type>::boxed(range, different),
        })
    }

    fn create_sliding_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match range(&given) {
            Some(_) => self.accumulator(given),
            None if is_interval(&given) && !given.is_distinct => Ok(Box::new(SlidingSum::default())),
            None => self.of.create_sliding_accumulator(given),
        }
    }

    fn create_groups_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(range) = range(&given) else { return self.of.create_groups_accumulator(given) };
        Ok(match range.of {
            DataType::Int64 => Box::new(Groups::<Int64Type>::new(range)),
            DataType::UInt64 => Box::new(Groups::<UInt64Type>::new(range)),
            _ => Box::new(Groups::<Decimal128Type>::new(range)),
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, of: &DataType) -> SetMonotonicity {
        self.of.inner().set_monotonicity(of)
    }

    fn simplify_expr_op_literal(
        &self,
        call: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        left: bool,
    ) -> Result<Option<Expr>> {
        self.of.inner().simplify_expr_op_literal(call, argument, operator, literal, left)
    }

    fn value_from_stats(&self, given: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.of.inner().value_from_stats(given)
    }
}

/// The sum without groups, or of a window.
#[derive(Debug)]
struct Group<T: Number> {
    range: Range,
    total: i128,
    count: u64,
    over: bool,
    /// With DISTINCT, the different values, which are added up at the end.
    different: Option<Box<dyn Accumulator>>,
    of: std::marker::PhantomData<T>,
}

impl<T: Number> Group<T> {
    fn boxed(range: Range, different: Option<Box<dyn Accumulator>>) -> Box<dyn Accumulator> {
        Box::new(Self { range, total: 0, count: 0, over: false, different, of: std::marker::PhantomData })
    }

    fn add<V: Number>(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        let (part, over, count) = total::<V>(values)?;
        let (sum, more) = self.total.overflowing_add(part);
        (self.total, self.over, self.count) = (sum, self.over | over | more, self.count + count);
        Ok(())
    }

    fn checked(&self) -> Result<Option<i128>> {
        if self.over {
            return Err(self.range.overflow());
        }
        Ok((self.count > 0).then_some(self.total))
    }
}

/// The sum of what is valid in a batch, whether it overflowed, and how many that are.
fn total<T: Number>(values: &ArrayRef) -> Result<(i128, bool, u64)> {
    let Some(values) = values.as_primitive_opt::<T>() else {
        return Err(internal_datafusion_err!("sum of {}", values.data_type()));
    };
    let count = (values.len() - values.null_count()) as u64;
    let all: &PrimitiveArray<T> = values;
    let (total, over) = match all.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => T::total(all.values()),
        Some(nulls) => nulls.valid_slices().fold((0_i128, false), |(total, over), (start, end)| {
            let (part, first) = T::total(all.values().get(start..end).unwrap_or_default());
            let (total, second) = total.overflowing_add(part);
            (total, over | first | second)
        }),
    };
    Ok((total, over, count))
}

impl<T: Number> Accumulator for Group<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(different) = &mut self.different {
            return different.update_batch(values);
        }
        self.add::<T>(values)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(different) = &mut self.different {
            return different.retract_batch(values);
        }
        let Some(values) = values.first() else { return Ok(()) };
        let (part, over, count) = total::<T>(values)?;
        let (sum, more) = self.total.overflowing_sub(part);
        (self.total, self.over, self.count) = (sum, self.over | over | more, self.count - count);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.different.as_ref().is_none_or(|different| different.supports_retract_batch())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        if let Some(different) = &mut self.different {
            return different.merge_batch(states);
        }
        self.add::<Decimal128Type>(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if let Some(different) = &mut self.different {
            return different.state();
        }
        let state = ScalarValue::Decimal128(self.checked()?, DECIMAL128_MAX_PRECISION, self.range.scale);
        Ok(vec![state])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(different) = &mut self.different else {
            let total = self.checked()?;
            return self.range.scalar::<T>(total);
        };
        let mut all =
            Self { range: self.range.clone(), total: 0, count: 0, over: false, different: None, of: self.of };
        if let ScalarValue::List(list) = different.evaluate()?
            && list.is_valid(0)
        {
            all.update_batch(&[list.value(0)])?;
        }
        all.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.different.as_ref().map_or(0, |different| different.size())
    }
}
