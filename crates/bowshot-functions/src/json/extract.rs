//! Functions that take a part out of a document.

use super::arguments::{
    Rows, Way, Ways, at, column, gives_json, gives_jsons, gives_part, is_jsonb, json_field, list_column,
    list_of, name_list, step, takes_step, takes_texts, takes_two,
};
use super::path::{follow, follow_names, is_many, json_path, path};
use super::reader::{Reader, Step};
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{gives_double, gives_int, gives_text, gives_truth, no_overload, scalar_functions};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_extract" "jsonb_extract" "json_query": takes_step, gives_parts,
        |given| parts(given, |part| Some(part.to_owned())) =>
        "the part of a document at a key, an index, a path or a pointer; a list for `$.*` and for a list of paths; operator `->`";
    "json_extract_string" "json_extract_text" "get_json_object"
        "get_json_string": takes_step, gives_part_texts,
        |given| parts(given, text_of) =>
        "the same as text without quotes; operator `->>`";
    "json_extract_path" "jsonb_extract_path": takes_texts, gives_part,
        |given| by_arguments(given, written(given)) =>
        "the part that keys and indexes lead to, one argument for each";
    "json_extract_path_text" "jsonb_extract_path_text": takes_texts, gives_text,
        |given| by_arguments(given, |part| part.text()) =>
        "the same as text";
    "json_extract_names": takes_step, gives_part, |given| by_names(given, written(given)) =>
        "the part that an array of keys and indexes leads to; operator `#>`";
    "json_extract_names_text": takes_step, gives_text, |given| by_names(given, |part| part.text()) =>
        "the same as text; operator `#>>`";
    "json_value": takes_two, gives_text, |given| path_texts(given, scalar_of) =>
        "the scalar at a path as text; NULL where there is none";
    "json_exists" "json_path_exists" "jsonb_path_exists": takes_step, gives_truth,
        |given| at_paths(given, |parts| Some(!parts.is_empty())).map(column::<BooleanArray, _>) =>
        "whether a path leads to something";
    "jsonb_path_query_first" "json_path_query_first": takes_two, gives_json,
        |given| path_texts(given, |parts| parts.first().map(|part| part.compact())) =>
        "the first part that a path leads to";
    "jsonb_path_query_array" "json_path_query_array": takes_two, gives_json, |given| path_texts(given, array_of) =>
        "all parts that a path leads to, as a JSON array";
    "json_path_query": takes_two, gives_jsons, all_as_list => "all parts that a path leads to, as a list";
    "get_json_int": takes_two, gives_int, |given| typed(given, &DataType::Int64) => "the part at a path as BIGINT";
    "get_json_double": takes_two, gives_double, |given| typed(given, &DataType::Float64) => "the part at a path as DOUBLE";
    "get_json_bool": takes_two, gives_truth, |given| typed(given, &DataType::Boolean) => "the part at a path as BOOLEAN";
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
    let ways = Ways::new(given, 1, step)?;
    rows.map_to_texts(|row, document| {
        let part = ways.at(row, |way| one(document, way))?;
        Ok(part.and_then(|part| shown(&part)))
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
    let paths = rows.array(1)?;
    let lists = paths.as_list_opt::<i32>();
    let texts = |row: usize| -> Result<Vec<String>> {
        match lists {
            Some(lists) => super::arguments::list_texts(lists, row),
            None => Ok(at(rows.text(1)?, row).map(str::to_owned).into_iter().collect()),
        }
    };
    let found = rows.map_documents(|row, document| {
        if paths.is_null(row) {
            return Ok(None);
        }
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
    });
    found.map(|lists| list_column(given, lists))
}

/// How parts are written: those of JSONB with its spaces.
fn written(given: &ScalarFunctionArgs) -> fn(&Json<'_>) -> Option<String> {
    if is_jsonb(&given.return_field) {
        |part: &Json<'_>| Some(part.clone().normal_text())
    } else {
        |part: &Json<'_>| Some(part.compact())
    }
}

fn by_arguments(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let names = (1..rows.width()).map(|argument| rows.text(argument)).collect::<Result<Vec<_>>>()?;
    rows.map_to_texts(|row, document| {
        let names: Option<Vec<String>> = names.iter().map(|name| at(name, row).map(str::to_owned)).collect();
        let Some(names) = names else { return Ok(None) };
        Ok(follow_names(&Reader::tree(document)?, &names).and_then(shown))
    })
}

fn by_names(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let ways = Ways::new(given, 1, name_list)?;
    rows.map_to_texts(|row, document| {
        let tree = Reader::tree(document)?;
        ways.at(row, |way| match way {
            Way::Names(names) => Ok(follow_names(&tree, names).and_then(shown)),
            Way::Steps(_) => Ok(None),
        })
    })
}

/// What `with` says of the parts that each row's JSONPath leads to.
fn at_paths<T>(
    given: &ScalarFunctionArgs,
    with: impl Fn(&[&Json<'_>]) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let rows = Rows::new(given)?;
    let ways = Ways::new(given, 1, |array, row| match array.as_string_opt::<i32>() {
        Some(texts) if !texts.is_null(row) && texts.value(row).starts_with(['$', 'l', 's']) => {
            json_path(texts.value(row)).map(|steps| Some(Way::Steps(steps)))
        }
        _ => step(array, row),
    })?;
    rows.map_documents(|row, document| {
        let tree = Reader::tree(document)?;
        ways.at(row, |way| match way {
            Way::Steps(steps) => Ok(with(&lax(&tree, steps))),
            Way::Names(_) => Ok(None),
        })
    })
}

fn path_texts(given: &ScalarFunctionArgs, with: fn(&[&Json<'_>]) -> Option<String>) -> Result<ColumnarValue> {
    at_paths(given, with).map(column::<StringArray, _>)
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

fn scalar_of(parts: &[&Json<'_>]) -> Option<String> {
    match parts {
        [Json::Array(_) | Json::Object(_)] => None,
        [one] => one.text(),
        _ => None,
    }
}

fn array_of(parts: &[&Json<'_>]) -> Option<String> {
    Some(Json::Array(parts.iter().map(|part| (*part).clone()).collect()).compact())
}

fn all_as_list(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let lists = at_paths(given, |parts| Some(parts.iter().map(|part| Some(part.compact())).collect()));
    lists.map(|lists| list_column(given, lists))
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
