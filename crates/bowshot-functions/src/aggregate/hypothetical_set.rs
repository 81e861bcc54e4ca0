//! Where a value would stand among those of a group: `rank(5) WITHIN GROUP (ORDER BY x)`.
//!
//! Their names begin with `hypothetical_`, since the windows' functions have the others; who plans a call with WITHIN GROUP
//! puts it in front.

use super::over_lists::{Call, collected_rows};
use super::quantiles::gives_float;
use super::value_counts::counted;
use crate::define::Function;
use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, make_comparator};
use datafusion::arrow::compute::{SortOptions, filter};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use std::cmp::Ordering;

pub(crate) const FUNCTIONS: &[Function] = collected_rows! {
    "hypothetical_rank": 1, takes, gives_int, rank, true =>
        "the rank that a value would have, with gaps; `rank(v) WITHIN GROUP (ORDER BY x)`";
    "hypothetical_dense_rank": 1, takes, gives_int, dense_rank, true => "the same without gaps";
    "hypothetical_percent_rank": 1, takes, gives_float, percent_rank, true =>
        "the rank from 0 to 1 that a value would have";
    "hypothetical_cume_dist": 1, takes, gives_float, cume_dist, true =>
        "the part of the values that would not be behind a value";
};

fn takes(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [one, other] => {
            comparison_coercion(one, other).map_or_else(|| no_overload(name, given), |of| Ok(vec![of; 2]))
        }
        _ => no_overload(name, given),
    }
}

fn gives_int(_: &[FieldRef]) -> Result<Field> {
    Ok(Field::new("", DataType::Int64, true))
}

/// The values in front of the one that is asked about, those equal to it, and all.
struct Around {
    before: ArrayRef,
    equal: usize,
    all: usize,
}

fn around(call: &Call, columns: &[ArrayRef]) -> Result<Around> {
    let (Some(values), Some(asked)) = (columns.first(), call.constant(0)) else {
        return internal_err!("{} takes one value", call.name);
    };
    let asked = asked.to_array()?;
    // NULLs are last, and first where the order descends, as in PostgreSQL.
    let options = SortOptions { descending: call.descending, nulls_first: call.descending };
    let compare = make_comparator(values, &asked, options)?;
    let orders: Vec<Ordering> = (0..values.len()).map(|row| compare(row, 0)).collect();
    let before = BooleanArray::from_iter(orders.iter().map(|order| Some(*order == Ordering::Less)));
    let equal = orders.iter().filter(|order| **order == Ordering::Equal).count();
    Ok(Around { before: filter(values, &before)?, equal, all: values.len() })
}

fn integer(value: usize) -> ScalarValue {
    ScalarValue::Int64(i64::try_from(value).ok())
}

fn rank(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    Ok(integer(around(call, columns)?.before.len() + 1))
}

fn dense_rank(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    Ok(integer(counted(&around(call, columns)?.before)?.len() + 1))
}

fn percent_rank(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let around = around(call, columns)?;
    let part = if around.all == 0 { 0.0 } else { around.before.len() as f64 / around.all as f64 };
    Ok(ScalarValue::Float64(Some(part)))
}

fn cume_dist(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let around = around(call, columns)?;
    let part = (around.before.len() + around.equal + 1) as f64 / (around.all + 1) as f64;
    Ok(ScalarValue::Float64(Some(part)))
}
