//! Functions that return a changed document.

use super::arguments::{
    Rows, at, each_row, gives_json, gives_jsonb, map_trees, null, takes_one, takes_texts, takes_two,
};
use super::path::{json_path, names};
use super::reader::{Reader, Step};
use super::to_json::write;
use super::value::{Json, place};
use crate::define::Function;
use crate::scalar_udf::{no_overload, scalar_functions, text_type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use std::borrow::Cow;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_merge_patch": takes_texts, gives_json, merge_patch =>
        "the documents merged, later ones first; null removes a member";
    "json_set": takes_changes, gives_json, |given| by_paths(given, How::Set) =>
        "the document with values at paths, put there or replaced";
    "json_insert": takes_changes, gives_json, |given| by_paths(given, How::Insert) =>
        "the document with values at paths where there is nothing";
    "json_replace": takes_changes, gives_json, |given| by_paths(given, How::Replace) =>
        "the document with values at paths where there is something";
    "jsonb_set": takes_set, gives_jsonb, set =>
        "the document with another one at an array of keys and indexes";
    "json_remove": takes_texts, gives_json, |given| remove(given, json_path_of, |tree| tree.compact()) =>
        "the document without what is at the paths";
    "json_delete_path" "jsonb_delete_path": takes_removal, gives_jsonb,
        |given| remove(given, names_of, |tree| tree.normal_text()) =>
        "the document without what is at an array of keys and indexes; operator `#-`";
    "json_delete" "jsonb_delete": takes_removal, gives_jsonb,
        |given| remove(given, key_of, |tree| tree.normal_text()) =>
        "the document without a member, or without the element at an index; operator `-`";
    "json_concat" "jsonb_concat": takes_two, gives_jsonb, concat => "two documents as one; operator `||`";
    "json_strip_nulls" "jsonb_strip_nulls": takes_one, gives_json,
        |given| map_trees(given, |tree| stripped(tree).compact()) =>
        "the document without the members that are null";
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Set,
    Insert,
    Replace,
}

fn takes_changes(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let Some((document, rest)) = given.split_first() else { return no_overload(name, given) };
    let text = |of: &DataType| text_type(of) || of.is_null();
    if !text(document) || !rest.iter().step_by(2).all(text) {
        return no_overload(name, given);
    }
    if rest.len() % 2 != 0 {
        return plan_err!("{name} takes a value for each path");
    }
    let mut wanted = vec![DataType::Utf8];
    for pair in rest.chunks(2) {
        wanted.push(DataType::Utf8);
        wanted.extend(pair.get(1).cloned());
    }
    Ok(wanted)
}

fn takes_set(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [document, path, value, rest @ ..]
            if text_type(document) && text_type(value) && matches!(rest, [] | [DataType::Boolean]) =>
        {
            Ok([DataType::Utf8, way_type(path), DataType::Utf8]
                .into_iter()
                .chain(rest.iter().cloned())
                .collect())
        }
        _ => no_overload(name, given),
    }
}

fn way_type(of: &DataType) -> DataType {
    match of {
        DataType::List(_) => super::arguments::list_of(Field::new_list_field(DataType::Utf8, true)),
        of if of.is_integer() => DataType::Int64,
        _ => DataType::Utf8,
    }
}

fn takes_removal(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [document, way] if text_type(document) || document.is_null() => {
            Ok(vec![DataType::Utf8, way_type(way)])
        }
        _ => no_overload(name, given),
    }
}

/// The steps that a row's argument names.
type StepsOf = fn(&ArrayRef, usize) -> Result<Option<Vec<Step>>>;

fn json_path_of(array: &ArrayRef, row: usize) -> Result<Option<Vec<Step>>> {
    array.as_string_opt::<i32>().and_then(|texts| at(texts, row)).map(json_path).transpose()
}

fn names_of(array: &ArrayRef, row: usize) -> Result<Option<Vec<Step>>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let names = match array.as_list_opt::<i32>() {
        Some(list) => super::arguments::list_texts(list, row)?,
        None => array.as_string_opt::<i32>().map_or(Ok(Vec::new()), |texts| names(texts.value(row)))?,
    };
    Ok(Some(names.into_iter().map(Step::Key).collect()))
}

fn key_of(array: &ArrayRef, row: usize) -> Result<Option<Vec<Step>>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Int64 => vec![Step::Index(array.as_primitive::<Int64Type>().value(row))],
        _ => array
            .as_string_opt::<i32>()
            .map(|texts| Step::Key(texts.value(row).to_owned()))
            .into_iter()
            .collect(),
    }))
}

/// The place in an array that a step names: PostgreSQL writes indexes like keys.
fn index_of(step: &Step, length: usize) -> Option<usize> {
    match step {
        Step::Index(index) => place(*index, length),
        Step::Key(key) => place(key.parse().ok()?, length),
        Step::All | Step::Below => None,
    }
}

fn child<'a, 'b>(document: &'b mut Json<'a>, step: &Step) -> Option<&'b mut Json<'a>> {
    match (document, step) {
        (Json::Object(members), Step::Key(key)) => {
            members.iter_mut().rev().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        (Json::Array(elements), step) => {
            let index = index_of(step, elements.len())?;
            elements.get_mut(index)
        }
        _ => None,
    }
}

/// Puts a value at the end of a path. Nothing is made on the way there.
fn put<'a>(document: &mut Json<'a>, steps: &[Step], value: Json<'a>, how: How) {
    let Some((step, rest)) = steps.split_first() else {
        if how != How::Insert {
            *document = value;
        }
        return;
    };
    if let Some(child) = child(document, step) {
        return put(child, rest, value, how);
    }
    if !rest.is_empty() || how == How::Replace {
        return;
    }
    match (document, step) {
        (Json::Object(members), Step::Key(key)) => members.push((Cow::Owned(key.clone()), value)),
        (Json::Array(elements), Step::Index(index)) if *index < 0 => elements.insert(0, value),
        (Json::Array(elements), Step::Index(_)) => elements.push(value),
        (Json::Array(elements), Step::Key(key)) => match key.parse::<i64>() {
            Ok(index) if index < 0 => elements.insert(0, value),
            Ok(_) => elements.push(value),
            Err(_) => {}
        },
        _ => {}
    }
}

fn take_out(document: &mut Json<'_>, steps: &[Step]) {
    let Some((step, rest)) = steps.split_first() else { return };
    if !rest.is_empty() {
        if let Some(child) = child(document, step) {
            take_out(child, rest);
        }
        return;
    }
    match (document, step) {
        (Json::Object(members), Step::Key(key)) => members.retain(|(name, _)| name != key),
        (Json::Array(elements), step) => match (index_of(step, elements.len()), step) {
            (Some(index), _) if index < elements.len() => drop(elements.remove(index)),
            // `["a"] - 'a'` takes the strings that are so named.
            (_, Step::Key(key)) => elements.retain(|one| !matches!(one, Json::Text(text) if text == key)),
            _ => {}
        },
        _ => {}
    }
}

fn by_paths(given: &ScalarFunctionArgs, how: How) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    rows.map_to_texts(|row, document| {
        let mut document = document.to_owned();
        for argument in (1..rows.width()).step_by(2) {
            let Some(steps) = json_path_of(rows.array(argument)?, row)? else { return Ok(None) };
            let mut value = String::new();
            let field = given.arg_fields.get(argument + 1).map(AsRef::as_ref);
            let plain = Field::new("", DataType::Null, true);
            write(rows.array(argument + 1)?, field.unwrap_or(&plain), row, &mut value)?;
            let mut tree = Reader::tree(&document)?;
            put(&mut tree, &steps, Reader::tree(&value)?, how);
            document = tree.compact();
        }
        Ok(Some(document))
    })
}

fn set(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let (ways, values) = (rows.array(1)?, rows.text(2)?);
    let make = if rows.width() > 3 { Some(rows.array(3)?.as_boolean()) } else { None };
    rows.map_to_texts(|row, document| {
        let (Some(steps), Some(value)) = (names_of(ways, row)?, at(values, row)) else { return Ok(None) };
        let mut tree = Reader::tree(document)?;
        let make = make.is_none_or(|make| make.is_valid(row) && make.value(row));
        put(&mut tree, &steps, Reader::tree(value)?, if make { How::Set } else { How::Replace });
        Ok(Some(tree.normal_text()))
    })
}

fn remove(
    given: &ScalarFunctionArgs,
    steps_of: StepsOf,
    written: fn(Json<'_>) -> String,
) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    rows.map_to_texts(|row, document| {
        let mut tree = Reader::tree(document)?;
        for argument in 1..rows.width() {
            let Some(steps) = steps_of(rows.array(argument)?, row)? else { return Ok(None) };
            take_out(&mut tree, &steps);
        }
        Ok(Some(written(tree)))
    })
}

/// RFC 7396.
fn patched<'a>(document: Json<'a>, patch: Json<'a>) -> Json<'a> {
    let Json::Object(changes) = patch else { return patch };
    let mut document = if matches!(document, Json::Object(_)) { document } else { Json::Object(Vec::new()) };
    for (key, change) in changes {
        if change == Json::Null {
            take_out(&mut document, &[Step::Key(key.into_owned())]);
        } else {
            let old = document.member(&key).cloned().unwrap_or(Json::Null);
            document.put(key, patched(old, change));
        }
    }
    document
}

fn merge_patch(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = (0..rows.width()).map(|argument| rows.text(argument)).collect::<Result<Vec<_>>>()?;
    each_row(rows.count, |row, out| {
        let mut merged: Option<Json<'_>> = None;
        for document in &documents {
            let Some(document) = at(document, row) else { return null(out) };
            let tree = Reader::tree(document)?;
            merged = Some(match merged {
                Some(before) => patched(before, tree),
                None => tree,
            });
        }
        out.append_option(merged.map(|merged| merged.compact()));
        Ok(())
    })
}

fn concat(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let others = rows.text(1)?;
    rows.map_to_texts(|row, one| {
        let Some(other) = at(others, row) else { return Ok(None) };
        let both = match (Reader::tree(one)?, Reader::tree(other)?) {
            (Json::Object(members), Json::Object(more)) => {
                let mut both = Json::Object(members);
                more.into_iter().for_each(|(key, value)| both.put(key, value));
                both
            }
            (one @ Json::Object(_), scalar) if !matches!(scalar, Json::Array(_)) => {
                return exec_err!(
                    "invalid concatenation of jsonb objects: {} || {}",
                    one.kind(),
                    scalar.kind()
                );
            }
            (one, other) => {
                let mut elements = into_elements(one);
                elements.extend(into_elements(other));
                Json::Array(elements)
            }
        };
        Ok(Some(both.normal_text()))
    })
}

fn into_elements(document: Json<'_>) -> Vec<Json<'_>> {
    match document {
        Json::Array(elements) => elements,
        other => vec![other],
    }
}

/// Without the members that are null.
fn stripped(document: Json<'_>) -> Json<'_> {
    match document {
        Json::Array(elements) => Json::Array(elements.into_iter().map(stripped).collect()),
        Json::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(kept.map(|(key, value)| (key, stripped(value))).collect())
        }
        other => other,
    }
}
