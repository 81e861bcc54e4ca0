//! `has_table_privilege` and its like: whoever may connect may do everything that the server does, and asks about what
//! is seen.

use crate::catalog::functions::{BOOL, Call, Told};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const fn privilege(name: &'static str, arguments: (usize, usize)) -> Told {
    Told { name, arguments, returns: BOOL, value: has }
}

pub(crate) static FUNCTIONS: &[Told] = &[
    privilege("has_any_column_privilege", (2, 3)),
    privilege("has_column_privilege", (3, 4)),
    privilege("has_database_privilege", (2, 3)),
    privilege("has_function_privilege", (2, 3)),
    privilege("has_schema_privilege", (2, 3)),
    privilege("has_sequence_privilege", (2, 3)),
    privilege("has_table_privilege", (2, 3)),
    privilege("has_tablespace_privilege", (2, 3)),
    privilege("has_type_privilege", (2, 3)),
    privilege("pg_has_role", (2, 3)),
];

fn has(call: &Call<'_>) -> Result<ScalarValue> {
    let unknown = call.arguments.iter().any(ScalarValue::is_null);
    Ok(ScalarValue::Boolean((!unknown).then_some(true)))
}
