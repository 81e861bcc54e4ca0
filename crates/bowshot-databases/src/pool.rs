//! Connections to one database, up to a limit, reused for a while. Everything but [`Pool::permit`] blocks.

use crate::cancellation::Cancellation;
use crate::connection::DatabaseConnection;
use crate::driver;
use crate::error::DatabaseError;
use crate::idle_pool::IdleItems;
use crate::kind::Kind;
use crate::mysql;
use crate::settings::DatabaseSettings;
use adbc_core::Database;
use adbc_driver_manager::ManagedDatabase;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long an unused connection stays open.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) settings: Arc<DatabaseSettings>,
    database: Mutex<Option<ManagedDatabaseSlot>>,
    permits: Arc<Semaphore>,
    idle: IdleItems<OpenConnection>,
    open: Arc<AtomicUsize>,
}

struct ManagedDatabaseSlot(ManagedDatabase);

bowshot_api::debug_fields!(ManagedDatabaseSlot {});

/// A connection that counts as open until it is dropped.
struct OpenConnection {
    connection: DatabaseConnection,
    open: Arc<AtomicUsize>,
}

impl OpenConnection {
    fn new(connection: DatabaseConnection, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self { connection, open: Arc::clone(open) }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

bowshot_api::debug_fields!(OpenConnection {});

/// A connection in use. Dropping it closes it; [`Lease::give_back`] returns it to the pool.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    connection: Option<OpenConnection>,
    /// Whether it was used before, and so may be lost.
    pub(crate) reused: bool,
    permit: Permit,
}

/// Permission to have a number of connections.
pub(crate) type Permit = Arc<OwnedSemaphorePermit>;

impl Pool {
    pub(crate) fn new(settings: Arc<DatabaseSettings>) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(settings.pool));
        Arc::new(Self {
            settings,
            database: Mutex::default(),
            permits,
            idle: IdleItems::new(IDLE),
            open: Arc::default(),
        })
    }

    /// Number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for permission to have connections.
    pub(crate) async fn permit(&self, connections: usize) -> Result<Permit, DatabaseError> {
        let wanted = u32::try_from(connections.min(self.settings.pool)).unwrap_or(1);
        let permit = Arc::clone(&self.permits).acquire_many_owned(wanted);
        match timeout(self.settings.timeout, permit).await {
            Ok(Ok(permit)) => Ok(Arc::new(permit)),
            Ok(Err(_)) | Err(_) => Err(DatabaseError::Busy(self.settings.pool)),
        }
    }

    /// A connection. May block.
    pub(crate) fn lease(self: &Arc<Self>, permit: Permit) -> Result<Lease, DatabaseError> {
        match self.idle.take() {
            Some(kept) => Ok(Lease { pool: Arc::clone(self), connection: Some(kept), reused: true, permit }),
            None => self.new_lease(permit),
        }
    }

    /// A new connection. May block.
    pub(crate) fn new_lease(self: &Arc<Self>, permit: Permit) -> Result<Lease, DatabaseError> {
        let connection = match self.settings.kind {
            Kind::Mysql => DatabaseConnection::Mysql(Box::new(mysql::Connection::open(&self.settings)?)),
            Kind::Postgres | Kind::Sqlite | Kind::DuckDb | Kind::FlightSql => self.by_driver()?,
        };
        let connection = Some(OpenConnection::new(connection, &self.open));
        let mut lease = Lease { pool: Arc::clone(self), connection, reused: false, permit };
        if let Some(sql) = driver::initial_statement(&self.settings) {
            lease.connection()?.query_texts(&sql, &Cancellation::new(), &self.settings)?;
        }
        Ok(lease)
    }

    fn by_driver(&self) -> Result<DatabaseConnection, DatabaseError> {
        let connection = self.database()?.new_connection().map_err(|error| {
            // The driver may have cached something of a server that was replaced.
            self.database.lock().take();
            DatabaseError::from_connect(&error, &self.settings)
        })?;
        Ok(DatabaseConnection::Driver(connection))
    }

    fn database(&self) -> Result<ManagedDatabase, DatabaseError> {
        if let Some(database) = self.database.lock().as_ref() {
            return Ok(database.0.clone());
        }
        // Not under the lock: it may connect.
        let opened = driver::opened(&self.settings)?;
        let mut database = self.database.lock();
        Ok(database.get_or_insert(ManagedDatabaseSlot(opened)).0.clone())
    }
}

impl Lease {
    pub(crate) fn connection(&mut self) -> Result<&mut DatabaseConnection, DatabaseError> {
        let open = self.connection.as_mut().map(|open| &mut open.connection);
        open.ok_or_else(|| DatabaseError::Unreachable("its connection is closed".to_owned()))
    }

    pub(crate) fn settings(&self) -> Arc<DatabaseSettings> {
        Arc::clone(&self.pool.settings)
    }

    /// A new connection instead of a lost one. The unused ones are closed: if one is lost, so are the others.
    pub(crate) fn reconnect(self) -> Result<Self, DatabaseError> {
        let (pool, permit) = (Arc::clone(&self.pool), Arc::clone(&self.permit));
        drop(self);
        pool.idle.clear();
        pool.new_lease(permit)
    }

    /// Returns the connection to the pool. No statement may be left on it.
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.idle.keep(connection);
        }
    }
}
