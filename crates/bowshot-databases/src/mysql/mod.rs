//! MySQL and MariaDB, by a client of their protocol that is part of the server: no driver of theirs speaks ADBC.
//!
//! ```text
//!  rows as batches ◀── rows: values → arrays (values) ◀── binary protocol ◀── Connection ── connect: TLS, login, first words
//!  rows that are added ── adding: arrays → parameters (parameters) ─▶ INSERT of many rows, one transaction
//! ```
//!
//! The client waits on a small runtime of its own for each connection, on the thread of its statement, so that it blocks like a
//! driver does and is nobody else's work. What is cancelled ends here at once; over a second connection the server is told to end
//! it too, since it does not notice by itself that nobody waits.
//!
//! The client gives a row as a list of values, of which texts and bytes are allocated one by one.

mod adding;
mod connect;
mod fault;
mod parameters;
mod rows;
mod values;

pub(crate) use adding::{Destination, add};
pub(crate) use rows::Rows;

use crate::columns::Column;
use crate::fault::Fault;
use crate::reading::Stop;
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

/// How long a server is told good-bye.
const GOOD_BYE: Duration = Duration::from_millis(500);

/// A connection to a server. Everything here blocks, but for what is dropped.
pub(crate) struct Connection {
    /// Goes before the runtime that it waits on.
    conn: Option<Conn>,
    waiting: Waiting,
    /// By which the server knows it.
    id: u64,
    options: Opts,
    settings: Arc<DatabaseSettings>,
    /// Whether nothing is left of a statement on it.
    clean: bool,
}

/// What a connection waits on. Dropping it waits for nothing.
struct Waiting(Option<Runtime>);

/// What a statement needs: where it waits, its connection, how it goes, whether it has left nothing behind.
struct Work<'a> {
    runtime: &'a Runtime,
    conn: &'a mut Conn,
    course: Arc<Course>,
    clean: &'a mut bool,
}

/// How a statement goes: whether somebody has stopped it, and whether it has ended by itself.
#[derive(Default)]
struct Course {
    stopped: Notify,
    over: AtomicBool,
}

impl Connection {
    /// Connects, logs in and says the first words.
    pub(crate) fn open(settings: &Arc<DatabaseSettings>) -> Result<Self, Fault> {
        let options = connect::options(settings)?;
        let waiting = Waiting::new()?;
        let connecting = async { timeout(settings.connect_timeout, connect::connected(&options)).await };
        let runtime = waiting.runtime()?;
        // The client knows ways of login by name that it was built without, and panics when a server asks for one.
        let connected = catch_unwind(AssertUnwindSafe(|| runtime.block_on(connecting)));
        let (conn, id) = match connected {
            Ok(Ok(connected)) => connected.map_err(|error| fault::connecting(&error, settings))?,
            Ok(Err(_)) => return Err(Fault::Late(format!("{:?}", settings.connect_timeout))),
            Err(_) => return Err(Fault::Unreachable("its way of login is not known here".to_owned())),
        };
        Ok(Self { conn: Some(conn), waiting, id, options, settings: Arc::clone(settings), clean: true })
    }

    /// Begins a statement whose rows have these columns, or those that it has by itself if none are named.
    pub(crate) fn begin(
        &mut self,
        sql: &str,
        columns: &[Arc<Column>],
        stop: &Stop,
    ) -> Result<Rows<'_>, Fault> {
        let settings = Arc::clone(&self.settings);
        let Work { runtime, conn, course, clean } = self.work(stop)?;
        // Values come in the binary form, whose floating-point numbers are exact.
        let begun = runtime.block_on(course.unless_stopped(conn.exec_iter(sql, Params::Empty)))?;
        if begun.is_err() {
            course.end();
        }
        let result = begun.map_err(|error| fault::running(&error, &settings))?;
        Rows::new((runtime, course, clean), result, columns, settings)
    }

    /// Runs a statement that gives nothing.
    pub(crate) fn tell(&mut self, sql: &str, stop: &Stop) -> Result<(), Fault> {
        let settings = Arc::clone(&self.settings);
        self.work(stop)?.done(&settings, async |conn: &mut Conn| conn.query_drop(sql).await)
    }

    /// Takes the connection for a statement that `stop` ends from now on.
    fn work(&mut self, stop: &Stop) -> Result<Work<'_>, Fault> {
        let course = Arc::<Course>::default();
        let killer = Killer {
            id: self.id,
            options: self.options.clone(),
            course: Arc::clone(&course),
            patience: self.settings.connect_timeout,
        };
        if !stop.arm_with(Box::new(killer)) {
            return Err(Fault::Cancelled);
        }
        self.clean = false;
        let conn =
            self.conn.as_mut().ok_or_else(|| Fault::Unreachable("its connection is gone".to_owned()))?;
        Ok(Work { runtime: self.waiting.runtime()?, conn, course, clean: &mut self.clean })
    }
}

impl Work<'_> {
    /// Does something whose answer comes at once.
    fn done<T>(
        self,
        settings: &DatabaseSettings,
        work: impl AsyncFnOnce(&mut Conn) -> mysql_async::Result<T>,
    ) -> Result<T, Fault> {
        let Self { runtime, conn, course, clean } = self;
        let done = runtime.block_on(course.unless_stopped(work(conn)))?;
        course.end();
        *clean = done.is_ok();
        done.map_err(|error| fault::running(&error, settings))
    }
}

impl Course {
    /// The work, unless it is stopped before.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            () = self.stopped.notified() => Err(Fault::Cancelled),
            done = work => Ok(done),
        }
    }

    /// There is nothing left to stop.
    fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // Who has nothing open says good-bye, so that the server counts no connection that broke off. Others only go: what they
        // left unread would have to be read before.
        if self.clean
            && Handle::try_current().is_err()
            && let Ok(runtime) = self.waiting.runtime()
        {
            let _ = runtime.block_on(async { timeout(GOOD_BYE, conn.disconnect()).await });
        }
    }
}

impl Waiting {
    fn new() -> Result<Self, Fault> {
        let built = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let runtime = built.map_err(|error| Fault::Unreachable(format!("nothing to wait on: {error}")))?;
        Ok(Self(Some(runtime)))
    }

    fn runtime(&self) -> Result<&Runtime, Fault> {
        self.0.as_ref().ok_or_else(|| Fault::Unreachable("its connection is gone".to_owned()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A name that is still being looked up is nobody's any more.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends a statement: here at once, there over a second connection.
struct Killer {
    id: u64,
    options: Opts,
    course: Arc<Course>,
    patience: Duration,
}

impl CancelHandle for Killer {
    fn try_cancel(&self) -> Result<(), AdbcError> {
        if self.course.over.load(Ordering::Acquire) {
            return Ok(());
        }
        self.course.stopped.notify_one();
        let failed = || AdbcError::with_message_and_status("the server was not told", Status::IO);
        let waiting = Waiting::new().map_err(|_| failed())?;
        let runtime = waiting.runtime().map_err(|_| failed())?;
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
