//! Functions of VARIANT ([`bowshot_api::variant`]): made of JSON and of other values, and taken apart.

mod make;
mod parts;

use super::arguments::gives_json;
use crate::define::Function;
use crate::scalar_udf::{gives, gives_text, gives_truth, scalar_functions, text_type};
use bowshot_api::variant::{data_type, is_variant_type};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{Expr, lit};

pub use make::{variant_column, variants_of, variants_of_json};
pub use parts::VariantPath;

/// The error of what compares VARIANT values.
pub const VARIANT_COMPARED: &str = "VARIANT values have no order and are not compared: cast them, as in `v:a::INTEGER`, or compare `to_json(v)`";

pub(crate) const FUNCTIONS: &[Function] = scalar_functions! {
    "parse_json": takes_text, gives_variant, |given| make::parsed(given, false) =>
        "JSON text as VARIANT; an error if it is none";
    "try_parse_json": takes_text, gives_variant, |given| make::parsed(given, true) =>
        "the same; NULL for text that is not valid JSON";
    "to_variant": takes_value, gives_variant, make::of_values =>
        "any value as VARIANT: JSON as what it says, other text as a text; NULL members of structs are left out";
    "variant_get" "try_variant_get": takes_path, gives_variant, parts::at_paths =>
        "the part of a VARIANT at a key, an index (from 0), a path (`$.a[0]`) or a pointer; NULL if there is none; with the name of a type behind it cast to that; operator `:`";
    "variant_element": takes_path, gives_variant, parts::elements =>
        "the member of a VARIANT with exactly this name, or the element at an index (from 0); operator `[…]`";
    "variant_typeof": takes_variant, gives_text, parts::type_names =>
        "the type of a VARIANT: OBJECT, ARRAY, NULL for JSON's null, or that of SQL";
    "is_variant_null": takes_variant, gives_truth, parts::are_null =>
        "whether a VARIANT is JSON's null; NULL for NULL";
    "variant_to_json": takes_variant, gives_json, parts::as_json => "a VARIANT as JSON text";
};

gives! {
    gives_variant: Field::new("", data_type(), true);
}

fn takes_text(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [text] if text_type(text) || text.is_null() => Ok(vec![DataType::Utf8]),
        _ => plan_err!("`{name}` takes one text; to_variant takes other values"),
    }
}

fn takes_value(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [value] => Ok(vec![value.clone()]),
        _ => plan_err!("`{name}` takes one value"),
    }
}

fn takes_variant(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    match given {
        [value] => Ok(vec![variant(name, value)?]),
        _ => plan_err!("`{name}` takes one VARIANT"),
    }
}

fn takes_path(name: &str, given: &[DataType]) -> Result<Vec<DataType>> {
    let [value, path] = given else { return plan_err!("`{name}` takes a VARIANT and a path") };
    let path = match path {
        path if text_type(path) || path.is_null() => DataType::Utf8,
        path if path.is_integer() => DataType::Int64,
        _ => return plan_err!("the path into a VARIANT is a text, or the index of an element"),
    };
    Ok(vec![variant(name, value)?, path])
}

fn variant(name: &str, given: &DataType) -> Result<DataType> {
    if is_variant_type(given) || given.is_null() {
        return Ok(data_type());
    }
    plan_err!(
        "`{name}` takes a VARIANT: write `parse_json(…)` for JSON text, `to_variant(…)` for other values"
    )
}

/// `v['a']`, `v[0]` and `v.a`: the member or element of a VARIANT. What stands behind one another is one path.
pub(crate) fn element(value: Expr, key: Expr) -> Result<Expr> {
    let Some(step) = written_step(&key) else { return super::call("variant_element", vec![value, key]) };
    if let Expr::ScalarFunction(call) = &value
        && call.name() == "variant_get"
        && let [of, Expr::Literal(ScalarValue::Utf8(Some(path)), _)] = call.args.as_slice()
        && path.starts_with('$')
    {
        return super::call("variant_get", vec![of.clone(), lit(format!("{path}{step}"))]);
    }
    super::call("variant_get", vec![value, lit(format!("${step}"))])
}

/// A step of a path for a key that is written out.
fn written_step(key: &Expr) -> Option<String> {
    let Expr::Literal(key, _) = key else { return None };
    match key {
        ScalarValue::Utf8(Some(name)) => {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            Some(format!("[\"{name}\"]"))
        }
        index if index.data_type().is_integer() && !index.is_null() => Some(format!("[{index}]")),
        _ => None,
    }
}
