//! `value = ANY (list)` and `value = ALL (list)` in the three-valued logic of SQL.

use super::list_arguments::{arrays, element, elements, list_of, lists};
use crate::aggregate::interval_length;
use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions, text_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal128Array, UInt64Array};
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::{Result, exec_datafusion_err, exec_err, internal_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "quantified_any": takes, gives, |given| quantified(given, true) =>
        "`value op ANY (list)`, where the first argument is the operator";
    "quantified_all": takes, gives, |given| quantified(given, false) =>
        "`value op ALL (list)`, where the first argument is the operator";
};

fn takes(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let [operator, value, list] = given else { return no_overload(name, given) };
    let inside = match list {
        DataType::Null => &DataType::Null,
        list => element(list).map_or_else(|| no_overload(name, given), |element| Ok(element.data_type()))?,
    };
    let of = match (value, inside) {
        // A text beside UUIDs is one.
        (uuid @ DataType::FixedSizeBinary(16), text) if text_type(text) => Some(uuid.clone()),
        (text, uuid @ DataType::FixedSizeBinary(16)) if text_type(text) => Some(uuid.clone()),
        _ => comparison_coercion(value, inside),
    };
    match of {
        Some(of) if text_type(operator) => Ok(vec![DataType::Utf8, of.clone(), list_of(of)]),
        _ => no_overload(name, given),
    }
}

fn gives(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Boolean, true))
}

type Compare =
    fn(&dyn Datum, &dyn Datum) -> std::result::Result<BooleanArray, datafusion::arrow::error::ArrowError>;

fn comparison(operator: &str) -> Result<Compare> {
    Ok(match operator {
        "=" | "==" => cmp::eq,
        "<>" | "!=" => cmp::neq,
        "<" => cmp::lt,
        "<=" => cmp::lt_eq,
        ">" => cmp::gt,
        ">=" => cmp::gt_eq,
        other => {
            return exec_err!(
                "operator `{other}` is not supported with ANY and ALL; use =, <>, <, <=, > or >="
            );
        }
    })
}

fn lengths(intervals: &ArrayRef) -> Result<ArrayRef> {
    let intervals = cast(intervals, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let lengths: Decimal128Array =
        intervals.as_primitive::<IntervalMonthDayNanoType>().unary(interval_length);
    Ok(Arc::new(lengths))
}

fn quantified(given: &ScalarFunctionArgs, any: bool) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let Some(ColumnarValue::Scalar(operator)) = given.args.first() else {
        return internal_err!("the operator of ANY and ALL is a constant");
    };
    let compare = comparison(operator.try_as_str().flatten().unwrap_or_default())?;
    let (Some(values), lists) = (arrays.get(1), lists(&arrays, 2)?) else {
        return internal_err!("a value is missing");
    };
    let rows = (0..lists.len()).flat_map(|row| std::iter::repeat_n(row as u64, elements(lists, row).len()));
    let repeated = take(values, &UInt64Array::from_iter_values(rows), None)?;
    let start = elements(lists, 0).start;
    let inside: ArrayRef = lists.values().slice(start, repeated.len());
    let (repeated, inside) = match inside.data_type() {
        DataType::Interval(_) => (lengths(&repeated)?, lengths(&inside)?),
        _ => (repeated, inside),
    };
    let compared = if inside.data_type().is_null() {
        BooleanArray::new_null(inside.len())
    } else {
        compare(&repeated, &inside).map_err(|_| {
            exec_datafusion_err!("values of type {} cannot be compared in a list", inside.data_type())
        })?
    };
    let answer = |row: usize| -> Option<bool> {
        if lists.is_null(row) {
            return None;
        }
        let mut unknown = false;
        for place in elements(lists, row) {
            match compared.is_valid(place - start).then(|| compared.value(place - start)) {
                Some(holds) if holds == any => return Some(any),
                Some(_) => {}
                None => unknown = true,
            }
        }
        (!unknown).then_some(!any)
    };
    let answers: BooleanArray = (0..lists.len()).map(answer).collect();
    Ok(ColumnarValue::Array(Arc::new(answers)))
}
