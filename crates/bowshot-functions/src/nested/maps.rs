//! Functions on maps that DataFusion lacks.

use super::list_arguments::{arrays, gives_first, list_of};
use crate::define::{Function, made};
use crate::scalar_udf::{gives_truth, no_overload, scalar_functions};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt64Array, make_comparator,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, interleave, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) const MADE: &[Function] = &[
    made("map_from_entries", "a map from a list of pairs", datafusion_spark::function::map::map_from_entries),
    made(
        "map_from_arrays",
        "a map from a list of keys and a list of values",
        datafusion_spark::function::map::map_from_arrays,
    ),
    made("str_to_map", "a map from a text such as `a:1,b:2`", datafusion_spark::function::map::str_to_map),
];

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "map_contains" "map_contains_key": |name, given| takes_one_of(name, given, 0), gives_truth,
        |given| contains(given, 0) => "whether a map has a key";
    "map_contains_value": |name, given| takes_one_of(name, given, 1), gives_truth,
        |given| contains(given, 1) => "whether a map has a value";
    "map_extract" "element_at": |name, given| takes_one_of(name, given, 0), gives_values, extract =>
        "the value of a key, as a list of one or none";
    "map_concat": takes_maps, gives_first, concat => "several maps as one; of several values for a key the last";
};

/// The fields of a map's keys and values.
fn entries(of: &DataType) -> Option<(&FieldRef, &FieldRef)> {
    match of {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.first().zip(fields.get(1)),
            _ => None,
        },
        _ => None,
    }
}

/// A map, and what may be one of its keys (0) or values (1).
fn takes_one_of(name: &str, given: &[DataType], which: usize) -> Result<Vec<DataType>> {
    let [map, wanted] = given else { return no_overload(name, given) };
    let Some((keys, values)) = entries(map) else { return no_overload(name, given) };
    let of = if which == 0 { keys.data_type() } else { values.data_type() };
    // The wanted one is brought to the map's type: the map is not copied for it.
    match comparison_coercion(wanted, of) {
        Some(_) => Ok(vec![map.clone(), of.clone()]),
        None => no_overload(name, given),
    }
}

fn range(map: &MapArray, row: usize) -> std::ops::Range<usize> {
    let offset =
        |row: usize| map.value_offsets().get(row).map_or(0, |offset| usize::try_from(*offset).unwrap_or(0));
    offset(row)..offset(row + 1)
}

fn contains(given: &ScalarFunctionArgs, which: usize) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let [maps, wanted] = arrays.as_slice() else { return internal_err!("a map and a key are wanted") };
    let maps = maps.as_map();
    let inside: &ArrayRef = if which == 0 { maps.keys() } else { maps.values() };
    let compare = make_comparator(inside, wanted, SortOptions::default())?;
    let has = |row: usize| {
        let known = !maps.is_null(row) && !wanted.is_null(row);
        known.then(|| range(maps, row).any(|place| compare(place, row) == Ordering::Equal))
    };
    let has: BooleanArray = (0..maps.len()).map(has).collect();
    Ok(ColumnarValue::Array(Arc::new(has)))
}

fn gives_values(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    match given.arg_fields.first().and_then(|map| entries(map.data_type())) {
        Some((_, values)) => Ok(Field::new(name, list_of(values.data_type().clone()), true)),
        None => no_overload(name, &[]),
    }
}

fn extract(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let [maps, wanted] = arrays.as_slice() else { return internal_err!("a map and a key are wanted") };
    let maps = maps.as_map();
    let compare = make_comparator(maps.keys(), wanted, SortOptions::default())?;
    let found = (0..maps.len()).map(|row| {
        let known = !maps.is_null(row) && !wanted.is_null(row);
        if known { range(maps, row).find(|place| compare(*place, row) == Ordering::Equal) } else { None }
    });
    let found: Vec<Option<usize>> = found.collect();
    let places = UInt64Array::from_iter_values(found.iter().flatten().map(|place| *place as u64));
    let values = take(maps.values(), &places, None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(found.iter().map(|place| usize::from(place.is_some())));
    Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(field, offsets, values, maps.nulls().cloned())?)))
}

fn takes_maps(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given.iter().find(|of| entries(of).is_some()) {
        Some(map) if given.iter().all(|of| of.is_null() || entries(of).is_some()) => {
            Ok(vec![map.clone(); given.len()])
        }
        _ => no_overload(name, given),
    }
}

fn concat(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arrays = arrays(given)?;
    let maps: Vec<&MapArray> = arrays.iter().filter_map(|array| array.as_map_opt()).collect();
    let Some(first) = maps.first() else { return internal_err!("no maps") };
    let converter = RowConverter::new(vec![SortField::new(first.keys().data_type().clone())])?;
    let keys = maps.iter().map(|map| Ok(converter.convert_columns(&[Arc::clone(map.keys())])?));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let (mut places, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..first.len() {
        let before = places.len();
        let mut seen: HashMap<&[u8], usize> = HashMap::new();
        for (source, (map, keys)) in
            maps.iter().zip(&keys).enumerate().filter(|(_, (map, _))| map.is_valid(row))
        {
            for place in range(map, row) {
                let index = *seen.entry(keys.row(place).data()).or_insert(places.len());
                match places.get_mut(index) {
                    Some(known) => *known = (source, place),
                    None => places.push((source, place)),
                }
            }
        }
        lengths.push(places.len() - before);
        valid.push(maps.iter().any(|map| map.is_valid(row)));
    }
    let joined = |columns: Vec<&dyn Array>| interleave(&columns, &places);
    let columns = vec![
        joined(maps.iter().map(|map| map.keys().as_ref()).collect())?,
        joined(maps.iter().map(|map| map.values().as_ref()).collect())?,
    ];
    let DataType::Map(field, sorted) = first.data_type() else { return internal_err!("no map") };
    let DataType::Struct(fields) = field.data_type() else { return internal_err!("no entries") };
    let pairs = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let map = MapArray::try_new(Arc::clone(field), offsets, pairs, Some(NullBuffer::from(valid)), *sorted)?;
    Ok(ColumnarValue::Array(Arc::new(map)))
}
