//! Dates, times, timestamps and intervals: as PostgreSQL has them, with DuckDB's, MySQL's and Spark's further names.
//!
//! Points in time are microseconds since 1970 inside this folder. What has a time zone is taken apart on the clock of its
//! zone.

mod arithmetic;
mod calendar;
mod clock;
mod constructors;
mod difference;
mod fields;
mod intervals;
mod java_pattern;
mod month_names;
pub(crate) mod parse;
mod parsed_fields;
mod part;
mod pattern;
mod pg_format;
mod pg_number_format;
mod pg_parse;
mod strftime;
mod trunc;
mod zone;

use crate::define::Function;

pub use calendar::add_in_zone;
pub(crate) use clock::functions as clocks;
pub(crate) use difference::first_day_of;
pub(crate) use fields::date_part;
pub use parse::{read_time, read_time_of_day};

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    fields::MADE,
    fields::FUNCTIONS,
    constructors::FUNCTIONS,
    arithmetic::FUNCTIONS,
    difference::FUNCTIONS,
    intervals::FUNCTIONS,
    pattern::FUNCTIONS,
    trunc::FUNCTIONS,
    zone::FUNCTIONS,
    clock::FUNCTIONS,
];
