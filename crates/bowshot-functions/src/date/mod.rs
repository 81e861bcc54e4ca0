//! Dates, times, timestamps and intervals: as PostgreSQL has them, with DuckDB's, MySQL's and Spark's further names.
//!
//! Points in time are microseconds since 1970 inside this folder. What has a time zone is taken apart on the clock of its
//! zone.

mod arithmetic;
mod calendar;
mod clock;
mod difference;
mod fields;
mod gathered;
mod intervals;
mod java;
mod make;
mod month_names;
pub(crate) mod parse;
mod part;
mod pattern;
mod percent;
mod pg_number;
mod pg_read;
mod pg_write;
mod trunc;
mod zone;

use crate::define::Function;

pub use calendar::add_in_zone;
pub(crate) use clock::functions as clocks;
pub(crate) use difference::first_day_of;
pub(crate) use fields::date_part;
pub use parse::read_time;

pub(crate) const FUNCTIONS: &[&[Function]] = &[
    fields::FUNCTIONS,
    make::FUNCTIONS,
    arithmetic::FUNCTIONS,
    difference::FUNCTIONS,
    intervals::FUNCTIONS,
    pattern::FUNCTIONS,
    trunc::FUNCTIONS,
    zone::FUNCTIONS,
    clock::FUNCTIONS,
];
