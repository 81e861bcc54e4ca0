//! Distances and similarities of vectors.

use super::list_arguments::{arrays, element, elements, list_of, lists};
use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions};
use datafusion::arrow::array::{Array, AsArray, Float64Array, ListArray};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "list_cosine_similarity" "array_cosine_similarity" "cosine_similarity": takes, gives,
        |given| pairs(given, cosine) =>
        "the cosine of the angle between two vectors";
    "list_negative_inner_product" "array_negative_inner_product" "list_negative_dot_product"
        "array_negative_dot_product": takes, gives,
        |given| pairs(given, |one, other| Some(-inner(one, other))) =>
        "the inner product of two vectors, negated";
};

fn takes(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let vector = |of: &DataType| of.is_null() || element(of).is_some_and(|of| of.data_type().is_numeric());
    match given {
        [one, other] if vector(one) && vector(other) => Ok(vec![list_of(DataType::Float64); 2]),
        _ => no_overload(name, given),
    }
}

fn gives(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Float64, true))
}

fn inner(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn cosine(one: &[f64], other: &[f64]) -> Option<f64> {
    let lengths = (inner(one, one) * inner(other, other)).sqrt();
    Some((inner(one, other) / lengths).clamp(-1.0, 1.0))
}

/// The numbers of a row; none where it or one of them is NULL.
fn vector(lists: &ListArray, row: usize) -> Option<&[f64]> {
    let values = lists.values().as_primitive_opt::<Float64Type>()?;
    let range = elements(lists, row);
    let known = !lists.is_null(row) && range.clone().all(|place| values.is_valid(place));
    values.values().get(range).filter(|_| known)
}

fn pairs(given: &ScalarFunctionArgs, with: fn(&[f64], &[f64]) -> Option<f64>) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let (ones, others) = (lists(&arrays, 0)?, lists(&arrays, 1)?);
    let row = |row: usize| match (vector(ones, row), vector(others, row)) {
        (Some(one), Some(other)) if one.len() != other.len() => {
            exec_err!("vectors have to be of one length, not of {} and {}", one.len(), other.len())
        }
        (Some(one), Some(other)) => Ok(with(one, other)),
        _ => Ok(None),
    };
    let found: Float64Array = (0..ones.len()).map(row).collect::<Result<_>>()?;
    Ok(ColumnarValue::Array(Arc::new(found)))
}
