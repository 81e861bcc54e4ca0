//! One database: its connections, and a cache of its tables and columns. Failures are cached too, so that a list of all tables does not wait
//! for an unreachable database again and again.

use crate::error::DatabaseError;
use crate::kind::Kind;
use crate::metadata::{self, TableMetadata};
use crate::pool::Pool;
use crate::settings::DatabaseSettings;
use crate::status::DatabaseStatus;
use bowshot_api::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most tables of a database with cached columns.
const MAX_CACHED_TABLES: usize = 4_096;
/// How long a failure is cached for lists of all tables, and for one table. A success clears it.
const FAILURE: Duration = Duration::from_secs(30);
const FAILURE_OF_ONE: Duration = Duration::from_secs(1);

type Tables = Arc<Vec<(String, String)>>;
type Columns = HashMap<(String, String), (Instant, Arc<TableMetadata>)>;

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) settings: Arc<DatabaseSettings>,
    pub(crate) pool: Arc<Pool>,
    /// Whether ATTACH opened it.
    pub(crate) attached: bool,
    /// The lock is held during the query: others wait for its answer.
    listing: tokio::sync::Mutex<Option<(Instant, Result<Tables, String>)>>,
    columns: Mutex<Columns>,
    problem: Mutex<Option<String>>,
}

impl Source {
    pub(crate) fn new(settings: DatabaseSettings, attached: bool) -> Arc<Self> {
        let settings = Arc::new(settings);
        Arc::new(Self {
            pool: Pool::new(Arc::clone(&settings)),
            settings,
            attached,
            listing: tokio::sync::Mutex::default(),
            columns: Mutex::default(),
            problem: Mutex::default(),
        })
    }

    /// Schemas and tables; none if the database does not answer.
    pub(crate) async fn listed(&self) -> Tables {
        self.listing(FAILURE).await
    }

    async fn listing(&self, failure: Duration) -> Tables {
        let mut listing = self.listing.lock().await;
        if let Some((since, cached)) = listing.as_ref() {
            let lifetime = if cached.is_ok() { self.settings.cache_ttl } else { failure };
            if since.elapsed() < lifetime {
                return cached.clone().unwrap_or_default();
            }
        }
        let listed = self.record(metadata::list_tables(&self.pool).await).map(Arc::new);
        if let Err(error) = &listed {
            tracing::warn!(database = %self.settings.name, %error, "cannot list the tables of a database");
        }
        let cached = listed.map_err(|error| error.to_string());
        let tables = cached.clone().unwrap_or_default();
        *listing = Some((Instant::now(), cached));
        tables
    }

    /// The number of tables in the last list.
    pub(crate) fn table_count(&self) -> Option<usize> {
        let listing = self.listing.try_lock().ok()?;
        listing.as_ref().and_then(|(_, cached)| cached.as_ref().ok()).map(|tables| tables.len())
    }

    /// Whether a schema may have tables, by cached metadata alone.
    pub(crate) fn may_have_schema(&self, schema: &str) -> bool {
        let allowed = &self.settings.schemas;
        if !allowed.is_empty() && !allowed.iter().any(|allowed| allowed == schema) {
            return false;
        }
        let Ok(listing) = self.listing.try_lock() else { return true };
        match listing.as_ref() {
            Some((since, Ok(tables))) if since.elapsed() < self.settings.cache_ttl => {
                tables.iter().any(|(cached, _)| cached == schema) || tables.is_empty()
            }
            _ => true,
        }
    }

    /// A table by its exact name.
    pub(crate) async fn described(&self, schema: &str, table: &str) -> Result<Option<Arc<TableMetadata>>> {
        let name = (schema.to_owned(), table.to_owned());
        if let Some((since, cached)) = self.columns.lock().get(&name)
            && since.elapsed() < self.settings.cache_ttl
        {
            return Ok(Some(Arc::clone(cached)));
        }
        if self.settings.kind == Kind::FlightSql && !self.listing(FAILURE_OF_ONE).await.contains(&name) {
            // The list of an unreachable server is empty.
            return match self.problem() {
                Some(problem) => Err(DatabaseError::Unreachable(problem).into_public(&self.settings)),
                None => Ok(None),
            };
        }
        let found = self.record(metadata::describe_table(&self.pool, schema, table).await)?;
        let Some(found) = found.map(Arc::new) else { return Ok(None) };
        let mut columns = self.columns.lock();
        if columns.len() >= MAX_CACHED_TABLES {
            columns.retain(|_, (since, _)| since.elapsed() < self.settings.cache_ttl);
        }
        if columns.len() < MAX_CACHED_TABLES {
            columns.insert(name, (Instant::now(), Arc::clone(&found)));
        }
        Ok(Some(found))
    }

    /// Drops the cached columns of a table.
    pub(crate) fn forget(&self, schema: &str, table: &str) {
        self.columns.lock().remove(&(schema.to_owned(), table.to_owned()));
    }

    /// Its row of `system.databases`.
    pub(crate) fn status(&self) -> DatabaseStatus {
        DatabaseStatus {
            name: self.settings.name.clone(),
            kind: self.settings.kind.name(),
            place: self.settings.place.to_string(),
            read_only: self.settings.read_only,
            attached: self.attached,
            pool: Some(self.settings.pool),
            connections: Some(self.pool.open()),
            tables: self.table_count(),
            problem: self.problem(),
        }
    }

    /// The last error, until a success.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    /// The public error, which is recorded.
    pub(crate) fn record<T>(&self, done: Result<T, DatabaseError>) -> Result<T> {
        match done {
            Ok(done) => {
                // The database is back, so its tables are listed again.
                if self.problem.lock().take().is_some()
                    && let Ok(mut listing) = self.listing.try_lock()
                    && matches!(listing.as_ref(), Some((_, Err(_))))
                {
                    *listing = None;
                }
                Ok(done)
            }
            Err(fault) => {
                if matches!(
                    fault,
                    DatabaseError::Unreachable(_)
                        | DatabaseError::LoginRefused
                        | DatabaseError::Timeout(_)
                        | DatabaseError::Busy(_)
                        | DatabaseError::Driver(_)
                ) {
                    *self.problem.lock() = Some(fault.to_string());
                }
                Err(fault.into_public(&self.settings))
            }
        }
    }
}

pub(crate) fn not_found(name: &str) -> Error {
    Error::not_found(format!("the database `{name}` does not exist"))
        .with_hint("`SELECT * FROM system.databases` lists them")
}
