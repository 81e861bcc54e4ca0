//! What PostgreSQL's clients ask about the server and its upkeep: locks, sizes, rights as texts, encodings.

use crate::functions::{BOOL, Call, FunctionSpec, INT, LONG, LONGS, TEXT, text};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const NONE: (usize, usize) = (0, 0);
const ONE: (usize, usize) = (1, 1);
const INSTANT: fn() -> DataType = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    // A function without a value shows an empty text.
    FunctionSpec { name: "pg_advisory_unlock_all", arguments: NONE, returns: TEXT, value: |_| text("") },
    FunctionSpec { name: "pg_advisory_unlock", arguments: (1, 2), returns: BOOL, value: |_| truth(false) },
    FunctionSpec {
        name: "pg_advisory_unlock_shared",
        arguments: (1, 2),
        returns: BOOL,
        value: |_| truth(false),
    },
    FunctionSpec { name: "pg_tablespace_location", arguments: ONE, returns: TEXT, value: |_| text("") },
    FunctionSpec { name: "pg_tablespace_size", arguments: ONE, returns: LONG, value: all_bytes },
    FunctionSpec { name: "pg_database_size", arguments: ONE, returns: LONG, value: all_bytes },
    FunctionSpec {
        name: "pg_tablespace_databases",
        arguments: ONE,
        returns: LONGS,
        value: |_| ScalarValue::try_from(&LONGS()),
    },
    // Nobody has given or taken a right.
    FunctionSpec {
        name: "acldefault",
        arguments: (2, 2),
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec { name: "row_security_active", arguments: ONE, returns: BOOL, value: |_| truth(false) },
    FunctionSpec { name: "pg_is_other_temp_schema", arguments: ONE, returns: BOOL, value: |_| truth(false) },
    FunctionSpec { name: "pg_jit_available", arguments: NONE, returns: BOOL, value: |_| truth(false) },
    FunctionSpec { name: "pg_is_wal_replay_paused", arguments: NONE, returns: BOOL, value: |_| truth(false) },
    FunctionSpec { name: "pg_char_to_encoding", arguments: ONE, returns: INT, value: encoding },
    FunctionSpec { name: "pg_client_encoding", arguments: NONE, returns: TEXT, value: |_| text("UTF8") },
    FunctionSpec { name: "getdatabaseencoding", arguments: NONE, returns: TEXT, value: |_| text("UTF8") },
    FunctionSpec { name: "pg_postmaster_start_time", arguments: NONE, returns: INSTANT, value: started },
    FunctionSpec { name: "pg_conf_load_time", arguments: NONE, returns: INSTANT, value: started },
    FunctionSpec {
        name: "pg_blocking_pids",
        arguments: ONE,
        returns: LONGS,
        value: |_| Ok(ScalarValue::List(ScalarValue::new_list_nullable(&[], &DataType::Int64))),
    },
    FunctionSpec { name: "pg_collation_for", arguments: ONE, returns: TEXT, value: |_| text("\"default\"") },
    FunctionSpec {
        name: "pg_database_collation_actual_version",
        arguments: ONE,
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec {
        name: "pg_collation_actual_version",
        arguments: ONE,
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec {
        name: "pg_stat_get_numscans",
        arguments: ONE,
        returns: LONG,
        value: |_| Ok(ScalarValue::from(0_i64)),
    },
    FunctionSpec {
        name: "pg_describe_object",
        arguments: (3, 3),
        returns: TEXT,
        value: |_| Ok(ScalarValue::Utf8(None)),
    },
    FunctionSpec {
        name: "pg_sequence_last_value",
        arguments: ONE,
        returns: LONG,
        value: |_| Ok(ScalarValue::Int64(None)),
    },
    FunctionSpec {
        name: "pg_trigger_depth",
        arguments: NONE,
        returns: INT,
        value: |_| Ok(ScalarValue::from(0_i32)),
    },
    FunctionSpec {
        name: "pg_current_xact_id_if_assigned",
        arguments: NONE,
        returns: LONG,
        value: |_| Ok(ScalarValue::Int64(None)),
    },
    FunctionSpec {
        name: "txid_current_if_assigned",
        arguments: NONE,
        returns: LONG,
        value: |_| Ok(ScalarValue::Int64(None)),
    },
];

fn truth(is: bool) -> Result<ScalarValue> {
    Ok(ScalarValue::from(is))
}

/// Bytes of all tables: there is one place for them.
fn all_bytes(call: &Call<'_>) -> Result<ScalarValue> {
    let pinned = call.facts.session_access.pin();
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
