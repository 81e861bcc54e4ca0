//! A connection to MySQL or MariaDB. It blocks as a driver does: the client runs on a small runtime of its own, on the thread of the
//! statement. A cancelled statement ends here at once; the server, which would not notice, gets a KILL over a second connection.

use super::rows::Rows;
use super::{connect, error};
use crate::cancellation::Cancellation;
use crate::columns::Column;
use crate::error::DatabaseError;
use crate::settings::DatabaseSettings;
use adbc_core::CancelHandle;
use adbc_core::error::{Error as AdbcError, Status};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Longest wait for a clean disconnect.
const GOOD_BYE: Duration = Duration::from_millis(500);

pub(crate) struct Connection {
    /// Dropped before its runtime.
    conn: Option<Conn>,
    waiter: ConnectionRuntime,
    /// The connection id of the server.
    id: u64,
    options: Opts,
    pub(super) settings: Arc<DatabaseSettings>,
    /// Whether no statement is left on it.
    clean: bool,
}

/// The runtime of a connection. Dropping it does not wait.
struct ConnectionRuntime(Option<Runtime>);

/// A connection that is taken for a statement.
pub(super) struct Work<'a> {
    runtime: &'a Runtime,
    conn: &'a mut Conn,
    state: Arc<StatementState>,
    clean: &'a mut bool,
}

/// Whether a statement was cancelled, and whether it has ended.
#[derive(Default)]
pub(super) struct StatementState {
    stopped: Notify,
    over: AtomicBool,
}

impl Connection {
    /// Connects, logs in and sets up the session.
    pub(crate) fn open(settings: &Arc<DatabaseSettings>) -> Result<Self, DatabaseError> {
        let options = connect::options(settings)?;
        let waiter = ConnectionRuntime::new()?;
        let connecting = async { timeout(settings.connect_timeout, connect::connected(&options)).await };
        let runtime = waiter.runtime()?;
        // The client panics when a server asks for an authentication method that it was built without.
        let connected = catch_unwind(AssertUnwindSafe(|| runtime.block_on(connecting)));
        let (conn, id) = match connected {
            Ok(Ok(connected)) => connected.map_err(|error| error::connecting(&error, settings))?,
            Ok(Err(_)) => return Err(DatabaseError::Timeout(format!("{:?}", settings.connect_timeout))),
            Err(_) => {
                return Err(DatabaseError::Unreachable(
                    "its authentication method is not supported".to_owned(),
                ));
            }
        };
        Ok(Self { conn: Some(conn), waiter, id, options, settings: Arc::clone(settings), clean: true })
    }

    /// Starts a statement with rows of these columns, or of its own ones if none are given.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        columns: &[Arc<Column>],
        cancellation: &Cancellation,
    ) -> Result<Rows<'_>, DatabaseError> {
        let settings = Arc::clone(&self.settings);
        let Work { runtime, conn, state, clean } = self.work(cancellation)?;
        // The binary protocol has exact floating-point numbers.
        let begun = runtime.block_on(state.unless_cancelled(conn.exec_iter(sql, Params::Empty)))?;
        if begun.is_err() {
            state.end();
        }
        let result = begun.map_err(|error| error::running(&error, &settings))?;
        Rows::new((runtime, state, clean), result, columns, settings)
    }

    /// Runs a statement without rows.
    pub(crate) fn execute(&mut self, sql: &str, cancellation: &Cancellation) -> Result<(), DatabaseError> {
        let settings = Arc::clone(&self.settings);
        self.work(cancellation)?.done(&settings, async |conn: &mut Conn| conn.query_drop(sql).await)
    }

    /// Takes the connection for a statement that can be cancelled from now on.
    pub(super) fn work(&mut self, cancellation: &Cancellation) -> Result<Work<'_>, DatabaseError> {
        let state = Arc::<StatementState>::default();
        let kill = KillConnection {
            id: self.id,
            options: self.options.clone(),
            state: Arc::clone(&state),
            patience: self.settings.connect_timeout,
        };
        if !cancellation.arm_with(Box::new(kill)) {
            return Err(DatabaseError::Cancelled);
        }
        self.clean = false;
        let conn = self
            .conn
            .as_mut()
            .ok_or_else(|| DatabaseError::Unreachable("its connection is closed".to_owned()))?;
        Ok(Work { runtime: self.waiter.runtime()?, conn, state, clean: &mut self.clean })
    }
}

impl Work<'_> {
    /// Runs a call without rows.
    pub(super) fn done<T>(
        self,
        settings: &DatabaseSettings,
        work: impl AsyncFnOnce(&mut Conn) -> mysql_async::Result<T>,
    ) -> Result<T, DatabaseError> {
        let Self { runtime, conn, state, clean } = self;
        let done = runtime.block_on(state.unless_cancelled(work(conn)))?;
        state.end();
        *clean = done.is_ok();
        done.map_err(|error| error::running(&error, settings))
    }
}

impl StatementState {
    /// Waits for the work or a cancellation.
    pub(super) async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, DatabaseError> {
        tokio::select! {
            biased;
            () = self.stopped.notified() => Err(DatabaseError::Cancelled),
            done = work => Ok(done),
        }
    }

    /// Marks the statement as ended.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // A clean connection is closed properly, so that the server does not count an aborted one. Others would have to read
        // the remaining rows first.
        if self.clean
            && Handle::try_current().is_err()
            && let Ok(runtime) = self.waiter.runtime()
        {
            let _ = runtime.block_on(async { timeout(GOOD_BYE, conn.disconnect()).await });
        }
    }
}

impl ConnectionRuntime {
    fn new() -> Result<Self, DatabaseError> {
        let built = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let runtime =
            built.map_err(|error| DatabaseError::Unreachable(format!("cannot start a runtime: {error}")))?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> Result<&Runtime, DatabaseError> {
        self.0.as_ref().ok_or_else(|| DatabaseError::Unreachable("its connection is closed".to_owned()))
    }
}

impl Drop for ConnectionRuntime {
    fn drop(&mut self) {
        // A name lookup may still run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Cancels a statement here, and on the server over a second connection.
struct KillConnection {
    id: u64,
    options: Opts,
    state: Arc<StatementState>,
    patience: Duration,
}

impl CancelHandle for KillConnection {
    fn try_cancel(&self) -> Result<(), AdbcError> {
        if self.state.over.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.stopped.notify_one();
        let failed = || AdbcError::with_message_and_status("cannot reach the server", Status::IO);
        let waiter = ConnectionRuntime::new().map_err(|_| failed())?;
        let runtime = waiter.runtime().map_err(|_| failed())?;
        let kill = async {
            let mut conn = Conn::new(self.options.clone()).await?;
            conn.query_drop(format!("KILL {}", self.id)).await?;
            conn.disconnect().await
        };
        match runtime.block_on(async { timeout(self.patience, kill).await }) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(failed()),
        }
    }
}
