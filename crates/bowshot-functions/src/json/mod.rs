//! JSON functions and operators on UTF-8 text, with Arrow's extension type `arrow.json` on results. Numbers and the order of members stay as
//! written; changed documents are written in their shortest form. Invalid JSON is an error in PostgreSQL's words.

mod arguments;
mod construct;
mod extract;
mod inspect;
mod modify;
mod object_builder;
mod operators;
mod order_key;
mod path;
mod reader;
mod to_json;
mod transform;
mod typed;
mod value;
mod variant;

use crate::define::{Body, Function};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Expr;

pub(crate) use arguments::json_field;
pub use construct::{json_unquote, jsonb_key, normal_jsonb};
pub(crate) use operators::JsonOperators;
pub(crate) use to_json::{key, write};
pub(crate) use variant::element;
pub use variant::{VARIANT_COMPARED, VariantPath, variant_column, variants_of, variants_of_json};

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    inspect::FUNCTIONS,
    modify::FUNCTIONS,
    extract::FUNCTIONS,
    typed::FUNCTIONS,
    construct::FUNCTIONS,
    transform::FUNCTIONS,
    variant::FUNCTIONS,
];

/// A call of a function of this area.
///
/// # Errors
/// `Internal` for one that is not in the table.
pub fn call(name: &str, arguments: Vec<Expr>) -> Result<Expr> {
    let mut all = FUNCTIONS.iter().flat_map(|group| group.iter());
    match all.find(|function| function.name == name).map(|function| function.body) {
        Some(Body::Udf(make)) => Ok(make().call(arguments)),
        _ => internal_err!("function `{name}` does not exist"),
    }
}
