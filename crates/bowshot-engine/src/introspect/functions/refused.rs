//! Functions of other servers that are refused, each with the reason.

use super::{Call, LONG, TEXT, Told};
use crate::introspect::listing::external;
use bowshot_api::Error;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const SLEEP: &str = "a statement that sleeps holds a place that others wait for: let the client wait";

pub(super) static FUNCTIONS: &[Told] = &[
    Told { name: "pg_sleep", arguments: (1, 1), returns: TEXT, value: |_| refused("pg_sleep", SLEEP) },
    Told { name: "sleep", arguments: (1, 1), returns: LONG, value: |_| refused("sleep", SLEEP) },
    Told {
        name: "benchmark",
        arguments: (2, 2),
        returns: LONG,
        value: |_| refused("benchmark", "`EXPLAIN ANALYZE` tells where the time of a query goes"),
    },
    Told {
        name: "pg_cancel_backend",
        arguments: (1, 1),
        returns: TEXT,
        value: |_| refused("pg_cancel_backend", "send `KILL QUERY id`"),
    },
    Told {
        name: "pg_terminate_backend",
        arguments: (1, 2),
        returns: TEXT,
        value: |_| refused("pg_terminate_backend", "send `KILL SESSION id`"),
    },
    Told { name: "set_config", arguments: (3, 3), returns: TEXT, value: set_config },
];

fn refused(name: &str, hint: &str) -> Result<ScalarValue> {
    Err(external(Error::unsupported(format!("`{name}` is not supported")).with_hint(hint)))
}

/// A query changes nothing, so that it may be asked again.
fn set_config(call: &Call<'_>) -> Result<ScalarValue> {
    let name = call.text(0).unwrap_or_default();
    refused("set_config", &format!("send `SET {name} = value` as a statement of its own"))
}
