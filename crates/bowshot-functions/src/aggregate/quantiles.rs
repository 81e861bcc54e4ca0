//! Quantiles, the most frequent value, and other statistics over all values of a group.

use super::list_results::{gives_list, list, takes_one};
use super::over_lists::{Call, collected_rows, without_nulls};
use super::value_counts::counted;
use crate::define::Function;
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, new_empty_array};
use datafusion::arrow::compute::{SortOptions, cast, sort, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = collected_rows! {
    "quantile_disc" "quantile" "percentile_disc": 1, takes_any, gives_disc, disc, true =>
        "the value at a fraction of the order, or at each of a list of fractions";
    "quantile_cont": 1, takes_range, gives_disc, cont, true =>
        "the same, between two values where the fraction is";
    "median": 1, takes_median, gives_disc, median, false =>
        "the middle value, or what is between the two in the middle";
    "mode": 1, takes_one, gives_same, mode, true => "the most frequent value";
    "entropy": 1, takes_one, gives_float, entropy, false => "the entropy of the values in bits";
    "mad": 1, takes_number, gives_float, mad, false => "the median distance from the median";
};

fn takes_number(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of] if of.is_numeric() || of.is_null() => Ok(vec![DataType::Float64]),
        _ => no_overload(name, given),
    }
}

fn takes_median(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of] => ranged(of).map_or_else(|| no_overload(name, given), |of| Ok(vec![of])),
        _ => no_overload(name, given),
    }
}

fn fraction(of: &DataType) -> Option<DataType> {
    match of {
        of if of.is_numeric() => Some(DataType::Float64),
        DataType::List(element) if element.data_type().is_numeric() => {
            Some(DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true))))
        }
        _ => None,
    }
}

fn takes_any(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of, at] => fraction(at).map_or_else(|| no_overload(name, given), |at| Ok(vec![of.clone(), at])),
        _ => no_overload(name, given),
    }
}

/// The type that values have between which others are.
fn ranged(of: &DataType) -> Option<DataType> {
    match of {
        of if of.is_numeric() || of.is_null() => Some(DataType::Float64),
        DataType::Date32 | DataType::Date64 => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Timestamp(..) | DataType::Time64(_) | DataType::Duration(_) => Some(of.clone()),
        _ => None,
    }
}

fn takes_range(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [of, at] => match (ranged(of), fraction(at)) {
            (Some(of), Some(at)) => Ok(vec![of, at]),
            _ => no_overload(name, given),
        },
        _ => no_overload(name, given),
    }
}

fn gives_same(fields: &[FieldRef]) -> Result<Field> {
    let [field, ..] = fields else { return internal_err!("a value of nothing") };
    Ok(Field::new("", field.data_type().clone(), true))
}

pub(super) fn gives_float(_: &[FieldRef]) -> Result<Field> {
    Ok(Field::new("", DataType::Float64, true))
}

/// A value, or a list where fractions are one.
fn gives_disc(fields: &[FieldRef]) -> Result<Field> {
    match fields {
        [_, at] if matches!(at.data_type(), DataType::List(_)) => gives_list(fields),
        _ => gives_same(fields),
    }
}

fn fractions(call: &Call) -> Result<(Vec<f64>, bool)> {
    let (fractions, list) = match call.constant(0) {
        Some(ScalarValue::Float64(Some(fraction))) => (vec![*fraction], false),
        Some(ScalarValue::List(list)) if !list.is_empty() && list.is_valid(0) => {
            let values = list.value(0);
            (values.as_primitive::<Float64Type>().iter().flatten().collect(), true)
        }
        _ => return exec_err!("the fraction of {} has to be a number between 0 and 1", call.name),
    };
    if let Some(wrong) = fractions.iter().find(|fraction| !(0.0..=1.0).contains(*fraction)) {
        return exec_err!("percentile value {wrong} is not between 0 and 1");
    }
    Ok((fractions, list))
}

fn in_order(columns: &[ArrayRef], descending: bool) -> Result<ArrayRef> {
    let known = without_nulls(columns)?;
    let Some(values) = known.first() else { return internal_err!("no values") };
    Ok(sort(values, Some(SortOptions { descending, nulls_first: false }))?)
}

fn result(is_list: bool, values: ArrayRef) -> Result<ScalarValue> {
    if is_list { list(values) } else { ScalarValue::try_from_array(&values, 0) }
}

fn disc(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let (fractions, list) = fractions(call)?;
    let values = in_order(columns, call.descending)?;
    if values.is_empty() {
        return call.none();
    }
    let count = values.len();
    // The first value that at least this fraction of them is not behind.
    let place = |fraction: &f64| ((fraction * count as f64).ceil() as usize).clamp(1, count) - 1;
    let places: Int64Array = fractions.iter().map(|fraction| place(fraction) as i64).collect();
    result(list, take(&values, &places, None)?)
}

fn cont(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let (fractions, list) = fractions(call)?;
    between(call, columns, &fractions, list)
}

fn median(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    between(call, columns, &[0.5], false)
}

fn between(call: &Call, columns: &[ArrayRef], fractions: &[f64], list: bool) -> Result<ScalarValue> {
    let values = in_order(columns, call.descending)?;
    if values.is_empty() {
        return call.none();
    }
    let last = (values.len() - 1) as f64;
    let spot = |fraction: &f64| {
        let at = fraction * last;
        (at.floor() as usize, at.ceil() as usize, at - at.floor())
    };
    let values: ArrayRef = match values.as_primitive_opt::<Float64Type>() {
        Some(numbers) => Arc::new(Float64Array::from_iter_values(fractions.iter().map(|fraction| {
            let (low, high, part) = spot(fraction);
            let (low, high) = (numbers.value(low), numbers.value(high));
            // Where both are infinite their difference is no number.
            if low == high { low } else { low + (high - low) * part }
        }))),
        None => {
            let moments = cast(&values, &DataType::Int64)?;
            let moments = moments.as_primitive::<Int64Type>();
            let found = Int64Array::from_iter_values(fractions.iter().map(|fraction| {
                let (low, high, part) = spot(fraction);
                let (low, high) = (moments.value(low), moments.value(high));
                low + ((high as f64 - low as f64) * part).round() as i64
            }));
            cast(&found, values.data_type())?
        }
    };
    result(list, values)
}

fn mode(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let known = without_nulls(columns)?;
    let Some(values) = known.first().filter(|values| !values.is_empty()) else { return call.none() };
    // WITHIN GROUP takes the first of its order where several are as frequent; else the first that came.
    let values = if call.ordered { in_order(columns, call.descending)? } else { Arc::clone(values) };
    let mut best = (0, 0);
    for (place, count) in counted(&values)? {
        if count > best.1 {
            best = (place, count);
        }
    }
    ScalarValue::try_from_array(&values, best.0)
}

fn entropy(_: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let known = without_nulls(columns)?;
    let Some(values) = known.first() else { return internal_err!("no values") };
    let total = values.len() as f64;
    // DuckDB's entropy of nothing is 0. The values are added up from the least, so that their order does not count.
    let counts: Float64Array =
        counted(values)?.into_iter().map(|(_, count)| Some(count as f64 / total)).collect();
    let order = sort_to_indices(&counts, None, None)?;
    let sorted = take(&counts, &order, None)?;
    let sum: f64 =
        sorted.as_primitive::<Float64Type>().iter().flatten().map(|part| -part * part.log2()).sum();
    Ok(ScalarValue::Float64(Some(sum.max(0.0))))
}

fn mad(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let ScalarValue::Float64(Some(middle)) = median(call, columns)? else { return call.none() };
    let known = without_nulls(columns)?;
    let values = known.first().map_or_else(|| new_empty_array(&DataType::Float64), Arc::clone);
    let values =
        values.as_primitive_opt::<Float64Type>().ok_or_else(|| exec_datafusion_err!("mad takes numbers"))?;
    let distances =
        Float64Array::from_iter_values(values.iter().flatten().map(|value| (value - middle).abs()));
    median(call, &[Arc::new(distances)])
}
