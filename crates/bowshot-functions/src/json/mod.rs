//! JSON: functions and operators on text that is JSON.
//!
//! A document is plain UTF-8 text, whose field names Arrow's canonical extension type `arrow.json` where a function gives one.
//! Numbers stay the text that they are, members keep their order; what is changed comes back in its shortest form, what is
//! taken out as it was written. `reader` reads text, `value` is its tree, `path` leads into it, `to_json` makes JSON of other
//! values. Text that is no JSON is an error in PostgreSQL's words.

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
pub use construct::{jsonb_key, normal_jsonb};
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
