//! Connections to one database: as many as the operator lets be open, kept for a while for the next statement.
//!
//! Everything here but [`Pool::permit`] blocks, and runs on threads that are there for that.

use crate::driver;
use crate::fault::Fault;
use crate::idle::IdleItems;
use crate::link::Link;
use crate::mysql;
use crate::reading::{Stop, rows_of};
use crate::settings::{DatabaseSettings, Kind};
use adbc_core::Database;
use adbc_driver_manager::ManagedDatabase;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) settings: Arc<DatabaseSettings>,
    database: Mutex<Option<ManagedDatabaseSlot>>,
    permits: Arc<Semaphore>,
    idle: IdleItems<OpenConnection>,
    open: Arc<AtomicUsize>,
}

/// The database that a driver has opened.
struct ManagedDatabaseSlot(ManagedDatabase);

impl std::fmt::Debug for ManagedDatabaseSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ManagedDatabase")
    }
}

/// A connection that counts as open until it is dropped.
struct OpenConnection {
    link: Link,
    open: Arc<AtomicUsize>,
}

impl OpenConnection {
    fn new(link: Link, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self { link, open: Arc::clone(open) }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenConnection")
    }
}

/// A connection that somebody has. Dropping it closes it; [`Lease::give_back`] keeps it for others.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    connection: Option<OpenConnection>,
    /// Whether it was used before, and so may be gone without anybody having noticed.
    pub(crate) reused: bool,
    permit: Permit,
}

/// The right to have so many connections.
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

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for the right to have connections.
    pub(crate) async fn permit(&self, connections: usize) -> Result<Permit, Fault> {
        let wanted = u32::try_from(connections.min(self.settings.pool)).unwrap_or(1);
        let permit = Arc::clone(&self.permits).acquire_many_owned(wanted);
        match timeout(self.settings.timeout, permit).await {
            Ok(Ok(permit)) => Ok(Arc::new(permit)),
            Ok(Err(_)) | Err(_) => Err(Fault::Busy(self.settings.pool)),
        }
    }

    /// A connection. May block.
    pub(crate) fn lease(self: &Arc<Self>, permit: Permit) -> Result<Lease, Fault> {
        match self.idle.take() {
            Some(kept) => Ok(Lease { pool: Arc::clone(self), connection: Some(kept), reused: true, permit }),
            None => self.new_lease(permit),
        }
    }

    /// A connection that nobody has used. May block.
    pub(crate) fn new_lease(self: &Arc<Self>, permit: Permit) -> Result<Lease, Fault> {
        let link = match self.settings.kind {
            Kind::Mysql => Link::Mysql(Box::new(mysql::Connection::open(&self.settings)?)),
            Kind::Postgres | Kind::Sqlite | Kind::DuckDb | Kind::FlightSql => self.by_driver()?,
        };
        let connection = Some(OpenConnection::new(link, &self.open));
        let mut lease = Lease { pool: Arc::clone(self), connection, reused: false, permit };
        if let Some(words) = driver::first_words(&self.settings) {
            rows_of(lease.connection()?, &words, &Stop::new(), &self.settings)?;
        }
        Ok(lease)
    }

    fn by_driver(&self) -> Result<Link, Fault> {
        let connection = self.database()?.new_connection().map_err(|error| {
            // What a driver remembers of a server may be of one that is gone.
            lock(&self.database).take();
            Fault::connecting(&error, &self.settings)
        })?;
        Ok(Link::Driver(connection))
    }

    fn database(&self) -> Result<ManagedDatabase, Fault> {
        if let Some(database) = lock(&self.database).as_ref() {
            return Ok(database.0.clone());
        }
        // Not under the lock: it may take as long as connecting does.
        let opened = driver::opened(&self.settings)?;
        let mut database = lock(&self.database);
        Ok(database.get_or_insert(ManagedDatabaseSlot(opened)).0.clone())
    }
}

impl Lease {
    pub(crate) fn connection(&mut self) -> Result<&mut Link, Fault> {
        let connection = self.connection.as_mut().map(|connection| &mut connection.link);
        connection.ok_or_else(|| Fault::Unreachable("its connection is gone".to_owned()))
    }

    pub(crate) fn settings(&self) -> Arc<DatabaseSettings> {
        Arc::clone(&self.pool.settings)
    }

    /// Another connection in the place of one that is gone, as those that nobody has are then.
    pub(crate) fn renewed(self) -> Result<Self, Fault> {
        let (pool, permit) = (Arc::clone(&self.pool), Arc::clone(&self.permit));
        drop(self);
        pool.idle.clear();
        pool.new_lease(permit)
    }

    /// Keeps the connection, on which nothing runs and nothing is left, for the next statement.
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.idle.keep(connection);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
