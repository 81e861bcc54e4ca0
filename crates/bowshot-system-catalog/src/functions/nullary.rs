//! Functions without arguments, and those about the schemas in force.

use crate::client::Flavour;
use crate::functions::{BOOL, Call, FunctionSpec, INT, LONG, TEXT, TEXTS, spec, text, texts, version};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const NONE: (usize, usize) = (0, 0);

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("version", NONE, TEXT, |call| text(version(call.flavour()))),
    spec("current_database", NONE, TEXT, |call| text(call.catalog())),
    spec("current_catalog", NONE, TEXT, |call| text(call.catalog())),
    spec("current_schema", NONE, TEXT, first_schema),
    spec("schema", NONE, TEXT, first_schema),
    // To MySQL a database is what others call a schema.
    spec("database", NONE, TEXT, |call| match call.flavour() {
        Flavour::MySql => first_schema(call),
        Flavour::Bowshot | Flavour::Postgres => text(call.catalog()),
    }),
    spec("current_schemas", (1, 1), TEXTS, |call| {
        let searched = call.schemas();
        let (mut schemas, is_all) = (Vec::new(), call.truth(0) == Some(true));
        // PostgreSQL's clients look for each of them in `pg_namespace`.
        schemas.extend((is_all && call.flavour() != Flavour::Postgres).then_some("temp"));
        schemas.extend(searched.iter().map(String::as_str));
        schemas.extend(is_all.then_some("pg_catalog"));
        texts(&schemas)
    }),
    spec("user", NONE, TEXT, |call| text(&call.facts.principal.name)),
    spec("system_user", NONE, TEXT, |call| text(&call.facts.principal.name)),
    spec("current_role", NONE, TEXT, |call| text(&call.facts.principal.name)),
    spec("connection_id", NONE, LONG, |call| {
        Ok(ScalarValue::Int64(call.facts.client.get().map(|client| i64::from(client.number()))))
    }),
    spec("pg_backend_pid", NONE, INT, |call| {
        Ok(ScalarValue::Int32(call.facts.client.get().map(|client| client.number())))
    }),
    // The number of the state of the tables that is the newest one.
    spec("txid_current", NONE, LONG, |call| {
        Ok(ScalarValue::from(call.facts.session_access.pin().shared().version().cast_signed()))
    }),
    spec("row_count", NONE, LONG, |call| {
        Ok(ScalarValue::Int64(call.facts.client.get().map(|client| client.changed_rows())))
    }),
    spec("last_insert_id", (0, 1), LONG, last_insert_id),
    spec("inet_client_addr", NONE, TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("inet_client_port", NONE, INT, |_| Ok(ScalarValue::Int32(None))),
    spec("inet_server_addr", NONE, TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("inet_server_port", NONE, INT, |_| Ok(ScalarValue::Int32(None))),
    spec("pg_is_in_recovery", NONE, BOOL, |_| Ok(ScalarValue::from(false))),
    spec("pg_my_temp_schema", NONE, LONG, |_| ScalarValue::try_from(&DataType::Int64)),
];

/// The schema in which things without a schema in their names are made; null where none is there.
fn first_schema(call: &Call<'_>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(call.schemas().into_iter().next()))
}

/// The last number that the server has given, or the one that the call names, which counts as that from now on.
fn last_insert_id(call: &Call<'_>) -> Result<ScalarValue> {
    let Some(client) = call.facts.client.get() else { return Ok(ScalarValue::from(0_i64)) };
    if call.arguments.is_empty() {
        return Ok(ScalarValue::from(client.generated_number()));
    }
    let number = call.number(0);
    client.set_generated_number(number.unwrap_or(0));
    Ok(ScalarValue::Int64(number))
}
