//! DataFusion's list constructors with a bound on the length, and with NULL elements.

use super::list_arguments::{bounded, with_nulls};
use super::timestamp_series;
use crate::define::{Function, made};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit,
};
use datafusion::common::{Result, exec_err};
use datafusion::functions_nested::{range, repeat, resize, set_ops};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    made("range", "the list of numbers, dates or moments from the first up to the last, without it", || {
        timestamp_series::series(guarded(range::range_udf(), series), false)
    }),
    made("generate_series", "the list of numbers, dates or moments from the first to the last", || {
        timestamp_series::series(guarded(range::gen_series_udf(), series), true)
    })
    .aliases(&["list_series", "sequence"]),
    made("array_repeat", "a list with a value so many times", || {
        guarded(repeat::array_repeat_udf(), counted)
    }),
    made("array_resize", "the list cut or filled up to a length", || {
        guarded(resize::array_resize_udf(), resized)
    }),
    // No longer than both lists.
    made("array_union", "the different elements of both lists", || {
        guarded(set_ops::array_union_udf(), |_| Ok((0, 0)))
    }),
];

/// How many elements a call makes, and how many bytes each takes.
type Size = fn(&[ArrayRef]) -> Result<(usize, usize)>;

#[derive(Debug)]
struct Guarded {
    of: Arc<ScalarUDF>,
    size: Size,
    signature: Signature,
}

fn guarded(of: Arc<ScalarUDF>, size: Size) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Guarded { of, size, signature }))
}

crate::define::same_by!(Guarded, of);

impl ScalarUDFImpl for Guarded {
    crate::stock_methods!(of: name, aliases, return_type, return_field_from_args);

    bowshot_api::getters!(signature: &Signature);

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let given = if self.of.name() == "array_resize" { resized_types(given) } else { given.to_vec() };
        let fields: Vec<FieldRef> = given.into_iter().map(|of| Arc::new(Field::new("", of, true))).collect();
        let fields = fields_with_udf(&fields, self.of.as_ref())?;
        Ok(fields.iter().map(|field| with_nulls(field.data_type())).collect())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (elements, bytes) = (self.size)(&super::list_arguments::arrays(&given)?)?;
        bounded(self.of.name(), elements, bytes)?;
        self.of.invoke_with_args(given)
    }
}

/// The second argument says how often the first one is there, or how long it becomes.
fn counted(arrays: &[ArrayRef]) -> Result<(usize, usize)> {
    let (Some(values), Some(counts)) = (arrays.first(), arrays.get(1)) else { return Ok((0, 0)) };
    let counts = cast(counts, &DataType::Int64)?;
    let total = counts
        .as_primitive::<Int64Type>()
        .iter()
        .flatten()
        .fold(0_usize, |sum, count| sum.saturating_add(usize::try_from(count).unwrap_or(0)));
    Ok((total, values.get_array_memory_size() / values.len().max(1)))
}

/// DataFusion knows neither a NULL among bytes nor one in place of the list.
fn resized_types(given: &[DataType]) -> Vec<DataType> {
    match given {
        [DataType::Null, rest @ ..] => {
            let item = rest.get(1).filter(|of| **of != DataType::Null).unwrap_or(&DataType::Int64);
            std::iter::once(DataType::new_list(item.clone(), true)).chain(rest.iter().cloned()).collect()
        }
        [list @ DataType::List(item), length, DataType::Null] => {
            vec![list.clone(), length.clone(), item.data_type().clone()]
        }
        _ => given.to_vec(),
    }
}

/// The same as [`counted`] of lengths, of which none is negative.
fn resized(arrays: &[ArrayRef]) -> Result<(usize, usize)> {
    if let [lists, lengths, ..] = arrays {
        let lengths = cast(lengths, &DataType::Int64)?;
        let mut lengths = lengths.as_primitive::<Int64Type>().iter().enumerate();
        if lengths.any(|(row, length)| lists.is_valid(row) && length.is_some_and(|length| length < 0)) {
            return exec_err!("the length of a list cannot be negative");
        }
    }
    counted(arrays)
}

const NANOS_A_DAY: i128 = 86_400_000_000_000;

/// A bound of a series as a number: nanoseconds for dates and moments.
fn bound(array: &ArrayRef) -> Result<(Vec<Option<i64>>, i128)> {
    let unit = match array.data_type() {
        DataType::Date32 => NANOS_A_DAY,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let numbers = cast(
        array,
        if *array.data_type() == DataType::Date32 { &DataType::Int32 } else { &DataType::Int64 },
    )?;
    let numbers = cast(&numbers, &DataType::Int64)?;
    Ok((numbers.as_primitive::<Int64Type>().iter().collect(), unit))
}

fn series(arrays: &[ArrayRef]) -> Result<(usize, usize)> {
    let (start, stop, step) = match arrays {
        [stop] => (None, stop, None),
        [start, stop] => (Some(start), stop, None),
        [start, stop, step, ..] => (Some(start), stop, Some(step)),
        [] => return Ok((0, 0)),
    };
    if stop.data_type().is_null() || start.is_some_and(|start| start.data_type().is_null()) {
        return Ok((0, 0));
    }
    let (stops, unit) = bound(stop)?;
    let starts = start.map(bound).transpose()?;
    let mut total: i128 = 0;
    for (row, stop) in stops.iter().enumerate() {
        let start = starts.as_ref().map_or(Some(Some(0)), |(starts, _)| starts.get(row).copied()).flatten();
        let (Some(start), Some(stop)) = (start, *stop) else { continue };
        let first = i128::from(start) * starts.as_ref().map_or(1, |(_, unit)| *unit);
        let step = step.map_or(Ok(Some(unit)), |step| width(step, row))?.unwrap_or(0);
        if step != 0 {
            total += ((i128::from(stop) * unit - first) / step).max(0) + 1;
        }
    }
    Ok((usize::try_from(total).unwrap_or(usize::MAX), 8))
}

/// How far a step goes; the shortest month counts.
fn width(steps: &ArrayRef, row: usize) -> Result<Option<i128>> {
    if steps.is_null(row) {
        return Ok(None);
    }
    if let Some(steps) = steps.as_primitive_opt::<IntervalMonthDayNanoType>() {
        let step = steps.value(row);
        let days = i128::from(step.months) * 28 + i128::from(step.days);
        return Ok(Some(days * NANOS_A_DAY + i128::from(step.nanoseconds)));
    }
    let step = cast(&steps.slice(row, 1), &DataType::Int64)?;
    Ok(Some(i128::from(step.as_primitive::<Int64Type>().value(0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested::list_arguments::list_of;

    #[test]
    fn elements_may_become_null() {
        let never_null = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, false)));
        let types = guarded(resize::array_resize_udf(), counted)
            .coerce_types(&[never_null.clone(), DataType::Int64])
            .unwrap();
        assert_eq!(types, [list_of(DataType::Int64), DataType::Int64]);
        let types = guarded(set_ops::array_union_udf(), |_| Ok((0, 0)))
            .coerce_types(&[never_null, list_of(DataType::Int64)])
            .unwrap();
        assert_eq!(types, [list_of(DataType::Int64), list_of(DataType::Int64)]);
    }
}
