//! Strings: PostgreSQL's functions, and those that people bring along from DuckDB, MySQL and Spark.

mod characters;
mod concat;
mod datafusion_functions;
pub(crate) mod encoding;
mod format;
mod lengths;
mod murmur;
mod pad;
mod paths;
mod printf;
mod quote;
mod regex;
mod regex_functions;
mod regex_replace;
mod similarity;
mod substrings;
mod uuids;

use crate::define::Function;

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    datafusion_functions::FUNCTIONS,
    pad::FUNCTIONS,
    substrings::FUNCTIONS,
    paths::FUNCTIONS,
    uuids::FUNCTIONS,
    characters::FUNCTIONS,
    murmur::FUNCTIONS,
    similarity::FUNCTIONS,
    quote::FUNCTIONS,
    format::FUNCTIONS,
    encoding::FUNCTIONS,
    regex_functions::FUNCTIONS,
    regex_replace::FUNCTIONS,
];
