//! `avg` of intervals, as in PostgreSQL: months, days and time are averaged separately. Other types use DataFusion's.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, TypeSignature,
    Volatility,
};
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAYS_OF_MONTH: i32 = 30;
const NANOSECONDS_OF_DAY: i128 = 86_400_000_000_000;
const SUM: DataType = DataType::Decimal128(38, 0);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Average {
    of: Arc<AggregateUDF>,
    signature: Signature,
}

pub(crate) fn avg() -> Arc<AggregateUDF> {
    let of = avg_udaf();
    let either = vec![of.signature().type_signature.clone(), TypeSignature::Exact(vec![INTERVAL])];
    let signature = Signature::one_of(either, Volatility::Immutable);
    Arc::new(AggregateUDF::from(Average { of, signature }))
}

pub(super) fn is_interval(given: &AccumulatorArgs<'_>) -> bool {
    *given.return_field.data_type() == INTERVAL
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        "avg"
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        if given == [INTERVAL] { Ok(INTERVAL) } else { self.of.return_type(given) }
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match is_interval(&given) {
            true if given.is_distinct => plan_err!("avg(DISTINCT) of intervals is not supported"),
            true => Ok(Box::new(Mean::default())),
            false => self.of.accumulator(given),
        }
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if *given.return_field.data_type() != INTERVAL {
            return self.of.state_fields(given);
        }
        let field =
            |part: &str, of: DataType| Arc::new(Field::new(format!("{}[{part}]", given.name), of, true));
        Ok(vec![
            field("count", DataType::Int64),
            field("months", SUM),
            field("days", SUM),
            field("nanoseconds", SUM),
        ])
    }

    fn create_sliding_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_interval(&given) { self.accumulator(given) } else { self.of.create_sliding_accumulator(given) }
    }

    fn groups_accumulator_supported(&self, given: AccumulatorArgs<'_>) -> bool {
        !is_interval(&given) && self.of.groups_accumulator_supported(given)
    }

    fn create_groups_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.of.create_groups_accumulator(given)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// Sums of the parts of intervals.
#[derive(Debug, Default)]
struct Mean {
    count: i64,
    /// Months, days and nanoseconds. That many intervals that one of them is too long for the type cannot be counted.
    sums: [i128; 3],
}

impl Mean {
    fn change(&mut self, values: &[ArrayRef], by: i64) -> Result<()> {
        let [values] = values else { return exec_err!("avg takes one interval") };
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            self.count += by;
            let parts = [i128::from(value.months), i128::from(value.days), i128::from(value.nanoseconds)];
            for (sum, part) in self.sums.iter_mut().zip(parts) {
                *sum += part * i128::from(by);
            }
        }
        Ok(())
    }
}

impl Accumulator for Mean {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return ScalarValue::try_from(&INTERVAL);
        }
        let count = self.count as f64;
        let mean = scaled(self.sums.map(|sum| sum as f64), |part| part / count)
            .ok_or_else(|| exec_datafusion_err!("interval out of range"))?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(mean)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = |sum: i128| ScalarValue::Decimal128(Some(sum), 38, 0);
        let [months, days, nanoseconds] = self.sums.map(sum);
        Ok(vec![ScalarValue::Int64(Some(self.count)), months, days, nanoseconds])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [count, sums @ ..] = states else { return exec_err!("avg lacks its state") };
        self.count += count.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        for (sum, parts) in self.sums.iter_mut().zip(sums) {
            *sum += parts.as_primitive::<Decimal128Type>().iter().flatten().sum::<i128>();
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of the intervals of a sliding frame, which DataFusion's sum has only for whole partitions.
#[derive(Debug, Default)]
pub(super) struct SlidingSum(Mean);

impl Accumulator for SlidingSum {
    bowshot_api::delegate! { 0:
        fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()>;
        fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()>;
        fn supports_retract_batch(&self) -> bool;
        fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()>;
        fn state(&mut self) -> Result<Vec<ScalarValue>>;
        fn size(&self) -> usize;
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.0.count == 0 {
            return ScalarValue::try_from(&INTERVAL);
        }
        let [months, days, nanoseconds] = self.0.sums;
        let sum =
            i32::try_from(months).ok().zip(i32::try_from(days).ok()).zip(i64::try_from(nanoseconds).ok());
        let ((months, days), nanoseconds) =
            sum.ok_or_else(|| exec_datafusion_err!("interval out of range"))?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanoseconds))))
    }
}

/// An interval times or divided by a number, as `scale` does with each of its parts and as PostgreSQL has it: parts of months
/// become days, those of days become time. `None` beyond the longest one.
pub fn scaled_interval(
    interval: IntervalMonthDayNano,
    scale: impl Fn(f64) -> f64,
) -> Option<IntervalMonthDayNano> {
    let (months, days) = (f64::from(interval.months), f64::from(interval.days));
    scaled([months, days, interval.nanoseconds as f64], scale)
}

/// How long an interval is, in nanoseconds: a month has 30 days.
pub fn interval_length(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * i128::from(DAYS_OF_MONTH) + i128::from(interval.days);
    days * NANOSECONDS_OF_DAY + i128::from(interval.nanoseconds)
}

fn scaled([months, days, nanoseconds]: [f64; 3], scale: impl Fn(f64) -> f64) -> Option<IntervalMonthDayNano> {
    let (months, days) = (scale(months), scale(days));
    let rest_of_months = rounded((months - months.trunc()) * f64::from(DAYS_OF_MONTH));
    let mut seconds = rounded((days - days.trunc() + rest_of_months - rest_of_months.trunc()) * 86_400.0);
    let mut whole_days = days.trunc() + rest_of_months.trunc();
    if seconds.abs() >= 86_400.0 {
        whole_days += (seconds / 86_400.0).trunc();
        seconds %= 86_400.0;
    }
    let microseconds = (scale(nanoseconds / 1000.0) + seconds * 1e6).round_ties_even();
    let fits = |value: f64, most: f64| value.is_finite() && value.abs() <= most;
    let most_days = f64::from(i32::MAX);
    if !(fits(months, most_days) && fits(whole_days, most_days) && fits(microseconds, 9.2e15)) {
        return None;
    }
    Some(IntervalMonthDayNano::new(months.trunc() as i32, whole_days as i32, microseconds as i64 * 1000))
}

/// To microseconds, if it is a number of seconds.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::IntervalMonthDayNanoArray;

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn parts_of_months_become_days_and_parts_of_days_become_time() {
        // Values from PostgreSQL 15.
        for ((months, days, hours), factor, (to_months, to_days, to_hours)) in [
            ((0, 1, 0), 2.0, (0, 2, 0)),
            ((0, 1, 0), 0.5, (0, 0, 12)),
            ((1, 0, 0), 0.5, (0, 15, 0)),
            ((1, 1, 0), 1.5, (1, 16, 12)),
            ((0, 0, 1), -1.0, (0, 0, -1)),
        ] {
            let interval = IntervalMonthDayNano::new(months, days, hours * HOUR);
            let expected = IntervalMonthDayNano::new(to_months, to_days, to_hours * HOUR);
            assert_eq!(scaled_interval(interval, |part| part * factor), Some(expected));
        }
        assert_eq!(scaled_interval(IntervalMonthDayNano::new(1 << 30, 0, 0), |part| part * 4.0), None);
    }

    #[test]
    fn the_mean_of_intervals_is_that_of_their_parts() {
        let mut mean = Mean::default();
        assert!(mean.evaluate().unwrap().is_null());
        let of = |months, days, hours| Some(IntervalMonthDayNano::new(months, days, hours * HOUR));
        let values = IntervalMonthDayNanoArray::from(vec![of(1, 0, 0), None, of(0, 31, 0), of(0, 0, 10)]);
        mean.update_batch(&[Arc::new(values)]).unwrap();
        let states: Vec<ArrayRef> =
            mean.state().unwrap().iter().map(|state| state.to_array().unwrap()).collect();
        let mut merged = Mean::default();
        merged.merge_batch(&states).unwrap();
        // As PostgreSQL 15 has it.
        let expected = IntervalMonthDayNano::new(0, 20, 11 * HOUR + HOUR / 3);
        assert_eq!(merged.evaluate().unwrap(), ScalarValue::IntervalMonthDayNano(Some(expected)));
    }
}
