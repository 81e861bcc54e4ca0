//! `min` and `max` of intervals as window functions, told by length as everywhere. DataFusion's compare months first.

use bowshot_functions::interval_length;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ExprSchemable, Signature, Volatility,
    WindowFunctionDefinition,
};
use std::collections::VecDeque;
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Lets the function look at lengths; says whether it is one that has to.
pub(super) fn by_length(call: &mut WindowFunction, schema: &DFSchema) -> bool {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else { return false };
    let greatest = function.name() == "max";
    let [value] = call.params.args.as_slice() else { return false };
    if !(greatest || function.name() == "min") || !value.get_type(schema).is_ok_and(|of| of == INTERVAL) {
        return false;
    }
    let extreme = Extreme { greatest, signature: Signature::any(1, Volatility::Immutable) };
    call.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::from(extreme)));
    true
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    greatest: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.greatest { "max" } else { "min" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn accumulator(&self, _given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Candidates { greatest: self.greatest, came: 0, gone: 0, values: VecDeque::new() }))
    }
}

/// The values of a frame that are the extreme, or will be when those before them have left.
#[derive(Debug)]
struct Candidates {
    greatest: bool,
    /// How many values have come, and how many have left.
    came: usize,
    gone: usize,
    /// Which one it was, its length, and the value.
    values: VecDeque<(usize, i128, IntervalMonthDayNano)>,
}

impl Accumulator for Candidates {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("an extreme takes one interval") };
        for value in values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            let length = interval_length(value);
            while self
                .values
                .back()
                .is_some_and(|(_, before, _)| if self.greatest { *before < length } else { *before > length })
            {
                self.values.pop_back();
            }
            self.values.push_back((self.came, length, value));
            self.came += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("an extreme takes one interval") };
        self.gone += values.len() - values.null_count();
        while self.values.front().is_some_and(|(place, ..)| *place < self.gone) {
            self.values.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::IntervalMonthDayNano(self.values.front().map(|(.., value)| *value)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<(usize, i128, IntervalMonthDayNano)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window has no parts")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window has no parts")
    }
}
