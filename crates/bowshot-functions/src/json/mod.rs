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

use crate::define::Function;

pub(crate) use arguments::json_field;
pub use construct::{json_unquote, jsonb_key, normal_jsonb};
pub(crate) use operators::JsonOperators;
pub(crate) use to_json::{key, write};

/// All functions of this area.
pub(crate) const FUNCTIONS: &[&[Function]] = &[
    inspect::FUNCTIONS,
    modify::FUNCTIONS,
    extract::FUNCTIONS,
    typed::FUNCTIONS,
    construct::FUNCTIONS,
    transform::FUNCTIONS,
];

fn all() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().flat_map(|group| group.iter())
}
