//! Strings: PostgreSQL's functions, and those that people bring along from DuckDB, MySQL and Spark.

mod alike;
mod concat;
pub(crate) mod encoding;
mod format;
mod lengths;
mod letters;
mod murmur;
mod pad;
mod paths;
mod pieces;
mod printf;
mod quote;
mod regex;
mod regex_functions;
mod regex_replace;
mod stock;
mod uuids;

use crate::define::Function;

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    stock::FUNCTIONS,
    pad::FUNCTIONS,
    pieces::FUNCTIONS,
    paths::FUNCTIONS,
    uuids::FUNCTIONS,
    letters::FUNCTIONS,
    murmur::FUNCTIONS,
    alike::FUNCTIONS,
    quote::FUNCTIONS,
    format::FUNCTIONS,
    encoding::FUNCTIONS,
    regex_functions::FUNCTIONS,
    regex_replace::FUNCTIONS,
];
