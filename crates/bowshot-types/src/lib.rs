//! SQL types: what their names mean, what casts between them do, and their values as text. Timestamps have microseconds, so that
//! the years 0001 to 9999 fit; one with a time zone is an instant and is stored in UTC. Order of the analyzer rules: [`sql_casts`],
//! [`meeting_times`], DataFusion's own coercion, [`texts_of_times`].

pub mod casts;
mod custom;
mod dates_of_numbers;
pub mod declared;
pub mod enums;
mod floats;
mod from_text;
pub mod functions;
pub mod layered_table;
mod mysql_integers;
pub mod names;
mod nested_texts;
mod now;
mod numerics;
mod planner;
pub mod result_metadata;
pub mod storage_type;
mod temporal;
mod texts;
mod timestamptz_arithmetic;
mod to_text;
mod uuids;
mod variants;
pub mod zone;

pub use casts::sql_casts;
pub use dates_of_numbers::{
    assigned as assigned_value, assigned_parameter, is_mysql_assigned, lacks_assignment,
    mysql_assigned_values,
};
pub use from_text::reads_strictly;
pub use nested_texts::{OIDS, VECTOR};
pub use planner::Types;
pub use temporal::meeting_times;
pub use texts::texts_of_times;
pub use uuids::{are_lists_of_uuids, are_uuids, is_uuid, with_uuids};
pub use variants::without_variant_order;

/// The functions whose results have other types than DataFusion gives them, and those that casts and operators become.
pub fn registered() -> Vec<datafusion::logical_expr::ScalarUDF> {
    let mut functions =
        vec![now::Now::default().into(), functions::rounded(), functions::cast_to(), to_text::function()];
    functions.extend(dates_of_numbers::functions());
    functions.extend(mysql_integers::functions());
    functions.extend([false, true].map(nested_texts::function));
    functions.extend(variants::functions());
    functions.extend(from_text::functions());
    functions.extend(zone::functions());
    functions.extend(timestamptz_arithmetic::functions());
    functions
}
