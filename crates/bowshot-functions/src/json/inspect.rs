//! Functions that describe a document: type, length, contained values.

use super::arguments::{
    Rows, Way, Ways, at, column, gives_jsons, list_column, list_of, name_texts, step, takes_one,
    takes_one_or_path, takes_two,
};
use super::path::follow_names;
use super::reader::Reader;
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{
    gives_int, gives_text, gives_texts, gives_truth, no_overload, scalar_functions, text_type,
};
use datafusion::arrow::array::{BooleanArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_type": takes_one_or_path, gives_text, |given| texts(given, |part| part.sql_kind()) =>
        "the type of a document, or of its part at a path: OBJECT, ARRAY, VARCHAR, UBIGINT …";
    "json_typeof" "jsonb_typeof": takes_one_or_path, gives_text, |given| texts(given, |part| part.kind()) =>
        "the type of a document: object, array, string, number, boolean, null";
    "json_valid" "is_json": takes_one, gives_truth, valid => "whether text is JSON";
    "json_array_length" "jsonb_array_length": takes_one_or_path, gives_int, array_length =>
        "number of elements of an array; at a path, 0 for what is not an array";
    "json_length": takes_one_or_path, gives_int, length =>
        "how many elements or members there are; 1 for a scalar";
    "json_depth": takes_one, gives_int, depth => "how deep arrays and objects are nested; 1 for a scalar";
    "json_keys": takes_one_or_path, gives_texts, keys => "the keys of an object as a list";
    "json_elements": takes_one, gives_jsons, |given| elements(given, |one| Some(one.compact())) =>
        "the elements of an array as a list";
    "json_elements_text": takes_one, gives_texts, |given| elements(given, |one| one.text()) =>
        "the elements of an array as a list of text";
    "json_contains": takes_two, gives_truth, |given| compare(given, contains_anywhere) =>
        "whether a document has another one anywhere in it";
    "json_contained" "jsonb_contains": takes_two, gives_truth,
        |given| compare(given, |one, other| one.contains(other)) =>
        "whether the first document contains the second, level by level; operators `@>` and `<@`";
    "json_has_key" "jsonb_exists": takes_two, gives_truth, has_key =>
        "whether a text is a key of an object or an element of an array; operator `?`";
    "json_has_any_key" "jsonb_exists_any": takes_keys, gives_truth,
        |given| has(given, |document, keys| keys.iter().any(|key| is_key(document, key))) =>
        "whether one of the texts is such a key; operator `?|`";
    "json_has_all_keys" "jsonb_exists_all": takes_keys, gives_truth,
        |given| has(given, |document, keys| keys.iter().all(|key| is_key(document, key))) =>
        "whether all texts are such keys; operator `?&`";
};

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

/// What `with` says of each row's document, or of the part of it that a second argument leads to.
fn of_parts<T>(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let rows = Rows::new(given)?;
    let ways = (rows.width() > 1).then(|| Ways::new(given, 1, step)).transpose()?;
    rows.map_documents(|row, document| {
        let tree = Reader::tree(document)?;
        match &ways {
            None => with(&tree),
            Some(ways) => ways.at(row, |way| match way {
                Way::Steps(steps) => {
                    super::path::follow(&tree, steps).first().map_or(Ok(None), |part| with(part))
                }
                Way::Names(names) => follow_names(&tree, names).map_or(Ok(None), &with),
            }),
        }
    })
}

fn texts(given: &ScalarFunctionArgs, of: fn(&Json<'_>) -> &'static str) -> Result<ColumnarValue> {
    of_parts(given, |part| Ok(Some(of(part)))).map(column::<StringArray, _>)
}

fn counts(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<i64>>,
) -> Result<ColumnarValue> {
    of_parts(given, with).map(column::<Int64Array, _>)
}

pub(super) fn lists(
    given: &ScalarFunctionArgs,
    with: impl Fn(&Json<'_>) -> Result<Option<Vec<Option<String>>>>,
) -> Result<ColumnarValue> {
    of_parts(given, with).map(|lists| list_column(given, lists))
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

fn elements(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    lists(given, |part| match part {
        Json::Array(elements) => Ok(Some(elements.iter().map(shown).collect())),
        _ => exec_err!("cannot extract elements from a{}", non_array(part)),
    })
}

/// Compares the two documents of each row.
fn compare(given: &ScalarFunctionArgs, with: fn(&Json<'_>, &Json<'_>) -> bool) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let others = rows.text(1)?;
    let compared = rows.map_documents(|row, one| {
        let Some(other) = at(others, row) else { return Ok(None) };
        Ok(Some(with(&Reader::tree(one)?, &Reader::tree(other)?)))
    });
    compared.map(column::<BooleanArray, _>)
}

fn contains_anywhere(one: &Json<'_>, other: &Json<'_>) -> bool {
    one.contains(other) || one.children().into_iter().any(|child| contains_anywhere(child, other))
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
    let found = rows.map_documents(|row, document| {
        let tree = Reader::tree(document)?;
        Ok(at(keys, row).map(|key| is_key(&tree, key)))
    });
    found.map(column::<BooleanArray, _>)
}

/// Whether each document has those of the keys behind it that `with` asks for.
fn has(given: &ScalarFunctionArgs, with: fn(&Json<'_>, &[String]) -> bool) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let keys = rows.array(1)?;
    let found = rows.map_documents(|row, document| {
        let tree = Reader::tree(document)?;
        Ok(name_texts(keys, row)?.map(|keys| with(&tree, &keys)))
    });
    found.map(column::<BooleanArray, _>)
}
