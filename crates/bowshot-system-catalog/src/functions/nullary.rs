//! Functions without arguments, and those about the schemas in force.

use crate::client::Flavour;
use crate::functions::{BOOL, Call, FunctionSpec, INT, LONG, TEXT, TEXTS, text, texts, version};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const NONE: (usize, usize) = (0, 0);

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    FunctionSpec {
        name: "version",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(version(call.flavour())),
    },
    FunctionSpec {
        name: "current_database",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(call.catalog()),
    },
    FunctionSpec {
        name: "current_catalog",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(call.catalog()),
    },
    FunctionSpec {
        name: "current_schema",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(call.schema()),
    },
    FunctionSpec { name: "schema", arguments: NONE, returns: TEXT, value: |call| text(call.schema()) },
    FunctionSpec {
        // To MySQL a database is what others call a schema.
        name: "database",
        arguments: NONE,
        returns: TEXT,
        value: |call| match call.flavour() {
            Flavour::MySql => text(call.schema()),
            Flavour::Bowshot | Flavour::Postgres => text(call.catalog()),
        },
    },
    FunctionSpec {
        name: "current_schemas",
        arguments: (1, 1),
        returns: TEXTS,
        value: |call| {
            let searched = call.schemas();
            let (mut schemas, is_all) = (Vec::new(), call.truth(0) == Some(true));
            // PostgreSQL's clients look for each of them in `pg_namespace`.
            schemas.extend((is_all && call.flavour() != Flavour::Postgres).then_some("temp"));
            schemas.extend(searched.iter().map(String::as_str));
            schemas.extend(is_all.then_some("pg_catalog"));
            texts(&schemas)
        },
    },
    FunctionSpec {
        name: "user",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(&call.facts.principal.name),
    },
    FunctionSpec {
        name: "system_user",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(&call.facts.principal.name),
    },
    FunctionSpec {
        name: "current_role",
        arguments: NONE,
        returns: TEXT,
        value: |call| text(&call.facts.principal.name),
    },
    FunctionSpec {
        name: "connection_id",
        arguments: NONE,
        returns: LONG,
        value: |call| {
            Ok(ScalarValue::Int64(call.facts.client.get().map(|client| i64::from(client.number()))))
        },
    },
    FunctionSpec {
        name: "pg_backend_pid",
        arguments: NONE,
        returns: INT,
        value: |call| Ok(ScalarValue::Int32(call.facts.client.get().map(|client| client.number()))),
    },
    FunctionSpec {
        name: "txid_current",
        arguments: NONE,
        returns: LONG,
        // The number of the state of the tables that is the newest one.
        value: |call| Ok(ScalarValue::from(call.facts.session_access.pin().shared().version().cast_signed())),
    },
    FunctionSpec {
        name: "row_count",
        arguments: NONE,
        returns: LONG,
        value: |call| Ok(ScalarValue::Int64(call.facts.client.get().map(|client| client.changed_rows()))),
    },
    FunctionSpec { name: "last_insert_id", arguments: (0, 1), returns: LONG, value: last_insert_id },
    FunctionSpec {
        name: "inet_client_addr",
        arguments: NONE,
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec {
        name: "inet_client_port",
        arguments: NONE,
        returns: INT,
        value: |_| Ok(ScalarValue::Int32(None)),
    },
    FunctionSpec {
        name: "inet_server_addr",
        arguments: NONE,
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec {
        name: "inet_server_port",
        arguments: NONE,
        returns: INT,
        value: |_| Ok(ScalarValue::Int32(None)),
    },
    FunctionSpec {
        name: "pg_is_in_recovery",
        arguments: NONE,
        returns: BOOL,
        value: |_| Ok(ScalarValue::from(false)),
    },
    FunctionSpec {
        name: "pg_my_temp_schema",
        arguments: NONE,
        returns: LONG,
        value: |_| ScalarValue::try_from(&DataType::Int64),
    },
];

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
