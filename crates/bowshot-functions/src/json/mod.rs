//! JSON: functions and operators on text that is JSON.
//!
//! A document is plain UTF-8 text, whose field names Arrow's canonical extension type `arrow.json` where a function gives one.
//! Numbers stay the text that they are, members keep their order; what is changed comes back in its shortest form, what is
//! taken out as it was written. `reader` reads text, `value` is its tree, `path` leads into it, `write` makes JSON of other
//! values. Text that is no JSON is an error in PostgreSQL's words.

mod about;
mod change;
mod extract;
mod kept;
mod make;
mod operators;
mod order_key;
mod pairs;
mod path;
mod reader;
mod rows;
mod transform;
mod value;
mod write;

use crate::define::Function;

pub use make::{jsonb_key, normal_jsonb};
pub(crate) use operators::JsonOperators;
pub(crate) use rows::json_field;
pub(crate) use write::{key, write};

/// All functions of this area.
pub(crate) const FUNCTIONS: &[&[Function]] = &[
    about::FUNCTIONS,
    change::FUNCTIONS,
    extract::FUNCTIONS,
    kept::FUNCTIONS,
    make::FUNCTIONS,
    transform::FUNCTIONS,
];

fn all() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().flat_map(|group| group.iter())
}
