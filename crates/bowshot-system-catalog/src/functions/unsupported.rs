//! Functions of other servers that are refused, each with the reason.

use crate::functions::{FunctionSpec, LONG, spec};
use crate::listing::external;
use bowshot_api::Error;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

pub(crate) static FUNCTIONS: &[FunctionSpec] = &[spec("benchmark", (2, 2), LONG, |_| {
    refused("benchmark", "`EXPLAIN ANALYZE` shows where the time of a query goes")
})];

fn refused(name: &str, hint: &str) -> Result<ScalarValue> {
    Err(external(Error::unsupported(format!("`{name}` is not supported")).with_hint(hint)))
}
