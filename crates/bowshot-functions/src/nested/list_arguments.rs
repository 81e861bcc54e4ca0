//! Arguments of the list functions, and lists of chosen elements.

use crate::scalar_udf::no_overload;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, internal_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::ops::Range;
use std::sync::Arc;

/// How many elements the lists of a batch may have together, and how many bytes.
pub(crate) const MOST_ELEMENTS: usize = 64 * 1024 * 1024;
pub(crate) const MOST_BYTES: usize = 1024 * 1024 * 1024;

/// Refuses lists of more elements than memory is meant for.
pub(crate) fn bounded(name: &str, elements: usize, bytes_each: usize) -> Result<()> {
    if elements > MOST_ELEMENTS || elements.saturating_mul(bytes_each) > MOST_BYTES {
        return exec_err!(
            "the lists that `{name}` makes are too long: {elements} elements in a batch of rows, of {MOST_ELEMENTS} and \
             {MOST_BYTES} bytes at most; use `FROM generate_series(…)`, or shorter lists"
        );
    }
    Ok(())
}

pub(crate) fn element(of: &DataType) -> Option<&FieldRef> {
    match of {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            Some(element)
        }
        _ => None,
    }
}

/// The plain list type of any list, whose elements may be NULL.
pub(crate) fn plain(of: &DataType) -> Option<DataType> {
    match of {
        // An empty list, of no type.
        DataType::Null => Some(list_of(DataType::Null)),
        of => element(of).map(|element| DataType::List(nullable(element))),
    }
}

/// A list whose elements may be NULL, which those of files and clients may not always be: the lists that functions make of it
/// can have some.
pub(crate) fn with_nulls(of: &DataType) -> DataType {
    match of {
        DataType::List(element) => DataType::List(nullable(element)),
        DataType::LargeList(element) => DataType::LargeList(nullable(element)),
        DataType::FixedSizeList(element, size) => DataType::FixedSizeList(nullable(element), *size),
        other => other.clone(),
    }
}

fn nullable(element: &FieldRef) -> FieldRef {
    Arc::new(element.as_ref().clone().with_nullable(true))
}

pub(crate) fn list_of(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

pub(crate) fn takes_list(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [list] => plain(list).map_or_else(|| no_overload(name, given), |list| Ok(vec![list])),
        _ => no_overload(name, given),
    }
}

pub(crate) fn takes_list_int(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [list, count] if count.is_integer() || count.is_null() => {
            plain(list).map_or_else(|| no_overload(name, given), |list| Ok(vec![list, DataType::Int64]))
        }
        _ => no_overload(name, given),
    }
}

pub(crate) fn gives_first(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let first = given.arg_fields.first().ok_or_else(|| internal_datafusion_err!("a list is missing"))?;
    Ok(Field::new("", first.data_type().clone(), true))
}

pub(crate) fn gives_ints(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", list_of(DataType::Int64), true))
}

pub(crate) fn arrays(given: &ScalarFunctionArgs) -> Result<Vec<ArrayRef>> {
    given.args.iter().map(|value| value.to_array(given.number_rows)).collect()
}

pub(crate) fn lists(arrays: &[ArrayRef], argument: usize) -> Result<&ListArray> {
    let lists = arrays.get(argument).and_then(|array| array.as_list_opt::<i32>());
    lists.ok_or_else(|| internal_datafusion_err!("argument {argument} is not a list"))
}

pub(crate) fn elements(lists: &ListArray, row: usize) -> Range<usize> {
    let offset =
        |row: usize| lists.value_offsets().get(row).map_or(0, |offset| usize::try_from(*offset).unwrap_or(0));
    offset(row)..offset(row + 1)
}

/// Lists made of elements of other lists: `choose` gives the places in their values for each row, or none for NULL.
pub(crate) fn chosen(
    from: &ListArray,
    mut choose: impl FnMut(usize, Range<usize>) -> Result<Option<Vec<Option<usize>>>>,
) -> Result<ColumnarValue> {
    let mut places: Vec<Option<u64>> = Vec::with_capacity(from.values().len());
    let mut lengths = Vec::with_capacity(from.len());
    let mut valid = Vec::with_capacity(from.len());
    for row in 0..from.len() {
        let chosen = if from.is_null(row) { None } else { choose(row, elements(from, row))? };
        valid.push(chosen.is_some());
        let chosen = chosen.unwrap_or_default();
        lengths.push(chosen.len());
        places.extend(chosen.into_iter().map(|place| place.map(|place| place as u64)));
    }
    let values = take(from.values(), &UInt64Array::from(places), None)?;
    let field = match from.data_type() {
        DataType::List(field) => Arc::new(field.as_ref().clone().with_nullable(true)),
        _ => Arc::new(Field::new_list_field(values.data_type().clone(), true)),
    };
    let lists = ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        values,
        Some(NullBuffer::from(valid)),
    )?;
    Ok(ColumnarValue::Array(Arc::new(lists)))
}
