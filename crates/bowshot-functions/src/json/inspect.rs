//! Functions that describe a document: type, length, contained values.

use super::arguments::{
    Rows, Way, Ways, at, gives_jsons, gives_text, gives_texts, gives_truth, list_of, step, takes_one,
    takes_one_or_path, takes_two,
};
use super::path::follow_names;
use super::reader::Reader;
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions, text_type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Int64Builder, ListBuilder, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_type": takes_one_or_path, gives_text, sql_kind =>
        "the type of a document, or of its part at a path: OBJECT, ARRAY, VARCHAR, UBIGINT …";
    "json_typeof" "jsonb_typeof": takes_one_or_path, gives_text, kind =>
        "the type of a document: object, array, string, number, boolean, null";
    "json_valid" "is_json": takes_one, gives_truth, valid => "whether text is JSON";
    "json_array_length" "jsonb_array_length": takes_one_or_path, gives_count, array_length =>
        "how many elements an array has; at a path, 0 for what is no array";
    "json_length": takes_one_or_path, gives_count, length =>
        "how many elements or members there are; 1 for a scalar";
    "json_depth": takes_one, gives_count, depth => "how deep arrays and objects are nested; 1 for a scalar";
    "json_keys": takes_one_or_path, gives_texts, keys => "the keys of an object as a list";
    "json_elements": takes_one, gives_jsons, elements => "the elements of an array as a list";
    "json_elements_text": takes_one, gives_texts, element_texts =>
        "the elements of an array as a list of text";
    "json_contains": takes_two, gives_truth, contains_anywhere =>
        "whether a document has another one anywhere in it";
    "json_contained" "jsonb_contains": takes_two, gives_truth, contains =>
        "whether the first document contains the second, level by level; operators `@>` and `<@`";
    "json_has_key" "jsonb_exists": takes_two, gives_truth, has_key =>
        "whether a text is a key of an object or an element of an array; operator `?`";
    "json_has_any_key" "jsonb_exists_any": takes_keys, gives_truth, has_any =>
        "whether one of the texts is such a key; operator `?|`";
    "json_has_all_keys" "jsonb_exists_all": takes_keys, gives_truth, has_all =>
        "whether all texts are such keys; operator `?&`";
};

fn gives_count(_: &str, _: &ReturnFieldArgs<'_>) -> Result<Field> {
    Ok(Field::new("", DataType::Int64, true))
}

fn takes_keys(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let texts = list_of(Field::new_list_field(DataType::Utf8, true));
    match given {
        [document, DataType::List(_)] if text_type(document) || document.is_null() => {
            Ok(vec![DataType::Utf8, texts])
        }
        [document, names] if text_type(document) && text_type(names) => Ok(vec![DataType::Utf8; 2]),
        _ => no_overload(name, given),
    }
}

/// Calls `each` with what `with` says of a row's document, or of the part of it that a second argument leads to.
fn of_parts<T>(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<T>>,
    mut each: impl FnMut(Option<T>),
) -> Result<()> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let ways = (rows.width() > 1).then(|| Ways::new(given, 1, step)).transpose()?;
    for row in 0..rows.count {
        let Some(document) = at(documents, row) else {
            each(None);
            continue;
        };
        let tree = Reader::tree(document)?;
        let said = match &ways {
            None => with(&tree)?,
            Some(ways) => ways.at(row, |way| match way {
                Way::Steps(steps) => {
                    super::path::follow(&tree, steps).first().map_or(Ok(None), |part| with(part))
                }
                Way::Names(names) => follow_names(&tree, names).map_or(Ok(None), &with),
            })?,
        };
        each(said);
    }
    Ok(())
}

fn texts(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<&'static str>>,
) -> Result<ColumnarValue> {
    let mut out = StringBuilder::new();
    of_parts(given, with, |value| out.append_option(value))?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn counts(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<i64>>,
) -> Result<ColumnarValue> {
    let mut out = Int64Builder::new();
    of_parts(given, with, |value| out.append_option(value))?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

pub(super) fn lists(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<Vec<Option<String>>>>,
) -> Result<ColumnarValue> {
    let mut out = ListBuilder::new(StringBuilder::new());
    if let DataType::List(element) = given.return_field.data_type() {
        out = out.with_field(Arc::clone(element));
    }
    of_parts(given, with, |value| match value {
        Some(texts) => out.append_value(texts),
        None => out.append_null(),
    })?;
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn sql_kind(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    texts(given, |part| Ok(Some(part.sql_kind())))
}

fn kind(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    texts(given, |part| Ok(Some(part.kind())))
}

fn valid(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let valid = (0..rows.count).map(|row| at(documents, row).map(|document| Reader::check(document).is_ok()));
    Ok(ColumnarValue::Array(Arc::new(valid.collect::<BooleanArray>())))
}

fn count(length: usize) -> Result<Option<i64>> {
    Ok(i64::try_from(length).ok())
}

fn array_length(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let at_path = given.args.len() > 1;
    counts(given, |part| match part {
        Json::Array(elements) => count(elements.len()),
        _ if at_path => Ok(Some(0)),
        _ => exec_err!("cannot get array length of a{}", non_array(part)),
    })
}

fn non_array(part: &Json<'_>) -> &'static str {
    if matches!(part, Json::Object(_)) { " non-array" } else { " scalar" }
}

fn length(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    counts(given, |part| match part {
        Json::Array(elements) => count(elements.len()),
        Json::Object(members) => count(members.len()),
        _ => Ok(Some(1)),
    })
}

fn depth(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    fn below(part: &Json<'_>) -> i64 {
        1 + part.children().into_iter().map(below).max().unwrap_or(0)
    }
    counts(given, |part| Ok(Some(below(part))))
}

fn keys(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    lists(given, |part| {
        Ok(match part {
            Json::Object(members) => {
                let mut seen = HashSet::with_capacity(members.len());
                let new = members.iter().filter(|(key, _)| seen.insert(key.as_ref()));
                Some(new.map(|(key, _)| Some(key.clone().into_owned())).collect())
            }
            _ => Some(Vec::new()),
        })
    })
}

fn elements(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    lists(given, |part| match part {
        Json::Array(elements) => Ok(Some(elements.iter().map(|one| Some(one.compact())).collect())),
        _ => exec_err!("cannot extract elements from a{}", non_array(part)),
    })
}

fn element_texts(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    lists(given, |part| match part {
        Json::Array(elements) => Ok(Some(elements.iter().map(Json::text).collect())),
        _ => exec_err!("cannot extract elements from a{}", non_array(part)),
    })
}

/// Compares the two documents of each row.
fn compare(given: &ScalarFunctionArgs, with: fn(&Json<'_>, &Json<'_>) -> bool) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let (ones, others) = (rows.text(0)?, rows.text(1)?);
    let mut out = BooleanBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        match (at(ones, row), at(others, row)) {
            (Some(one), Some(other)) => out.append_value(with(&Reader::tree(one)?, &Reader::tree(other)?)),
            _ => out.append_null(),
        }
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn contains(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compare(given, |one, other| one.contains(other))
}

fn contains_anywhere(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    fn anywhere(one: &Json<'_>, other: &Json<'_>) -> bool {
        one.contains(other) || one.children().into_iter().any(|child| anywhere(child, other))
    }
    compare(given, anywhere)
}

fn is_key(document: &Json<'_>, key: &str) -> bool {
    match document {
        Json::Object(_) => document.member(key).is_some(),
        Json::Array(elements) => elements.iter().any(|one| matches!(one, Json::Text(text) if text == key)),
        Json::Text(text) => text == key,
        _ => false,
    }
}

fn has_key(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let keys = rows.text(1)?;
    has(&rows, |row, document| Ok(at(keys, row).map(|key| is_key(document, key))))
}

fn has(rows: &Rows, with: impl Fn(usize, &Json<'_>) -> Result<Option<bool>>) -> Result<ColumnarValue> {
    let documents = rows.text(0)?;
    let mut out = BooleanBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        match at(documents, row) {
            Some(document) => out.append_option(with(row, &Reader::tree(document)?)?),
            None => out.append_null(),
        }
    }
    Ok(ColumnarValue::Array(Arc::new(out.finish())))
}

fn key_list(array: &ArrayRef, row: usize) -> Result<Option<Vec<String>>> {
    if array.is_null(row) {
        return Ok(None);
    }
    match array.as_list_opt::<i32>() {
        Some(list) => super::arguments::list_texts(list, row).map(Some),
        None => super::path::names(array.as_string::<i32>().value(row)).map(Some),
    }
}

fn has_any(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let keys = rows.array(1)?;
    has(&rows, |row, document| {
        Ok(key_list(keys, row)?.map(|keys| keys.iter().any(|key| is_key(document, key))))
    })
}

fn has_all(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let keys = rows.array(1)?;
    has(&rows, |row, document| {
        Ok(key_list(keys, row)?.map(|keys| keys.iter().all(|key| is_key(document, key))))
    })
}
