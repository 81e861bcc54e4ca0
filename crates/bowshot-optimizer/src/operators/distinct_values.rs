//! `array_agg(DISTINCT v)`, `sum(DISTINCT v)` of intervals and of JSONB: values with one key, as a month and 30 days, are one value,
//! taken in order as in PostgreSQL. Also `array_agg(DISTINCT v ORDER BY v)` of any type: beside one of the other order DataFusion
//! 55 reverses it and then sorts its values as before.

use super::keys::Key;
use super::order;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::collections::HashMap;
use std::sync::Arc;

/// Lets the function look at keys; says whether it is one that has to.
pub(super) fn by_key(function: &mut AggregateFunction, schema: &DFSchema) -> bool {
    let params = &mut function.params;
    let [value] = params.args.as_slice() else { return false };
    if !params.distinct {
        return false;
    }
    let key = match Key::of(value, schema) {
        Some(key) => key.call(value.clone()),
        None if function.func.name() == "array_agg" && !params.order_by.is_empty() => {
            order::with_one_zero(value, schema).unwrap_or_else(|| value.clone())
        }
        None => return false,
    };
    let (descending, nulls_first) = match params.order_by.as_slice() {
        [] => (false, false),
        [order] if order.expr == *value => (!order.asc, order.nulls_first),
        _ => return false,
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    // Columns are found by name: two orders of one value are two columns.
    let order = match (descending, nulls_first) {
        (false, false) => "",
        (false, true) => "_nulls_first",
        (true, false) => "_descending",
        (true, true) => "_descending_nulls_first",
    };
    let name = format!("distinct_{}{order}", function.func.name());
    let of = Distinct { name, of: Arc::clone(&function.func), descending, nulls_first, signature };
    params.args.push(key);
    params.distinct = false;
    params.order_by = Vec::new();
    function.func = Arc::new(AggregateUDF::from(of));
    true
}

/// The aggregate `of` one value for each key, which is a second argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Distinct {
    name: String,
    of: Arc<AggregateUDF>,
    descending: bool,
    nulls_first: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Distinct {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [value, key] = given else { return internal_err!("a value and its key are taken") };
        let field = Arc::new(Field::new("", value.clone(), true));
        let fields = fields_with_udf(&[field], self.of.as_ref())?;
        Ok(fields.iter().map(|field| field.data_type().clone()).chain([key.clone()]).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        self.of.return_type(given.get(..1).unwrap_or_default())
    }

    fn return_field(&self, given: &[FieldRef]) -> Result<FieldRef> {
        self.of.return_field(given.get(..1).unwrap_or_default())
    }

    bowshot_api::delegate! { of: fn default_value(&self, of: &DataType) -> Result<ScalarValue>; }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let lists = given.input_fields.iter().zip(["values", "keys"]).map(|(field, part)| {
            let item = Field::new_list_field(field.data_type().clone(), true);
            Arc::new(Field::new_list(format_state_name(given.name, part), item, true))
        });
        Ok(lists.collect())
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let types = given.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        let inner = self.of.accumulator(AccumulatorArgs {
            exprs: given.exprs.get(..1).unwrap_or_default(),
            expr_fields: given.expr_fields.get(..1).unwrap_or_default(),
            ..given
        })?;
        let (descending, nulls_first) = (self.descending, self.nulls_first);
        Ok(Box::new(Values { found: HashMap::new(), bytes: 0, types, descending, nulls_first, inner }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values of one group by their keys.
#[derive(Debug)]
struct Values {
    found: HashMap<ScalarValue, ScalarValue>,
    bytes: usize,
    /// Of a value and of a key.
    types: Vec<DataType>,
    descending: bool,
    nulls_first: bool,
    inner: Box<dyn Accumulator>,
}

impl Values {
    fn add(&mut self, values: &ArrayRef, keys: &ArrayRef) -> Result<()> {
        for row in 0..values.len().min(keys.len()) {
            // A list of a column would hold on to all of the column.
            let key = ScalarValue::try_from_array(keys, row)?.compacted();
            if self.found.contains_key(&key) {
                continue;
            }
            let value = ScalarValue::try_from_array(values, row)?.compacted();
            self.bytes += key.size() + value.size();
            self.found.insert(key, value);
        }
        Ok(())
    }

    fn in_order(&self) -> Result<ArrayRef> {
        let options = SortOptions { descending: self.descending, nulls_first: self.nulls_first };
        let keys = self.column(1, self.found.keys())?;
        // Keys of all types have an order there, also rows with NULLs in them.
        let field = SortField::new_with_options(keys.data_type().clone(), options);
        let keys = RowConverter::new(vec![field])?.convert_columns(&[keys])?;
        let mut found: Vec<_> = keys.iter().zip(self.found.values()).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        self.column(0, found.into_iter().map(|(_, value)| value))
    }

    fn column<'a>(&self, place: usize, values: impl Iterator<Item = &'a ScalarValue>) -> Result<ArrayRef> {
        let mut values = values.cloned().peekable();
        if values.peek().is_some() {
            return ScalarValue::iter_to_array(values);
        }
        let Some(of) = self.types.get(place) else { return internal_err!("a value and its key are taken") };
        Ok(new_empty_array(of))
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values, keys] = values else { return internal_err!("a value and its key are taken") };
        self.add(values, keys)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, keys] = states else { return internal_err!("values and their keys are taken") };
        for (values, keys) in values.as_list::<i32>().iter().zip(keys.as_list::<i32>().iter()) {
            if let (Some(values), Some(keys)) = (values, keys) {
                self.add(&values, &keys)?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.column(0, self.found.values())?;
        let keys = self.column(1, self.found.keys())?;
        let list = |column: ArrayRef| SingleRowListArrayBuilder::new(column).build_list_scalar();
        Ok(vec![list(values), list(keys)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.in_order()?;
        if !values.is_empty() {
            self.inner.update_batch(&[values])?;
        }
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes + self.inner.size()
    }
}
