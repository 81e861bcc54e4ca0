//! Parts of VARIANT values, and what they are.

use super::make::finished;
use crate::json::arguments::{Rows, Way, Ways, column, step};
use crate::json::path::path;
use crate::json::reader::Step;
use crate::json::value::place;
use bowshot_api::variant::{Values, json_texts, type_name};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use parquet_variant::Variant;
use parquet_variant_compute::VariantArrayBuilder;
use std::sync::Arc;

pub(super) fn at_paths(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    parts(given, step)
}

pub(super) fn elements(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    parts(given, |keys: &ArrayRef, row: usize| match keys.as_string_opt::<i32>() {
        Some(names) if names.is_null(row) => Ok(None),
        Some(names) => Ok(Some(Way::Steps(vec![Step::Key(names.value(row).to_owned())]))),
        None => step(keys, row),
    })
}

fn parts(
    given: &ScalarFunctionArgs,
    read: fn(&ArrayRef, usize) -> Result<Option<Way>>,
) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    let ways = Ways::new(given, 1, read)?;
    let values = Values::of(rows.array(0)?)?;
    let mut out = VariantArrayBuilder::new(rows.count);
    for row in 0..rows.count {
        let part = match values.at(row)? {
            Some(value) => ways.at(row, |way| match way {
                Way::Steps(steps) => follow(value, steps),
                Way::Names(_) => exec_err!("a path into a VARIANT is not a list of names"),
            })?,
            None => None,
        };
        match part {
            Some(part) => out.append_variant(part),
            None => out.append_null(),
        }
    }
    finished(out).map(ColumnarValue::Array)
}

#[derive(Debug)]
pub struct VariantPath(Vec<Step>);

impl VariantPath {
    /// A path as `variant_get` takes it.
    ///
    /// # Errors
    /// For what is no path.
    pub fn parse(text: &str) -> Result<Self> {
        path(text).map(Self)
    }

    /// The part that the path leads to.
    ///
    /// # Errors
    /// For a path that leads to several.
    pub fn follow<'a>(&self, value: Variant<'a, 'a>) -> Result<Option<Variant<'a, 'a>>> {
        follow(value, &self.0)
    }
}

fn follow<'a>(value: Variant<'a, 'a>, steps: &[Step]) -> Result<Option<Variant<'a, 'a>>> {
    let mut part = value;
    for step in steps {
        let next = match (&part, step) {
            (_, Step::All | Step::Below) => {
                return exec_err!("a path into a VARIANT leads to one part: write `$.member` or `$.list[0]`");
            }
            (Variant::Object(object), Step::Key(name)) => object.get(name),
            (Variant::List(list), Step::Index(index)) => {
                place(*index, list.len()).and_then(|index| list.get(index))
            }
            _ => None,
        };
        match next {
            Some(next) => part = next,
            None => return Ok(None),
        }
    }
    Ok(Some(part))
}

pub(super) fn type_names(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    each(given, type_name).map(column::<StringArray, _>)
}

pub(super) fn are_null(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    each(given, |value| matches!(value, Variant::Null)).map(column::<BooleanArray, _>)
}

fn each<T>(given: &ScalarFunctionArgs, tell: impl Fn(&Variant<'_, '_>) -> T) -> Result<Vec<Option<T>>> {
    let rows = Rows::new(given)?;
    let values = Values::of(rows.array(0)?)?;
    (0..rows.count).map(|row| Ok(values.at(row)?.map(|value| tell(&value)))).collect()
}

pub(super) fn as_json(given: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let rows = Rows::new(given)?;
    Ok(ColumnarValue::Array(Arc::new(json_texts(rows.array(0)?)?)))
}
