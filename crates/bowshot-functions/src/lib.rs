//! The SQL functions that DataFusion lacks or defines otherwise than PostgreSQL and DuckDB do.
//!
//! `registry` lists every function once, by area; `define` turns a row of that list into what DataFusion calls; `values`
//! reads the arguments of a batch and builds its result. The areas are folders. Nothing here knows tables, sessions or
//! files, and nothing allocates without a limit: a result above `values::MOST_BYTES` for one batch is refused.

mod aggregate;
mod condition;
mod date;
mod define;
mod json;
mod nested;
mod number;
mod planner;
mod registry;
mod scalar_udf;
mod table;
mod text;
mod values;
mod window;

pub use aggregate::{interval_length, scaled_interval};
pub use condition::balanced;
pub use date::{add_in_zone, read_time};
pub use json::{jsonb_key, normal_jsonb};
pub use planner::planners;
pub use registry::{page, register};
