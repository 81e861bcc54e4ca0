//! JSON as values of SQL types (`json_transform`, `from_json`), and members as rows (`json_each`).

use super::arguments::{Rows, at, gives_jsons, json_field, list_of, map_trees, takes_one};
use super::extract::constant_text;
use super::inspect::lists;
use super::reader::Reader;
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{gives_text, gives_texts, no_overload, scalar_functions, text_type};
use datafusion::arrow::array::{ArrayRef, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json_transform" "from_json": takes_shape, gives_shape, |given| transform(given, false) =>
        "JSON as a value of the type that a constant describes: `{\"a\": \"INT\"}`, or `a INT, b TEXT`";
    "json_transform_strict" "from_json_strict": takes_shape, gives_shape, |given| transform(given, true) =>
        "the same; a value that does not fit is an error instead of NULL";
    "json_structure": takes_one, gives_text, |given| map_trees(given, |tree| structure(&tree).compact()) =>
        "the types of a document, as json_transform takes them";
    "json_members": takes_one, |_, _| Ok(members_field(json_field())),
        |given| members(given, |one| Some(one.compact())) =>
        "the members of an object, or the elements of an array, as a list of keys and values";
    "json_members_text": takes_one, |_, _| Ok(members_field(Field::new("", DataType::Utf8, true))),
        |given| members(given, |one| one.text()) =>
        "the same with values as text";
    "json_member_keys": takes_one, gives_texts, member_keys =>
        "the keys of those members, or the indexes of those elements, as a list";
    "json_member_values": takes_one, gives_jsons,
        |given| lists(given, |part|
            Ok(Some(part.children().into_iter().map(|one| Some(one.compact())).collect()))) =>
        "the values of those members";
    "json_member_texts": takes_one, gives_texts,
        |given| lists(given, |part| Ok(Some(part.children().into_iter().map(Json::text).collect()))) =>
        "the values of those members as text";
};

fn takes_shape(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [document, shape] if (text_type(document) || document.is_null()) && text_type(shape) => {
            Ok(vec![DataType::Utf8; 2])
        }
        _ => no_overload(name, given),
    }
}

fn gives_shape(name: &str, given: &ReturnFieldArgs<'_>) -> Result<Field> {
    let text = constant_text(name, given, 1)?;
    let shape = if text.trim_start().starts_with(['{', '[', '"']) {
        shape_of(&Reader::tree(text)?)?
    } else if let Some(of) = named_type(text) {
        of
    } else {
        columns(text)?
    };
    Ok(Field::new("", shape, true))
}

/// DuckDB's description: a name of a type, an array with one for its elements, an object with one for each member.
fn shape_of(described: &Json<'_>) -> Result<DataType> {
    match described {
        Json::Text(name) => named_type(name).map_or_else(|| unknown(name), Ok),
        Json::Array(elements) => match elements.as_slice() {
            [element] => Ok(list_of(Field::new_list_field(shape_of(element)?, true))),
            _ => exec_err!("an array in a JSON structure has exactly one type for its elements"),
        },
        Json::Object(members) => {
            let fields = members.iter().map(|(key, of)| Ok(Field::new(key.as_ref(), shape_of(of)?, true)));
            Ok(DataType::Struct(fields.collect::<Result<Fields>>()?))
        }
        other => exec_err!("`{}` names no type in a JSON structure", other.compact()),
    }
}

fn unknown<T>(name: &str) -> Result<T> {
    exec_err!("type `{name}` is not known in a JSON structure")
}

/// Spark's description: `a INT, b STRING`, of simple types.
fn columns(text: &str) -> Result<DataType> {
    let fields = text.split(',').map(|column| {
        let column = column.trim();
        let Some((name, of)) = column.split_once([' ', ':']) else { return unknown(column) };
        let of = of.trim_start_matches([':', ' ']);
        Ok(Field::new(name.trim_matches(['`', '"']), named_type(of).map_or_else(|| unknown(of), Ok)?, true))
    });
    Ok(DataType::Struct(fields.collect::<Result<Fields>>()?))
}

fn named_type(name: &str) -> Option<DataType> {
    let name = name.trim().to_ascii_uppercase();
    if let Some(of) = name.strip_suffix("[]") {
        return Some(list_of(Field::new_list_field(named_type(of)?, true)));
    }
    Some(match name.as_str() {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" => DataType::Int8,
        "SMALLINT" | "INT2" => DataType::Int16,
        "INTEGER" | "INT" | "INT4" => DataType::Int32,
        "BIGINT" | "INT8" | "LONG" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "FLOAT" | "REAL" => DataType::Float32,
        "DOUBLE" | "DOUBLE PRECISION" | "NUMERIC" => DataType::Float64,
        "VARCHAR" | "TEXT" | "STRING" | "JSON" => DataType::Utf8,
        "DATE" => DataType::Date32,
        "TIMESTAMP" | "DATETIME" => {
            DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, None)
        }
        _ => return None,
    })
}

fn transform(given: &ScalarFunctionArgs, strict: bool) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let of = given.return_field.data_type();
    let values = (0..rows.count)
        .map(|row| match at(documents, row) {
            Some(document) => value_of(&Reader::tree(document)?, of, strict),
            None => ScalarValue::try_from(of),
        })
        .collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(of)));
    }
    Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
}

fn value_of(part: &Json<'_>, of: &DataType, strict: bool) -> Result<ScalarValue> {
    let none = ScalarValue::try_from(of);
    match (part, of) {
        (Json::Null, _) => none,
        (Json::Object(_), DataType::Struct(fields)) => {
            let columns = fields.iter().map(|field| {
                let inside = part.member(field.name()).unwrap_or(&Json::Null);
                value_of(inside, field.data_type(), strict)?.to_array()
            });
            let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
            Ok(ScalarValue::Struct(Arc::new(StructArray::try_new(fields.clone(), columns, None)?)))
        }
        (Json::Array(elements), DataType::List(element)) => {
            let of = element.data_type();
            let values = elements.iter().map(|one| value_of(one, of, strict)).collect::<Result<Vec<_>>>()?;
            Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, of)))
        }
        (Json::Array(_) | Json::Object(_), DataType::Utf8) => Ok(ScalarValue::from(part.compact())),
        (_, DataType::Struct(_) | DataType::List(_)) | (Json::Array(_) | Json::Object(_), _) => {
            if strict {
                exec_err!("`{}` does not fit type {of}", part.compact())
            } else {
                none
            }
        }
        (scalar, of) => {
            let value = ScalarValue::from(scalar.text().unwrap_or_default()).cast_to(of);
            // A fraction is cut off in an integer, as a cast of the number would.
            match (value, scalar) {
                (Err(_), Json::Number(digits)) if of.is_integer() => digits
                    .parse::<f64>()
                    .map_or_else(|_| none, |number| ScalarValue::from(number.round()).cast_to(of)),
                (Err(fault), _) if strict => Err(fault),
                (Err(_), _) => ScalarValue::try_from(of),
                (value, _) => value,
            }
        }
    }
}

fn structure(part: &Json<'_>) -> Json<'static> {
    match part {
        Json::Object(members) => Json::Object(
            members.iter().map(|(key, value)| (key.clone().into_owned().into(), structure(value))).collect(),
        ),
        Json::Array(elements) => {
            let first = elements.iter().find(|one| **one != Json::Null);
            Json::Array(vec![first.map_or(Json::Text("NULL".into()), structure)])
        }
        scalar => Json::Text(scalar.sql_kind().into()),
    }
}

fn member_keys(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    lists(given, |part| {
        Ok(Some(match part {
            Json::Object(members) => members.iter().map(|(key, _)| Some(key.clone().into_owned())).collect(),
            other => (0..other.children().len()).map(|index| Some(index.to_string())).collect(),
        }))
    })
}

fn members_field(value: Field) -> Field {
    let fields = Fields::from(vec![Field::new("key", DataType::Utf8, true), value.with_name("value")]);
    Field::new("", list_of(Field::new_list_field(DataType::Struct(fields), true)), true)
}

fn members(given: &ScalarFunctionArgs, shown: fn(&Json<'_>) -> Option<String>) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    let of = given.return_field.data_type();
    let DataType::List(element) = of else { return exec_err!("members are a list") };
    let DataType::Struct(fields) = element.data_type() else { return exec_err!("members are pairs") };
    let mut pairs = super::object_builder::Pairs::new(Arc::clone(element), fields.clone());
    for row in 0..rows.count {
        match at(documents, row) {
            None => pairs.null(),
            Some(document) => pairs.of(&Reader::tree(document)?, shown),
        }
    }
    Ok(ColumnarValue::Array(pairs.finish()?))
}
