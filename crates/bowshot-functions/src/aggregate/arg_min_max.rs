//! The value of one column where another one is greatest or least, and the N greatest, least or most frequent values.

use super::list_results::{gives_list, list};
use super::over_lists::{Call, collected_rows, without_nulls};
use super::value_counts::counted;
use crate::define::{Function, aggregate};
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, Int64Array, make_comparator};
use datafusion::arrow::compute::{SortOptions, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// Those with a state of their own.
pub(crate) const BEST: &[Function] = &[
    aggregate(
        "arg_max",
        "the first argument where the second is greatest; with a number behind them that many, as a list",
        || made("arg_max", Ordering::Greater),
    )
    .aliases(&["max_by", "argmax"]),
    aggregate(
        "arg_min",
        "the first argument where the second is least; with a number behind them that many, as a list",
        || made("arg_min", Ordering::Less),
    )
    .aliases(&["min_by", "argmin"]),
];

pub(crate) const FUNCTIONS: &[Function] = collected_rows! {
    "max_n": 1, takes_count, gives_list, greatest, false =>
        "the greatest values as a list, as many as the second argument says; `max(x, n)`";
    "min_n": 1, takes_count, gives_list, least, false =>
        "the least values as a list, as many as the second argument says; `min(x, n)`";
    "approx_top_k": 1, takes_count, gives_list, most_frequent, false =>
        "the most frequent values as a list, as many as the second argument says";
    "arg_max_n": 2, takes_pair_count, gives_list, greatest, false => "`arg_max(x, y, n)`";
    "arg_min_n": 2, takes_pair_count, gives_list, least, false => "`arg_min(x, y, n)`";
};

fn takes_count(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of, count] if count.is_integer() => Ok(vec![of.clone(), DataType::Int64]),
        _ => no_overload(name, given),
    }
}

fn takes_pair_count(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of, by, count] if count.is_integer() => Ok(vec![of.clone(), by.clone(), DataType::Int64]),
        _ => no_overload(name, given),
    }
}

fn greatest(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    several(call, columns, true)
}

fn least(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    several(call, columns, false)
}

/// How many values were asked for.
fn wanted(call: &Call) -> Result<usize> {
    match call.constant(0) {
        Some(ScalarValue::Int64(Some(count))) if *count > 0 => {
            Ok(usize::try_from(*count).unwrap_or(usize::MAX))
        }
        _ => exec_err!("the number of values of {} has to be a constant above 0", call.name),
    }
}

/// Of values that are as frequent, the first that came.
fn most_frequent(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let count = wanted(call)?;
    let known = without_nulls(columns)?;
    let Some(values) = known.first().filter(|values| !values.is_empty()) else { return call.none() };
    let mut counts = counted(values)?;
    counts.sort_by_key(|(_, times)| Reverse(*times));
    let places: Int64Array = counts.into_iter().take(count).map(|(first, _)| first as i64).collect();
    list(take(values, &places, None)?)
}

fn several(call: &Call, columns: &[ArrayRef], descending: bool) -> Result<ScalarValue> {
    let count = wanted(call)?;
    // The keys come last, and the values first, which may be the same.
    let known = without_nulls(columns)?;
    let known: Vec<ArrayRef> = known.into_iter().rev().collect();
    let known = without_nulls(&known)?;
    let (Some(keys), Some(values)) = (known.first(), known.last()) else {
        return internal_err!("no columns");
    };
    if keys.is_empty() {
        return call.none();
    }
    let options = SortOptions { descending, nulls_first: false };
    let order = sort_to_indices(keys, Some(options), Some(count))?;
    list(take(values, &order, None)?)
}

/// `arg_max` and `arg_min`. Rows where one of both is NULL do not count; of equal ones the first does.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Best {
    name: &'static str,
    wanted: Ordering,
    signature: Signature,
}

fn made(name: &'static str, wanted: Ordering) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Best { name, wanted, signature: Signature::any(2, Volatility::Immutable) }))
}

impl AggregateUDFImpl for Best {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        given.first().map_or_else(|| no_overload(self.name, given), |of| Ok(of.clone()))
    }

    fn state_fields(&self, given: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let fields = given.input_fields.iter().enumerate();
        let field = |index, of: &FieldRef| {
            Field::new(format!("{}[{index}]", given.name), of.data_type().clone(), true)
        };
        Ok(fields.map(|(index, of)| Arc::new(field(index, of))).collect())
    }

    fn accumulator(&self, given: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let [value, key] = given.expr_fields else {
            return internal_err!("{} takes two arguments", self.name);
        };
        Ok(Box::new(One {
            wanted: self.wanted,
            value: ScalarValue::try_from(value.data_type())?,
            key: ScalarValue::try_from(key.data_type())?,
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

#[derive(Debug)]
struct One {
    wanted: Ordering,
    value: ScalarValue,
    key: ScalarValue,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let known = without_nulls(values)?;
        let known: Vec<ArrayRef> = known.into_iter().rev().collect();
        let known = without_nulls(&known)?;
        let [keys, values] = known.as_slice() else { return internal_err!("two columns are wanted") };
        if keys.is_empty() {
            return Ok(());
        }
        let compare = make_comparator(keys, keys, SortOptions::default())?;
        let best =
            (1..keys.len()).fold(0, |best, row| if compare(row, best) == self.wanted { row } else { best });
        let key = ScalarValue::try_from_array(keys, best)?;
        if self.key.is_null() || key.partial_cmp(&self.key) == Some(self.wanted) {
            self.value = ScalarValue::try_from_array(values, best)?;
            self.value.compact();
            self.key = key;
            self.key.compact();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.key.clone()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() + self.key.size()
    }
}
