//! Functions on lists that DataFusion lacks.

use super::list_arguments::{
    arrays, bounded, chosen, element, elements, gives_first, gives_ints, list_of, lists, plain, takes_list,
    takes_list_int,
};
use crate::define::Function;
use crate::scalar_udf::{gives_int, gives_text, no_overload, scalar_functions, stock_types};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray, UInt64Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::kernels::length::length as byte_length;
use datafusion::arrow::compute::{SortOptions, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err, internal_datafusion_err};
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "length" "len": takes_length, gives_length, any_length =>
        "how many elements a list has, characters a text, or bytes a binary value";
    "list_sort" "array_sort" "sort_array": takes_sort, gives_first, |given| in_order(given, false) =>
        "the elements in their order: 'ASC' or 'DESC', then 'NULLS LAST' or 'NULLS FIRST'";
    "list_reverse_sort" "array_reverse_sort": takes_list, gives_first, |given| in_order(given, true) =>
        "the elements from the greatest to the least";
    "list_grade_up" "array_grade_up" "grade_up": takes_list, gives_ints, grade_up =>
        "the places of the elements in their order";
    "list_unique" "array_unique": takes_list, gives_int, unique => "how many different elements there are";
    "list_where" "array_where":
        |name, given| takes_list_of(name, given, |of| *of == DataType::Boolean, DataType::Boolean),
        gives_first, by_mask => "the elements that a list of booleans is true for";
    "list_select" "array_select":
        |name, given| takes_list_of(name, given, DataType::is_integer, DataType::Int64),
        gives_first, by_places => "the elements at a list of places";
    "trim_array": takes_list_int, gives_first, trimmed => "the list without so many elements at its end";
    "array_fill": takes_fill, gives_filled, filled =>
        "a list of one value, as long as a list of one number says";
    "array_lower": takes_dimension, gives_int, |given| index(given, true) =>
        "the first index of a list: 1, or NULL for an empty one";
    "array_upper": takes_dimension, gives_int, |given| index(given, false) =>
        "the last index of a list, in the given dimension";
    "array_dims": takes_list, gives_text, bounds => "the bounds of all dimensions as a text: `[1:2][1:3]`";
    "list_subscripts" "generate_subscripts": takes_dimension, gives_ints, subscripts =>
        "the indexes of a list";
    "make_array" "list_value" "list_pack" "array_value" "array" "make_list": takes_elements, gives_elements,
        |given| make_array_udf().invoke_with_args(given.clone()) =>
        "the list of the arguments";
};

/// DataFusion finds no common type of NULL and bytes.
fn takes_elements(_: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match common_type(given) {
        Some(common) => Ok(vec![common.clone(); given.len()]),
        None => make_array_udf().coerce_types(given),
    }
}

/// The type of all that are not NULL, if it is one.
pub(crate) fn common_type(given: &[DataType]) -> Option<&DataType> {
    let mut types = given.iter().filter(|of| !of.is_null());
    let first = types.next()?;
    types.all(|of| of == first).then_some(first)
}

fn gives_elements(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let types: Vec<DataType> = given.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    Ok(Field::new("", make_array_udf().return_type(&types)?, true))
}

/// DataFusion's function for the length of anything but lists.
fn text_length() -> Arc<ScalarUDF> {
    datafusion::functions::unicode::character_length()
}

fn takes_length(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let [one] = given else { return no_overload(name, given) };
    if let Some(list) = element(one).and_then(|_| plain(one)) {
        return Ok(vec![list]);
    }
    if one.is_binary() {
        return Ok(vec![DataType::Binary]);
    }
    stock_types(name, &text_length(), given)
}

fn gives_length(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let types: Vec<DataType> = given.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    match types.as_slice() {
        [DataType::List(_)] => Ok(Field::new(name, DataType::Int64, true)),
        [DataType::Binary] => Ok(Field::new(name, DataType::Int32, true)),
        _ => Ok(Field::new(name, text_length().return_type(&types)?, true)),
    }
}

fn any_length(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if let Some(bytes) = given.args.first().filter(|value| value.data_type() == DataType::Binary) {
        return Ok(ColumnarValue::Array(byte_length(&bytes.to_array(given.number_rows)?)?));
    }
    if *given.return_field.data_type() != DataType::Int64 {
        return text_length().invoke_with_args(given.clone());
    }
    let arrays = arrays(given)?;
    match arrays.first().and_then(|array| array.as_list_opt::<i32>()) {
        Some(from) => ints(from, |row| Ok(i64::try_from(elements(from, row).len()).ok())),
        None => text_length().invoke_with_args(given.clone()),
    }
}

fn places(order: impl IntoIterator<Item = usize>) -> Option<Vec<Option<usize>>> {
    Some(order.into_iter().map(Some).collect())
}

/// The places of a row's elements in their order.
fn sorted(values: &ArrayRef, from: &std::ops::Range<usize>, options: SortOptions) -> Result<Vec<usize>> {
    let order = sort_to_indices(&values.slice(from.start, from.len()), Some(options), None)?;
    Ok(order.values().iter().map(|place| *place as usize).collect())
}

/// A list, how it is sorted, and where NULLs go.
fn takes_sort(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let Some(list) = given.first().and_then(plain).filter(|_| given.len() <= 3) else {
        return no_overload(name, given);
    };
    let rest = given
        .iter()
        .skip(1)
        .map(|of| if *of == DataType::Boolean { DataType::Boolean } else { DataType::Utf8 });
    Ok(std::iter::once(list).chain(rest).collect())
}

/// Whether a constant argument says the second of two words. PostgreSQL and Spark say it with a boolean.
fn says(given: &ScalarFunctionArgs, argument: usize, words: [&str; 2], truth: bool) -> Result<Option<bool>> {
    match given.args.get(argument) {
        None => Ok(None),
        Some(ColumnarValue::Scalar(ScalarValue::Boolean(Some(value)))) => Ok(Some(*value == truth)),
        Some(ColumnarValue::Scalar(word)) => {
            let word = word.try_as_str().flatten().unwrap_or_default().to_ascii_uppercase();
            match words.iter().position(|known| *known == word) {
                Some(place) => Ok(Some(place == 1)),
                None => exec_err!("the order of a list is `{}`, not `{word}`", words.join("` or `")),
            }
        }
        Some(ColumnarValue::Array(_)) => exec_err!("the order of a list has to be a constant"),
    }
}

fn in_order(given: &ScalarFunctionArgs, reversed: bool) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    let descending = says(given, 1, ["ASC", "DESC"], true)?.unwrap_or(reversed);
    let nulls_first = says(given, 2, ["NULLS LAST", "NULLS FIRST"], true)?.unwrap_or(false);
    chosen(from, |_, row| {
        Ok(places(
            sorted(from.values(), &row, SortOptions { descending, nulls_first })?
                .into_iter()
                .map(|place| row.start + place),
        ))
    })
}

fn int_lists(rows: Vec<Option<Vec<i64>>>) -> Result<ColumnarValue> {
    let rows = rows.into_iter().map(|row| row.map(|row| row.into_iter().map(Some)));
    Ok(ColumnarValue::Array(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))))
}

fn grade_up(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    let row = |row: usize| -> Result<Option<Vec<i64>>> {
        if from.is_null(row) {
            return Ok(None);
        }
        let order = sorted(
            from.values(),
            &elements(from, row),
            SortOptions { descending: false, nulls_first: false },
        )?;
        Ok(Some(order.into_iter().map(|place| place as i64 + 1).collect()))
    };
    int_lists((0..from.len()).map(row).collect::<Result<_>>()?)
}

/// A number for each row.
fn ints(from: &ListArray, with: impl Fn(usize) -> Result<Option<i64>>) -> Result<ColumnarValue> {
    let row = |row: usize| if from.is_null(row) { Ok(None) } else { with(row) };
    let ints: Int64Array = (0..from.len()).map(row).collect::<Result<_>>()?;
    Ok(ColumnarValue::Array(Arc::new(ints)))
}

fn unique(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    ints(from, |row| {
        let values = from.value(row);
        let known = values.len() - values.logical_null_count();
        let all = crate::aggregate::counted(&values)?.len();
        // All NULLs are one of the different values, which does not count.
        Ok(i64::try_from(if known < values.len() { all - 1 } else { all }).ok())
    })
}

fn by_mask(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let (from, masks) = (lists(&arrays, 0)?, lists(&arrays, 1)?);
    chosen(from, |row, range| {
        if masks.is_null(row) {
            return Ok(None);
        }
        let mask = masks.value(row);
        let mask = mask.as_boolean();
        Ok(places(range.zip(mask).filter(|(_, kept)| *kept == Some(true)).map(|(place, _)| place)))
    })
}

/// A list, and one of such elements, which become those of a type.
fn takes_list_of(
    name: &str,
    given: &[DataType],
    is_wanted: fn(&DataType) -> bool,
    becomes: DataType,
) -> Result<Vec<DataType>> {
    let list = match given {
        [list, other] if element(other).is_some_and(|of| is_wanted(of.data_type())) => plain(list),
        _ => None,
    };
    list.map_or_else(|| no_overload(name, given), |list| Ok(vec![list, list_of(becomes)]))
}

fn by_places(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let (from, wanted) = (lists(&arrays, 0)?, lists(&arrays, 1)?);
    chosen(from, |row, range| {
        if wanted.is_null(row) {
            return Ok(None);
        }
        let wanted = wanted.value(row);
        let place = |index: i64| {
            let index = usize::try_from(index).ok().filter(|index| *index >= 1)?;
            (index <= range.len()).then(|| range.start + index - 1)
        };
        Ok(Some(wanted.as_primitive::<Int64Type>().iter().map(|index| index.and_then(place)).collect()))
    })
}

fn trimmed(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    let counts = arrays.get(1).ok_or_else(|| internal_datafusion_err!("a number is missing"))?;
    let counts = counts.as_primitive::<Int64Type>();
    chosen(from, |row, range| {
        if counts.is_null(row) {
            return Ok(None);
        }
        match usize::try_from(counts.value(row)).ok().filter(|count| *count <= range.len()) {
            Some(count) => Ok(places(range.start..range.end - count)),
            None => exec_err!("number of elements to trim must be between 0 and {}", range.len()),
        }
    })
}

fn takes_fill(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [value, lengths] if element(lengths).is_some_and(|of| of.data_type().is_integer()) => {
            Ok(vec![value.clone(), list_of(DataType::Int64)])
        }
        _ => no_overload(name, given),
    }
}

fn gives_filled(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let value = given.arg_fields.first().ok_or_else(|| internal_datafusion_err!("a value is missing"))?;
    Ok(Field::new("", list_of(value.data_type().clone()), true))
}

fn filled(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let lengths = lists(&arrays, 1)?;
    let values = arrays.first().ok_or_else(|| internal_datafusion_err!("a value is missing"))?;
    let mut counts = Vec::with_capacity(lengths.len());
    for row in 0..lengths.len() {
        let wanted = if lengths.is_null(row) { None } else { Some(lengths.value(row)) };
        counts.push(match wanted.as_ref().map(|wanted| wanted.as_primitive::<Int64Type>().values()) {
            None => None,
            Some(one) => match one.as_ref() {
                [count] => Some(usize::try_from(*count).unwrap_or(0)),
                _ => {
                    return exec_err!(
                        "`array_fill` makes lists of one dimension: give one length, as in array_fill(0, [3])"
                    );
                }
            },
        });
    }
    let total = counts.iter().flatten().fold(0_usize, |sum, count| sum.saturating_add(*count));
    bounded("array_fill", total, values.get_array_memory_size() / values.len().max(1))?;
    let rows = counts
        .iter()
        .enumerate()
        .flat_map(|(row, count)| std::iter::repeat_n(row as u64, count.unwrap_or(0)));
    let values = take(values, &UInt64Array::from_iter_values(rows), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let valid: Vec<bool> = counts.iter().map(Option::is_some).collect();
    let offsets = OffsetBuffer::from_lengths(counts.into_iter().map(Option::unwrap_or_default));
    Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(
        field,
        offsets,
        values,
        Some(NullBuffer::from(valid)),
    )?)))
}

fn takes_dimension(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [list] => takes_list(name, std::slice::from_ref(list)),
        [_, _] => takes_list_int(name, given),
        _ => no_overload(name, given),
    }
}

/// How many elements a row has in a dimension, counted from 1, if it has that dimension.
fn length(from: &ListArray, row: usize, dimension: i64) -> Option<usize> {
    if from.is_null(row) || dimension < 1 {
        return None;
    }
    let range = elements(from, row);
    if dimension == 1 {
        return (!range.is_empty()).then(|| range.len());
    }
    let inner = from.values().as_list_opt::<i32>()?;
    if range.is_empty() { None } else { length(inner, range.start, dimension - 1) }
}

fn dimension(arrays: &[ArrayRef], row: usize) -> Option<i64> {
    match arrays.get(1).and_then(|array| array.as_primitive_opt::<Int64Type>()) {
        None => Some(1),
        Some(dimensions) => (!dimensions.is_null(row)).then(|| dimensions.value(row)),
    }
}

fn index(given: &ScalarFunctionArgs, first: bool) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    ints(from, |row| {
        let length = dimension(&arrays, row).and_then(|dimension| length(from, row, dimension));
        Ok(length.and_then(|length| if first { Some(1) } else { i64::try_from(length).ok() }))
    })
}

/// NULL for a list without elements, which has no dimensions in PostgreSQL.
fn bounds(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    let row = |row: usize| -> Option<String> {
        let lengths: Vec<usize> = (1..).map_while(|dimension| length(from, row, dimension)).collect();
        (!lengths.is_empty()).then(|| lengths.iter().map(|length| format!("[1:{length}]")).collect())
    };
    Ok(ColumnarValue::Array(Arc::new((0..from.len()).map(row).collect::<StringArray>())))
}

fn subscripts(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let from = lists(&arrays, 0)?;
    int_lists(
        (0..from.len())
            .map(|row| {
                let length = dimension(&arrays, row).and_then(|dimension| length(from, row, dimension))?;
                Some((1..=i64::try_from(length).ok()?).collect())
            })
            .collect(),
    )
}
