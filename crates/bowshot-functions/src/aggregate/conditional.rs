//! Aggregates with a condition as last argument: `count_if`, `sum_if`, `avg_if` …

use crate::define::{Function, aggregate};
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{and_kleene, filter};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::functions_aggregate::{average, count, min_max};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    aggregate("count_if", "how many rows a condition is true for", || made("count_if", count::count_udaf()))
        .aliases(&["countif"]),
    aggregate("sum_if", "the sum over the rows that a condition is true for", || {
        made("sum_if", super::sum::sum())
    })
    .aliases(&["sumif"]),
    aggregate("avg_if", "the average over the rows that a condition is true for", || {
        made("avg_if", average::avg_udaf())
    })
    .aliases(&["avgif"]),
    aggregate("min_if", "the least value of the rows that a condition is true for", || {
        made("min_if", min_max::min_udaf())
    }),
    aggregate("max_if", "the greatest value of the rows that a condition is true for", || {
        made("max_if", min_max::max_udaf())
    }),
];

/// The aggregate `of` with a condition behind its argument; alone, the condition is the argument as well.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Filtered {
    name: &'static str,
    of: Arc<AggregateUDF>,
    signature: Signature,
}

fn made(name: &'static str, of: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Filtered {
        name,
        of,
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

impl Filtered {
    fn inner<'a>(&self, given: AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
        AccumulatorArgs {
            exprs: given.exprs.get(..1).unwrap_or_default(),
            expr_fields: given.expr_fields.get(..1).unwrap_or_default(),
            ..given
        }
    }

    fn alone(&self) -> bool {
        self.name == "count_if"
    }
}

impl AggregateUDFImpl for Filtered {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [DataType::Boolean | DataType::Null] if self.alone() => Ok(vec![DataType::Boolean]),
            [value, DataType::Boolean | DataType::Null] if !self.alone() => {
                let field = Arc::new(datafusion::arrow::datatypes::Field::new("", value.clone(), true));
                let fields = fields_with_udf(&[field], self.of.as_ref())?;
                let mut types: Vec<_> = fields.iter().map(|field| field.data_type().clone()).collect();
                types.push(DataType::Boolean);
                Ok(types)
            }
            _ => no_overload(self.name, given),
        }
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.of.return_type(given.get(..1).unwrap_or_default())
    }

    bowshot_api::delegate! { of:
        fn is_nullable(&self) -> bool;
        fn default_value(&self, of: &DataType) -> Result<ScalarValue>;
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let input_fields = given.input_fields.get(..1).unwrap_or_default();
        self.of.state_fields(StateFieldsArgs { input_fields, ..given })
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Group { inner: self.of.accumulator(self.inner(given))? }))
    }

    fn create_sliding_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Group { inner: self.of.create_sliding_accumulator(self.inner(given))? }))
    }

    fn groups_accumulator_supported(&self, given: AccumulatorArgs<'_>) -> bool {
        self.of.groups_accumulator_supported(self.inner(given))
    }

    fn create_groups_accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups { inner: self.of.create_groups_accumulator(self.inner(given))? }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn split(values: &[ArrayRef]) -> Result<(&ArrayRef, &BooleanArray)> {
    let condition = values.last().and_then(|last| last.as_boolean_opt());
    values.first().zip(condition).ok_or_else(|| internal_datafusion_err!("a condition is missing"))
}

#[derive(Debug)]
struct Group {
    inner: Box<dyn Accumulator>,
}

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (value, condition) = split(values)?;
        self.inner.update_batch(&[filter(value, condition)?])
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (value, condition) = split(values)?;
        self.inner.retract_batch(&[filter(value, condition)?])
    }

    bowshot_api::delegate! { inner:
        fn supports_retract_batch(&self) -> bool;
        fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()>;
        fn state(&mut self) -> Result<Vec<ScalarValue>>;
        fn evaluate(&mut self) -> Result<ScalarValue>;
        fn size(&self) -> usize;
    }
}

struct Groups {
    inner: Box<dyn GroupsAccumulator>,
}

/// The rows that both the condition and the FILTER of the call are true for.
fn both(condition: &BooleanArray, filter: Option<&BooleanArray>) -> Result<BooleanArray> {
    filter.map_or_else(|| Ok(condition.clone()), |filter| Ok(and_kleene(condition, filter)?))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let (value, condition) = split(values)?;
        let kept = both(condition, filter)?;
        self.inner.update_batch(&[Arc::clone(value)], groups, Some(&kept), total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let (value, condition) = split(values)?;
        let kept = both(condition, filter)?;
        self.inner.convert_to_state(&[Arc::clone(value)], Some(&kept))
    }

    bowshot_api::delegate! { inner:
        fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef>;
        fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>>;
        fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()>;
        fn size(&self) -> usize;
    }
}
