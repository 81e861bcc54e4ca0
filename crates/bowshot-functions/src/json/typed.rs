//! Functions of the crate `datafusion-functions-json` with one result type. Its `json_get` returns a union, which is no type of SQL.

use crate::define::{Function, made};
use datafusion_functions_json::udfs;

pub(crate) const FUNCTIONS: &[Function] = &[
    made("json_as_text", "the part that keys and indexes lead to, as text", udfs::json_as_text_udf),
    made(
        "json_get_array",
        "the array that keys and indexes lead to, as a list of JSON texts",
        udfs::json_get_array_udf,
    ),
    made(
        "json_get_bool",
        "the boolean that keys and indexes lead to; NULL if it is none",
        udfs::json_get_bool_udf,
    ),
    made("json_get_float", "the number that keys and indexes lead to, as DOUBLE", udfs::json_get_float_udf),
    made("json_get_int", "the number that keys and indexes lead to, as BIGINT", udfs::json_get_int_udf),
    made("json_get_json", "the part that keys and indexes lead to, as JSON text", udfs::json_get_json_udf),
    made(
        "json_get_str",
        "the string that keys and indexes lead to; NULL if it is none",
        udfs::json_get_str_udf,
    ),
];
