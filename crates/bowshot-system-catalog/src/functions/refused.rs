//! Functions of other servers that are refused, each with the reason.

use crate::functions::{FunctionSpec, LONG, TEXT, spec};
use crate::listing::external;
use bowshot_api::Error;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

const LOCKS: &str =
    "there are no locks that clients take: a transaction that would overwrite another one's change fails";

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[
    spec("benchmark", (2, 2), LONG, |_| {
        refused("benchmark", "`EXPLAIN ANALYZE` tells where the time of a query goes")
    }),
    locked("pg_advisory_lock", (1, 2)),
    locked("pg_advisory_lock_shared", (1, 2)),
    locked("pg_advisory_xact_lock", (1, 2)),
    locked("pg_advisory_xact_lock_shared", (1, 2)),
    locked("pg_try_advisory_lock", (1, 2)),
    locked("pg_try_advisory_lock_shared", (1, 2)),
    locked("pg_try_advisory_xact_lock", (1, 2)),
    locked("pg_try_advisory_xact_lock_shared", (1, 2)),
];

const fn locked(name: &'static str, arguments: (usize, usize)) -> FunctionSpec {
    FunctionSpec { name, arguments, returns: TEXT, value: |_| refused("pg_advisory_lock", LOCKS) }
}

fn refused(name: &str, hint: &str) -> Result<ScalarValue> {
    Err(external(Error::unsupported(format!("`{name}` is not supported")).with_hint(hint)))
}
