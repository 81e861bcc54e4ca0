//! SQL functions that DataFusion lacks or defines otherwise than PostgreSQL and DuckDB. `registry` lists every function, by area; `define`
//! turns a row of that list into a DataFusion function; `values` reads arguments and builds results. A result above `values::MOST_BYTES` for
//! one batch is refused.

mod aggregate;
mod condition;
mod date;
mod define;
mod json;
mod nested;
mod number;
mod plan_function;
mod planner;
mod registry;
mod scalar_udf;
mod stock_methods;
mod table;
mod text;
mod values;
mod window;

pub use aggregate::{interval_length, scaled_interval};
pub use condition::balanced;
pub use date::{add_in_zone, read_time, read_time_of_day};
pub use json::{VARIANT_COMPARED, VariantPath, variant_column, variants_of, variants_of_json};
pub use json::{call as json_call, json_unquote, jsonb_key, normal_jsonb};
pub use plan_function::{PlanFunction, plan_function, plan_function_of};
pub use planner::planners;
pub use registry::{page, register};
