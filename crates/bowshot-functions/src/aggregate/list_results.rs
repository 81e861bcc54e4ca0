//! Aggregates whose result is a text, list, map or JSON of a group's values.

use super::over_lists::{Call, collected_rows, without_nulls};
use super::value_counts::counted;
use crate::define::Function;
use crate::json;
use crate::scalar_udf::{no_overload, text_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, MapArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{SortOptions, cast, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = collected_rows! {
    "string_agg" "group_concat" "listagg": 1, takes_texts, gives_text, joined, false =>
        "the values as one text, with a separator between them (a comma, if none is given)";
    "collect_set" "array_unique_agg": 1, takes_one, gives_list, different, false =>
        "the different values as a list";
    "collect_list": 1, takes_one, gives_list, known, false => "the values that are not NULL as a list";
    "histogram": 1, takes_one, gives_counts, histogram, false =>
        "a map of the different values and how often each is there";
    "map_agg": 2, takes_pair, gives_map, map, false =>
        "a map of keys and values; of several values for a key the first";
    "json_agg" "jsonb_agg": 1, takes_one, gives_json,
        |call, columns| json_array(call, columns, None), false =>
        "the values as a JSON array; NULL without rows";
    "json_group_array" "json_arrayagg": 1, takes_one, gives_json,
        |call, columns| json_array(call, columns, Some("[]")), false =>
        "the values as a JSON array; an empty one without rows";
    "json_object_agg" "jsonb_object_agg" "json_objectagg": 2, takes_pair, gives_json,
        |call, columns| json_object(call, columns, None), false =>
        "a JSON object of keys and values; NULL without rows";
    "json_group_object": 2, takes_pair, gives_json,
        |call, columns| json_object(call, columns, Some("{}")), false =>
        "a JSON object of keys and values; an empty one without rows";
};

pub(super) fn takes_one(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    if given.len() == 1 { Ok(given.to_vec()) } else { no_overload(name, given) }
}

fn takes_pair(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    if given.len() == 2 { Ok(given.to_vec()) } else { no_overload(name, given) }
}

/// Any value and a separator. The value becomes text at the end: DISTINCT and ORDER BY are about the value as it is.
fn takes_texts(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [value] if !value.is_nested() => Ok(vec![value.clone()]),
        [value, separator] if !value.is_nested() && (text_type(separator) || separator.is_null()) => {
            Ok(vec![value.clone(), DataType::Utf8])
        }
        _ => no_overload(name, given),
    }
}

fn gives_text(_: &[FieldRef]) -> Result<Field> {
    Ok(Field::new("", DataType::Utf8, true))
}

fn gives_json(_: &[FieldRef]) -> Result<Field> {
    Ok(json::json_field())
}

pub(super) fn gives_list(fields: &[FieldRef]) -> Result<Field> {
    let [field, ..] = fields else { return internal_err!("a list of nothing") };
    Ok(Field::new("", DataType::List(Arc::new(Field::new_list_field(field.data_type().clone(), true))), true))
}

fn map_of(key: &DataType, value: &DataType) -> Field {
    let entries = vec![Field::new("key", key.clone(), false), Field::new("value", value.clone(), true)];
    let entries = Field::new("entries", DataType::Struct(Fields::from(entries)), false);
    Field::new("", DataType::Map(Arc::new(entries), false), true)
}

fn gives_counts(fields: &[FieldRef]) -> Result<Field> {
    let [field, ..] = fields else { return internal_err!("a histogram of nothing") };
    Ok(map_of(field.data_type(), &DataType::Int64))
}

fn gives_map(fields: &[FieldRef]) -> Result<Field> {
    let [key, value] = fields else { return internal_err!("a map of other than pairs") };
    Ok(map_of(key.data_type(), value.data_type()))
}

fn joined(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let separator = match call.constant(0) {
        None => ",",
        Some(value) => value.try_as_str().flatten().unwrap_or_default(),
    };
    let texts = columns.first().map(|column| cast(column, &DataType::Utf8)).transpose()?;
    let mut out: Option<String> = None;
    for text in texts.iter().flat_map(|texts| texts.as_string::<i32>().iter().flatten()) {
        match &mut out {
            None => out = Some(text.to_owned()),
            Some(out) => {
                out.push_str(separator);
                out.push_str(text);
            }
        }
    }
    Ok(ScalarValue::Utf8(out))
}

pub(super) fn list(values: ArrayRef) -> Result<ScalarValue> {
    let element = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Ok(ScalarValue::List(Arc::new(ListArray::try_new(element, offsets, values, None)?)))
}

fn known(_: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    without_nulls(columns)?.into_iter().next().map_or_else(|| internal_err!("no values"), list)
}

fn different(_: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let known = without_nulls(columns)?;
    let Some(values) = known.first() else { return internal_err!("no values") };
    let first: Int64Array = counted(values)?.into_iter().map(|(first, _)| first as i64).collect();
    list(take(values, &first, None)?)
}

fn one_map(call: &Call, keys: ArrayRef, values: ArrayRef) -> Result<ScalarValue> {
    let DataType::Map(entries, sorted) = call.result.data_type() else { return internal_err!("no map") };
    let DataType::Struct(fields) = entries.data_type() else { return internal_err!("no entries") };
    let offsets = OffsetBuffer::from_lengths([keys.len()]);
    let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(ScalarValue::Map(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, None, *sorted)?)))
}

fn histogram(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let known = without_nulls(columns)?;
    let Some(values) = known.first().filter(|values| !values.is_empty()) else { return call.none() };
    let counts = counted(values)?;
    let first: Int64Array = counts.iter().map(|(first, _)| *first as i64).collect();
    let counts: Int64Array = counts.iter().map(|(_, count)| *count as i64).collect();
    let keys = take(values, &first, None)?;
    // DuckDB's histogram is in the order of its keys.
    let order = sort_to_indices(&keys, Some(SortOptions::default()), None)?;
    one_map(call, take(&keys, &order, None)?, take(&counts, &order, None)?)
}

fn map(call: &Call, columns: &[ArrayRef]) -> Result<ScalarValue> {
    let known = without_nulls(columns)?;
    let [keys, values] = known.as_slice() else { return internal_err!("no pairs") };
    if keys.is_empty() {
        return call.none();
    }
    let first: Int64Array = counted(keys)?.into_iter().map(|(first, _)| first as i64).collect();
    one_map(call, take(keys, &first, None)?, take(values, &first, None)?)
}

/// One text that `write` puts together from the values of each row, or `empty` without rows.
fn joined_rows(
    rows: usize,
    [open, close]: [char; 2],
    empty: Option<&str>,
    mut write: impl FnMut(usize, &mut String) -> Result<()>,
) -> Result<ScalarValue> {
    if rows == 0 {
        return Ok(ScalarValue::Utf8(empty.map(str::to_owned)));
    }
    let mut out = String::from(open);
    for row in 0..rows {
        out.push_str(if row > 0 { "," } else { "" });
        write(row, &mut out)?;
    }
    out.push(close);
    Ok(ScalarValue::Utf8(Some(out)))
}

fn json_array(call: &Call, columns: &[ArrayRef], empty: Option<&str>) -> Result<ScalarValue> {
    let ([values], [field, ..]) = (columns, call.fields.as_slice()) else {
        return internal_err!("no values");
    };
    joined_rows(values.len(), ['[', ']'], empty, |row, out| json::write(values, field, row, out))
}

fn json_object(call: &Call, columns: &[ArrayRef], empty: Option<&str>) -> Result<ScalarValue> {
    let ([keys, values], [_, field]) = (columns, call.fields.as_slice()) else {
        return internal_err!("no pairs");
    };
    joined_rows(keys.len(), ['{', '}'], empty, |row, out| {
        if keys.is_null(row) {
            return exec_err!("field name must not be null");
        }
        json::key(keys, row, out)?;
        out.push(':');
        json::write(values, field, row, out)
    })
}
