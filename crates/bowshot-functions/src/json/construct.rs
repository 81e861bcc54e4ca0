//! Functions that make JSON of other values, and the two that read text as JSON.

use super::arguments::{Rows, at, each_row, gives_json, gives_jsonb, map_trees, null, takes_one};
use super::order_key::order_key;
use super::reader::Reader;
use super::to_json::{key, write};
use super::value::Json;
use crate::define::Function;
use crate::scalar_udf::{gives_text, no_overload, scalar_functions, text_type, udf};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err, internal_datafusion_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "json": takes_one, gives_json, |given| map_trees(given, |tree| tree.compact()) =>
        "text as JSON, in its shortest form; an error if it is none";
    "jsonb": takes_one, gives_jsonb, |given| map_trees(given, |tree| tree.normal_text()) =>
        "text as JSONB: each key once, in PostgreSQL's order; an error if it is not valid JSON";
    "to_json" "to_jsonb" "row_to_json" "array_to_json": takes_any, gives_json, to_json => "any value as JSON";
    "json_object" "json_build_object" "jsonb_build_object" "jsonb_object": takes_pairs, gives_json,
        |given| object(given, Nulls::Kept) =>
        "an object of keys and values that alternate, or of an array of texts";
    "json_object_of_values": takes_pairs, gives_json, |given| object(given, Nulls::LeftOut) =>
        "an object without the keys whose value is NULL: `JSON_OBJECT(… ABSENT ON NULL)`";
    "json_array" "json_build_array" "jsonb_build_array": takes_all, gives_json,
        |given| array(given, Nulls::Kept) =>
        "an array of the arguments";
    "json_array_of_values": takes_all, gives_json, |given| array(given, Nulls::LeftOut) =>
        "an array of the arguments that are not NULL: `JSON_ARRAY(… ABSENT ON NULL)`";
    "json_quote": takes_any, gives_json, to_json => "a value as JSON: text in quotes";
    "json_unquote": takes_one, gives_text, unquoted => "the text of a JSON string; other JSON as it is";
    "json_pretty" "jsonb_pretty": takes_one, gives_text, |given| map_trees(given, pretty) =>
        "JSON over several lines";
};

fn takes_any(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    // The second argument of row_to_json and array_to_json asks for line breaks, which mean nothing.
    match given {
        [value] => Ok(vec![value.clone()]),
        [value, DataType::Boolean] => Ok(vec![value.clone(), DataType::Boolean]),
        _ => no_overload(name, given),
    }
}

pub(crate) fn takes_all(_: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    Ok(given.to_vec())
}

fn takes_pairs(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [DataType::List(of)] if text_type(of.data_type()) => Ok(given.to_vec()),
        [DataType::List(keys), DataType::List(values)]
            if text_type(keys.data_type()) && text_type(values.data_type()) =>
        {
            Ok(given.to_vec())
        }
        _ if !given.len().is_multiple_of(2) => {
            plan_err!("{name} takes a value for each key: argument list must have even number of elements")
        }
        _ => Ok(given.to_vec()),
    }
}

/// A JSON text as JSONB keeps it.
pub fn normal_jsonb(text: &str) -> Result<String> {
    Ok(Reader::tree(text)?.normal_text())
}

/// A function whose results are texts in the order of its arguments as JSONB, and equal where these are.
#[must_use]
pub fn jsonb_key() -> Arc<ScalarUDF> {
    udf("__bowshot_jsonb_key", takes_one, gives_text, |given| {
        map_trees(given, |tree| order_key(&tree.into_normal()))
    })
}

/// The function that gives the text of a JSON string, and other JSON as it is.
#[must_use]
pub fn json_unquote() -> Arc<ScalarUDF> {
    udf("json_unquote", takes_one, gives_text, unquoted)
}

fn field(given: &ScalarFunctionArgs, argument: usize) -> Result<&Field> {
    let field = given.arg_fields.get(argument).map(AsRef::as_ref);
    field.ok_or_else(|| internal_datafusion_err!("argument {argument} has no field"))
}

fn to_json(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let (values, field) = (rows.array(0)?, field(given, 0)?);
    let mut text = String::new();
    each_row(rows.count, |row, out| {
        if values.is_null(row) || values.data_type().is_null() {
            return null(out);
        }
        text.clear();
        write(values, field, row, &mut text)?;
        out.append_value(&text);
        Ok(())
    })
}

/// What becomes of values that are NULL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Kept,
    LeftOut,
}

impl Nulls {
    fn leave_out(self, values: &ArrayRef, row: usize) -> bool {
        self == Self::LeftOut && (values.is_null(row) || values.data_type().is_null())
    }
}

fn array(given: &ScalarFunctionArgs, nulls: Nulls) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let mut text = String::new();
    each_row(rows.count, |row, out| {
        text.clear();
        text.push('[');
        for argument in 0..rows.width() {
            let values = rows.array(argument)?;
            if nulls.leave_out(values, row) {
                continue;
            }
            text.push_str(if text.len() > 1 { "," } else { "" });
            write(values, field(given, argument)?, row, &mut text)?;
        }
        text.push(']');
        out.append_value(&text);
        Ok(())
    })
}

fn object(given: &ScalarFunctionArgs, nulls: Nulls) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    if rows.width() > 0 && rows.array(0)?.as_list_opt::<i32>().is_some() {
        return object_of_lists(given, &rows);
    }
    let mut text = String::new();
    each_row(rows.count, |row, out| {
        text.clear();
        text.push('{');
        for argument in (0..rows.width()).step_by(2) {
            let (keys, values) = (rows.array(argument)?, rows.array(argument + 1)?);
            if keys.is_null(row) {
                return exec_err!("argument {} of an object is a key, and must not be null", argument + 1);
            }
            if nulls.leave_out(values, row) {
                continue;
            }
            text.push_str(if text.len() > 1 { "," } else { "" });
            key(keys, row, &mut text)?;
            text.push(':');
            write(values, field(given, argument + 1)?, row, &mut text)?;
        }
        text.push('}');
        out.append_value(&text);
        Ok(())
    })
}

/// PostgreSQL's other form: one array of keys and values that alternate, or an array of each.
fn object_of_lists(given: &ScalarFunctionArgs, rows: &Rows) -> Result<ColumnarValue> {
    let lists = (0..rows.width())
        .map(|argument| Ok(rows.array(argument)?.as_list::<i32>()))
        .collect::<Result<Vec<_>>>()?;
    let plain = Field::new("", DataType::Utf8, true);
    let mut text = String::new();
    each_row(given.number_rows, |row, out| {
        if lists.iter().any(|list| list.is_null(row)) {
            return null(out);
        }
        let values: Vec<_> = lists.iter().map(|list| list.value(row)).collect();
        let [keys, ..] = values.as_slice() else { return null(out) };
        let (step, values) = values.get(1).map_or((2, keys), |values| (1, values));
        if (step == 1 && keys.len() != values.len()) || keys.len() % step != 0 {
            return exec_err!(
                "an object needs a value for each key; the arrays have {} and {}",
                keys.len(),
                values.len()
            );
        }
        text.clear();
        text.push('{');
        for index in (0..keys.len()).step_by(step) {
            text.push_str(if index > 0 { "," } else { "" });
            if keys.is_null(index) {
                return exec_err!("a key of an object must not be null");
            }
            key(keys, index, &mut text)?;
            text.push(':');
            write(values, &plain, index + step - 1, &mut text)?;
        }
        text.push('}');
        out.append_value(&text);
        Ok(())
    })
}

fn unquoted(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let documents = rows.text(0)?;
    each_row(rows.count, |row, out| {
        let Some(document) = at(documents, row) else { return null(out) };
        // As in MySQL, text that is no JSON string stays what it is.
        if document.starts_with('"')
            && let Ok(Json::Text(text)) = Reader::tree(document)
        {
            out.append_value(text);
        } else {
            out.append_value(document);
        }
        Ok(())
    })
}

fn pretty(tree: Json<'_>) -> String {
    let mut text = String::new();
    tree.pretty(0, &mut text);
    text
}
