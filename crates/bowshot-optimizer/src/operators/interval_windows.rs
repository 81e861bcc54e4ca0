//! `min` and `max` as window functions: of intervals by length, of enumerated types by the order of labels. DataFusion compares
//! months, or the texts.

use super::enum_functions::positions;
use super::enums;
use bowshot_functions::interval_length;
use bowshot_types::enums::EnumType;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int32Type, IntervalMonthDayNanoType, IntervalUnit,
};
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
    if !(greatest || function.name() == "min") {
        return false;
    }
    let of = enums::named(value, schema);
    if of.is_none() && !value.get_type(schema).is_ok_and(|of| of == INTERVAL) {
        return false;
    }
    let extreme = Extreme { greatest, of, signature: Signature::any(1, Volatility::Immutable) };
    call.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(AggregateUDF::from(extreme)));
    true
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    greatest: bool,
    /// The type of values that are no intervals.
    of: Option<EnumType>,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.greatest { "max" } else { "min" }
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        Ok(given.first().filter(|_| self.of.is_some()).cloned().unwrap_or(INTERVAL))
    }

    fn return_field(&self, given: &[FieldRef]) -> Result<FieldRef> {
        Ok(Arc::new(match given.first().filter(|_| self.of.is_some()) {
            Some(value) => Field::new(self.name(), value.data_type().clone(), true)
                .with_metadata(value.metadata().clone()),
            None => Field::new(self.name(), INTERVAL, true),
        }))
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Candidates {
            greatest: self.greatest,
            of: self.of.clone(),
            nothing: ScalarValue::try_new_null(given.return_field.data_type())?,
            came: 0,
            gone: 0,
            values: VecDeque::new(),
        }))
    }
}

/// The values of a frame that are the extreme, or will be when those before them have left.
#[derive(Debug)]
struct Candidates {
    greatest: bool,
    of: Option<EnumType>,
    /// The value of a frame without any.
    nothing: ScalarValue,
    /// How many values have come, and how many have left.
    came: usize,
    gone: usize,
    /// Which one it was, its length or place, and the value.
    values: VecDeque<(usize, i128, ScalarValue)>,
}

impl Candidates {
    /// The values that are there, with what they are told by.
    fn measured(&self, values: &ArrayRef) -> Result<Vec<(i128, ScalarValue)>> {
        let Some(of) = &self.of else {
            let there = values.as_primitive::<IntervalMonthDayNanoType>().iter().flatten();
            let measured =
                there.map(|value| (interval_length(value), ScalarValue::IntervalMonthDayNano(Some(value))));
            return Ok(measured.collect());
        };
        let places = positions(values, of)?;
        let places = places.as_primitive::<Int32Type>().iter().enumerate();
        let there = places.filter_map(|(row, place)| Some((row, place?)));
        there.map(|(row, place)| Ok((i128::from(place), ScalarValue::try_from_array(values, row)?))).collect()
    }
}

impl Accumulator for Candidates {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("an extreme takes one value") };
        for (length, value) in self.measured(values)? {
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
        let [values] = values else { return internal_err!("an extreme takes one value") };
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
        Ok(self.values.front().map_or_else(|| self.nothing.clone(), |(.., value)| value.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<(usize, i128, ScalarValue)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window has no parts")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window has no parts")
    }
}
