//! Functions that take a part out of a document.

use super::arguments::{
    Rows, Way, Ways, at, each_row, gives_json, gives_jsons, gives_part, gives_text, gives_truth, is_jsonb,
    json_field, list_of, name_list, null, step, takes_step, takes_texts, takes_two,
};
use super::path::{follow, follow_names, is_many, json_path, path};
use super::reader::{Reader, Step};
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, ListBuilder, StringBuilder};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_extract" "jsonb_extract" "json_query": takes_step, gives_parts, extract =>
        "the part of a document at a key, an index, a path or a pointer; a list for `$.*` and for a list of paths; operator `->`";
    "json_extract_string" "json_extract_text" "get_json_object"
        "get_json_string": takes_step, gives_part_texts,
        extract_text =>
        "the same as text without quotes; operator `->>`";
    "json_extract_path" "jsonb_extract_path": takes_texts, gives_part, extract_path =>
        "the part that keys and indexes lead to, one argument for each";
    "json_extract_path_text" "jsonb_extract_path_text": takes_texts, gives_text, extract_path_text =>
        "the same as text";
    "json_extract_names": takes_step, gives_part, extract_names =>
        "the part that an array of keys and indexes leads to; operator `#>`";
    "json_extract_names_text": takes_step, gives_text, extract_names_text =>
        "the same as text; operator `#>>`";
    "json_value": takes_two, gives_text, scalar_value =>
        "the scalar at a path as text; NULL where there is none";
    "json_exists" "json_path_exists" "jsonb_path_exists": takes_step, gives_truth, exists =>
        "whether a path leads to something";
    "jsonb_path_query_first" "json_path_query_first": takes_two, gives_json, first =>
        "the first part that a path leads to";
    "jsonb_path_query_array" "json_path_query_array": takes_two, gives_json, all_as_array =>
        "all parts that a path leads to, as a JSON array";
    "json_path_query": takes_two, gives_jsons, all_as_list => "all parts that a path leads to, as a list";
    "get_json_int": takes_two, gives_int, int_at => "the part at a path as BIGINT";
    "get_json_double": takes_two, gives_double, double_at => "the part at a path as DOUBLE";
    "get_json_bool": takes_two, gives_truth, truth_at => "the part at a path as BOOLEAN";
};

/// Whether the second argument may lead to several parts: only a constant path can, since the type hangs on it.
fn several(given: &ReturnFieldArgs<'_>) -> Result<bool> {
    let list = given.arg_fields.get(1).is_some_and(|field| matches!(field.data_type(), DataType::List(_)));
    let constant =
        given.scalar_arguments.get(1).copied().flatten().and_then(|value| value.try_as_str().flatten());
    Ok(list || constant.map(path).transpose()?.is_some_and(|steps| is_many(&steps)))
}

fn gives_parts(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(if several(given)? {
        Field::new("", list_of(json_field().with_name("item")), true)
    } else {
        return gives_part(name, given);
    })
}

fn gives_part_texts(_: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let of =
        if several(given)? { list_of(Field::new_list_field(DataType::Utf8, true)) } else { DataType::Utf8 };
    Ok(Field::new("", of, true))
}

fn gives_int(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Int64, true))
}

fn gives_double(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Float64, true))
}

fn extract(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    parts(given, |part| Some(part.to_owned()))
}

fn extract_text(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    parts(given, text_of)
}

/// A part as text without quotes; none for JSON's null. The part was read before, so that nothing is wrong in it.
fn text_of(part: &str) -> Option<String> {
    match part.as_bytes().first() {
        Some(b'"' | b'n') => Reader::tree(part).ok()?.text(),
        _ => Some(part.to_owned()),
    }
}

fn parts(given: &ScalarFunctionArgs, shown: fn(&str) -> Option<String>) -> Result<ColumnarValue> {
    if matches!(given.return_field.data_type(), DataType::List(_)) {
        return part_lists(given, shown);
    }
    let rows = Rows::new(given)?;
    let (documents, ways) = (rows.text(0)?, Ways::new(given, 1, step)?);
    each_row(rows.count, |row, out| {
        let Some(document) = at(documents, row) else { return null(out) };
        let part = ways.at(row, |way| one(document, way))?;
        out.append_option(part.and_then(|part| shown(&part)));
        Ok(())
    })
}

/// The one part that a way leads to: for a path with several the first.
fn one(document: &str, way: &Way) -> Result<Option<String>> {
    match way {
        Way::Steps(steps) if !is_many(steps) => Ok(Reader::part(document, steps)?.map(str::to_owned)),
        Way::Steps(steps) => Ok(follow(&Reader::tree(document)?, steps).first().map(|part| part.compact())),
        Way::Names(names) => Ok(follow_names(&Reader::tree(document)?, names).map(Json::compact)),
    }
}

fn part_lists(given: &ScalarFunctionArgs, shown: fn(&str) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let (documents, paths) = (rows.text(0)?, rows.array(1)?);
    let lists = paths.as_list_opt::<i32>();
    let texts = |row: usize| -> Result<Vec<String>> {
        match lists {
            Some(lists) => super::arguments::list_texts(lists, row),
            None => Ok(at(rows.text(1)?, row).map(str::to_owned).into_iter().collect()),
        }
    };
    lists_of_parts(given, rows.count, |row| {
        let Some(document) = at(documents, row).filter(|_| !paths.is_null(row)) else { return Ok(None) };
        let mut found = Vec::new();
        for text in texts(row)? {
            let way = Way::Steps(path(&text)?);
            match (&way, lists) {
                (Way::Steps(steps), None) => {
                    let tree = Reader::tree(document)?;
                    found.extend(follow(&tree, steps).into_iter().map(|part| shown(&part.compact())));
                }
                _ => found.push(one(document, &way)?.and_then(|part| shown(&part))),
            }
        }
        Ok(Some(found))
    })
}

/// Builds a list of texts for each row, of the type that the result has.
fn lists_of_parts(
    given: &ScalarFunctionArgs,
    count: usize,
    row: impl Fn(usize) -> Result<Option<Vec<Option<String>>>>,
) -> Result<ColumnarValue> {
    let mut out = ListBuilder::new(StringBuilder::new());
    if let DataType::List(element) = given.return_field.data_type() {
        out = out.with_field(Arc::clone(element));
    }
    for index in 0..count {
        match row(index)? {
            Some(found) => out.append_value(found),
            None => out.append_null(),
        }
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn extract_path(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    by_arguments(given, written(given))
}

/// How parts are written: those of JSONB with its spaces.
fn written(given: &ScalarFunctionArgs) -> fn(&Json<'_>) -> Option<String> {
    if is_jsonb(&given.return_field) {
        |part: &Json<'_>| Some(part.clone().normal_text())
    } else {
        |part: &Json<'_>| Some(part.compact())
    }
}

fn extract_path_text(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    by_arguments(given, |part| part.text())
}

fn by_arguments(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let names = (1..rows.width()).map(|argument| rows.text(argument)).collect::<Result<Vec<_>>>()?;
    each_row(rows.count, |row, out| {
        let names: Option<Vec<String>> = names.iter().map(|name| at(name, row).map(str::to_owned)).collect();
        let (Some(document), Some(names)) = (at(documents, row), names) else { return null(out) };
        let tree = Reader::tree(document)?;
        out.append_option(follow_names(&tree, &names).and_then(shown));
        Ok(())
    })
}

fn extract_names(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    by_names(given, written(given))
}

fn extract_names_text(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    by_names(given, |part| part.text())
}

fn by_names(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let (documents, ways) = (rows.text(0)?, Ways::new(given, 1, name_list)?);
    each_row(rows.count, |row, out| {
        let Some(document) = at(documents, row) else { return null(out) };
        let tree = Reader::tree(document)?;
        let part = ways.at(row, |way| match way {
            Way::Names(names) => Ok(follow_names(&tree, names).and_then(shown)),
            Way::Steps(_) => Ok(None),
        })?;
        out.append_option(part);
        Ok(())
    })
}

/// Calls `with` for the parts that a row's JSONPath leads to.
fn at_paths<T>(
    given: &ScalarFunctionArgs,
    mut each: impl FnMut(Option<T>),
    with: impl Fn(&[&Json<'_>]) -> Option<T>,
) -> Result<()> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let ways = Ways::new(given, 1, |array, row| match array.as_string_opt::<i32>() {
        Some(texts) if !texts.is_null(row) && texts.value(row).starts_with(['$', 'l', 's']) => {
            json_path(texts.value(row)).map(|steps| Some(Way::Steps(steps)))
        }
        _ => step(array, row),
    })?;
    for row in 0..rows.count {
        let Some(document) = at(documents, row) else {
            each(None);
            continue;
        };
        let tree = Reader::tree(document)?;
        each(ways.at(row, |way| match way {
            Way::Steps(steps) => Ok(with(&lax(&tree, steps))),
            Way::Names(_) => Ok(None),
        })?);
    }
    Ok(())
}

/// The parts of a path, `lax` as the standard has it: a key goes into each element of an array.
fn lax<'a, 'b>(tree: &'b Json<'a>, steps: &[Step]) -> Vec<&'b Json<'a>> {
    steps.iter().fold(vec![tree], |parts, step| {
        let spread = parts.into_iter().flat_map(|part| match (part, step) {
            (Json::Array(_), Step::Key(_)) => part.children(),
            _ => vec![part],
        });
        spread.flat_map(|part| follow(part, std::slice::from_ref(step))).collect()
    })
}

fn scalar_value(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut out = StringBuilder::new();
    let scalar = |parts: &[&Json<'_>]| match parts {
        [Json::Array(_) | Json::Object(_)] => None,
        [one] => one.text(),
        _ => None,
    };
    at_paths(given, |value| out.append_option(value), scalar)?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn exists(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut out = BooleanBuilder::new();
    at_paths(given, |value| out.append_option(value), |parts| Some(!parts.is_empty()))?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn first(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut out = StringBuilder::new();
    at_paths(given, |value| out.append_option(value), |parts| parts.first().map(|part| part.compact()))?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn all_as_array(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut out = StringBuilder::new();
    let all =
        |parts: &[&Json<'_>]| Some(Json::Array(parts.iter().map(|part| (*part).clone()).collect()).compact());
    at_paths(given, |value| out.append_option(value), all)?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn all_as_list(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut lists = Vec::new();
    at_paths(
        given,
        |value| lists.push(value),
        |parts| Some(parts.iter().map(|part| Some(part.compact())).collect::<Vec<_>>()),
    )?;
    lists_of_parts(given, lists.len(), |row| Ok(lists.get(row).cloned().flatten()))
}

fn int_at(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    typed(given, &DataType::Int64)
}

fn double_at(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    typed(given, &DataType::Float64)
}

fn truth_at(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    typed(given, &DataType::Boolean)
}

/// The part at a path in another type; NULL where it does not have that type.
fn typed(given: &ScalarFunctionArgs, of: &DataType) -> Result<ColumnarValue> {
    let texts: ArrayRef = parts(&as_text(given), text_of)?.to_array(given.number_rows)?;
    Ok(ColumnarValue::Array(cast_with_options(
        &texts,
        of,
        &CastOptions { safe: true, ..Default::default() },
    )?))
}

fn as_text(given: &ScalarFunctionArgs) -> ScalarFunctionArgs {
    let mut given = given.clone();
    given.return_field = Arc::new(Field::new("", DataType::Utf8, true));
    given
}

/// A constant text among the arguments of a function, for those whose type hangs on it.
pub(crate) fn constant_text<'a>(name: &str, given: &ReturnFieldArgs<'a>, argument: usize) -> Result<&'a str> {
    let value: Option<&ScalarValue> = given.scalar_arguments.get(argument).copied().flatten();
    let types: Vec<DataType> = given.arg_fields.iter().map(|field| field.data_type().clone()).collect();
    value.and_then(|value| value.try_as_str().flatten()).map_or_else(|| no_overload(name, &types), Ok)
}
