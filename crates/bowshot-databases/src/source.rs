//! One database: its connections, and what is known of its tables. What it has said is believed for a while, and what it
//! could not say too, so that who lists all tables does not wait again and again for a database that is not there.

use crate::databases::Told;
use crate::describe::{self, Described};
use crate::fault::Fault;
use crate::pool::Pool;
use crate::settings::{DatabaseSettings, Kind};
use bowshot_api::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tables of one database whose columns are remembered.
const MAX_KNOWN: usize = 4_096;
/// How long a failure is believed by who lists the tables of all databases, unless something goes right meanwhile; and by who
/// asks for a table.
const FAILURE: Duration = Duration::from_secs(30);
const FAILURE_OF_ONE: Duration = Duration::from_secs(1);

type Tables = Arc<Vec<(String, String)>>;
type Columns = HashMap<(String, String), (Instant, Arc<Described>)>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) settings: Arc<DatabaseSettings>,
    pub(crate) pool: Arc<Pool>,
    /// Whether a statement has opened it.
    pub(crate) attached: bool,
    /// One asks at a time, and the others take what it was told.
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

    /// Schemas and tables; none where the database does not answer.
    pub(crate) async fn listed(&self) -> Tables {
        self.listing(FAILURE).await
    }

    async fn listing(&self, failure: Duration) -> Tables {
        let mut listing = self.listing.lock().await;
        if let Some((since, known)) = listing.as_ref() {
            let believed = if known.is_ok() { self.settings.cache_ttl } else { failure };
            if since.elapsed() < believed {
                return known.clone().unwrap_or_default();
            }
        }
        let listed = self.noted(describe::listed(&self.pool).await).map(Arc::new);
        if let Err(error) = &listed {
            tracing::warn!(database = %self.settings.name, %error, "the tables of a database cannot be listed");
        }
        let known = listed.map_err(|error| error.to_string());
        let tables = known.clone().unwrap_or_default();
        *listing = Some((Instant::now(), known));
        tables
    }

    /// How many tables were listed last, if they were.
    pub(crate) fn known(&self) -> Option<usize> {
        let listing = self.listing.try_lock().ok()?;
        listing.as_ref().and_then(|(_, known)| known.as_ref().ok()).map(|tables| tables.len())
    }

    /// Whether a schema may have tables, as far as that is known without asking.
    pub(crate) fn may_have_schema(&self, schema: &str) -> bool {
        let allowed = &self.settings.schemas;
        if !allowed.is_empty() && !allowed.iter().any(|allowed| allowed == schema) {
            return false;
        }
        let Ok(listing) = self.listing.try_lock() else { return true };
        match listing.as_ref() {
            Some((since, Ok(tables))) if since.elapsed() < self.settings.cache_ttl => {
                tables.iter().any(|(known, _)| known == schema) || tables.is_empty()
            }
            _ => true,
        }
    }

    /// A table by its exact name.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) async fn described(&self, schema: &str, table: &str) -> Result<Option<Arc<Described>>> {
        let name = (schema.to_owned(), table.to_owned());
        if let Some((since, known)) = lock(&self.columns).get(&name)
            && since.elapsed() < self.settings.cache_ttl
        {
            return Ok(Some(Arc::clone(known)));
        }
        if self.settings.kind == Kind::FlightSql && !self.listing(FAILURE_OF_ONE).await.contains(&name) {
            // A server that does not answer has no tables in the list.
            return match self.problem() {
                Some(problem) => Err(Fault::Unreachable(problem).of(&self.settings)),
                None => Ok(None),
            };
        }
        let found = self.noted(describe::described(&self.pool, schema, table).await)?;
        let Some(found) = found.map(Arc::new) else { return Ok(None) };
        let mut columns = lock(&self.columns);
        if columns.len() >= MAX_KNOWN {
            columns.retain(|_, (since, _)| since.elapsed() < self.settings.cache_ttl);
        }
        if columns.len() < MAX_KNOWN {
            columns.insert(name, (Instant::now(), Arc::clone(&found)));
        }
        Ok(Some(found))
    }

    /// Forgets the columns of a table, which may have changed.
    pub(crate) fn forget(&self, schema: &str, table: &str) {
        lock(&self.columns).remove(&(schema.to_owned(), table.to_owned()));
    }

    /// What `system.databases` tells of it.
    pub(crate) fn told(&self) -> Told {
        Told {
            name: self.settings.name.clone(),
            kind: self.settings.kind.name(),
            place: self.settings.place.to_string(),
            read_only: self.settings.read_only,
            attached: self.attached,
            pool: Some(self.settings.pool),
            connections: Some(self.pool.open()),
            tables: self.known(),
            problem: self.problem(),
        }
    }

    /// What went wrong last, until something has gone right.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// The error as it is told, which is remembered.
    pub(crate) fn noted<T>(&self, done: Result<T, Fault>) -> Result<T> {
        match done {
            Ok(done) => {
                // It is back, and so are its tables.
                if lock(&self.problem).take().is_some()
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
                    Fault::Unreachable(_)
                        | Fault::Refused
                        | Fault::Late(_)
                        | Fault::Busy(_)
                        | Fault::Driver(_)
                ) {
                    *lock(&self.problem) = Some(fault.to_string());
                }
                Err(fault.of(&self.settings))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error for a database that is not there.
pub(crate) fn unknown(name: &str) -> Error {
    Error::not_found(format!("there is no database `{name}`"))
        .with_hint("`SELECT * FROM system.databases` lists them")
}
