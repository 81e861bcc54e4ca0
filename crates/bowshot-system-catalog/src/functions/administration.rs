//! What PostgreSQL's clients ask about the server and its upkeep: sizes, rights as texts, encodings.

use crate::client::Client;
use crate::functions::{BOOL, Call, FunctionSpec, INT, LONG, LONGS, TEXT, spec, text};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const NONE: (usize, usize) = (0, 0);
const ONE: (usize, usize) = (1, 1);
const INSTANT: fn() -> DataType = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("pg_tablespace_location", ONE, TEXT, |_| text("")),
    spec("pg_tablespace_size", ONE, LONG, all_bytes),
    spec("pg_database_size", ONE, LONG, all_bytes),
    spec("pg_tablespace_databases", ONE, LONGS, |_| ScalarValue::try_from(&LONGS())),
    // Nobody has given or taken a right.
    spec("acldefault", (2, 2), TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("row_security_active", ONE, BOOL, |_| truth(false)),
    spec("pg_is_other_temp_schema", ONE, BOOL, |_| truth(false)),
    spec("pg_jit_available", NONE, BOOL, |_| truth(false)),
    spec("pg_is_wal_replay_paused", NONE, BOOL, |_| truth(false)),
    spec("pg_char_to_encoding", ONE, INT, encoding),
    spec("pg_client_encoding", NONE, TEXT, |_| text("UTF8")),
    spec("getdatabaseencoding", NONE, TEXT, |_| text("UTF8")),
    spec("pg_postmaster_start_time", NONE, INSTANT, started),
    spec("pg_conf_load_time", NONE, INSTANT, started),
    spec("pg_blocking_pids", ONE, LONGS, |_| {
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&[], &DataType::Int64)))
    }),
    spec("pg_collation_for", ONE, TEXT, |_| text("\"default\"")),
    spec("pg_database_collation_actual_version", ONE, TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("pg_collation_actual_version", ONE, TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("pg_stat_get_numscans", ONE, LONG, |_| Ok(ScalarValue::from(0_i64))),
    spec("pg_describe_object", (3, 3), TEXT, |_| Ok(ScalarValue::Utf8(None))),
    spec("pg_sequence_last_value", ONE, LONG, |_| Ok(ScalarValue::Int64(None))),
    spec("pg_trigger_depth", NONE, INT, |_| Ok(ScalarValue::from(0_i32))),
    spec("pg_current_xact_id_if_assigned", NONE, LONG, |_| Ok(ScalarValue::Int64(None))),
    spec("txid_current_if_assigned", NONE, LONG, |_| Ok(ScalarValue::Int64(None))),
];

/// Functions that act on sessions of the same user, each time that they are called.
pub(crate) static CHANGING: &[FunctionSpec] = &[
    spec("pg_cancel_backend", ONE, BOOL, |call| to_session(call, |client, n| client.cancel_statements(n))),
    spec("pg_terminate_backend", (1, 2), BOOL, |call| to_session(call, |client, n| client.end_session(n))),
];

/// What is done to the session of a number; whether there is one.
fn to_session(call: &Call<'_>, act: fn(&dyn Client, i32) -> bool) -> Result<ScalarValue> {
    let Some(number) = call.number(0) else { return Ok(ScalarValue::Boolean(None)) };
    let client = call.facts.client.get();
    let done =
        i32::try_from(number).is_ok_and(|number| client.is_some_and(|client| act(client.as_ref(), number)));
    truth(done)
}

fn truth(is: bool) -> Result<ScalarValue> {
    Ok(ScalarValue::from(is))
}

/// Bytes of all tables: there is one place for them.
fn all_bytes(call: &Call<'_>) -> Result<ScalarValue> {
    let pinned = call.pinned();
    let bytes: u64 = pinned.shared().tables().map(|(_, table)| table.bytes()).sum();
    Ok(ScalarValue::from(bytes.cast_signed()))
}

fn encoding(call: &Call<'_>) -> Result<ScalarValue> {
    let is_utf8 =
        call.text(0).map(|name| matches!(name.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode"));
    Ok(ScalarValue::Int32(is_utf8.map(|is| if is { 6 } else { -1 })))
}

/// When the first session asked, which is close to the start.
fn started(_: &Call<'_>) -> Result<ScalarValue> {
    static STARTED: OnceLock<i64> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
    let zone = Some("UTC".into());
    Ok(ScalarValue::TimestampMicrosecond(Some(*STARTED.get_or_init(now)), zone))
}
