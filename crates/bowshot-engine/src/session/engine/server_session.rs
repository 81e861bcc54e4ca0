//! Sessions of the server itself, for the materialized views that it makes.

use super::Engine;
use crate::plan;
use crate::session::EngineSession;
use bowshot_api::{Claims, Principal, Result};
use bowshot_sql::DialectName;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// Whose statements they are. Nobody logs in as that.
pub const SERVER_NAME: &str = "bowshot (server)";
/// How long one statement may take.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Somebody who may read and make everything.
pub(super) fn server_principal() -> Principal {
    let claims =
        Claims { issuer: "bowshot".to_owned(), roles: BTreeSet::new(), admin: true, local_users: true };
    Principal::claimed(SERVER_NAME, claims, SystemTime::now() + LIFETIME)
}

/// A session of the server, in which names that do not say theirs are in a catalog and a schema. Its statements run on one thread.
pub(super) fn server_session(
    engine: &Engine,
    dialect: DialectName,
    (catalog, schema): (&str, &str),
) -> Result<EngineSession> {
    let session = engine.open_session(&server_principal())?;
    if let Some(dialect) = plan::parser_dialect(dialect.as_str()) {
        session.set_config("datafusion.sql_parser.dialect", &dialect.to_string())?;
    }
    session.set_config("datafusion.catalog.default_catalog", catalog)?;
    session.set_config("datafusion.catalog.default_schema", schema)?;
    session.run_in_background()?;
    Ok(session)
}

impl EngineSession {
    /// Leaves most of the machine to others from now on: each of its plans runs on one thread.
    ///
    /// # Errors
    /// Does not happen with a number.
    pub fn run_in_background(&self) -> Result<()> {
        self.set_config("datafusion.execution.target_partitions", "1")
    }
}
