//! Statements at work: each on a thread of its own, since drivers block, and each with somebody who waits for it on a channel.
//! Whoever stops waiting has it cancelled; a connection on which something may be left is closed and not given to others.

use crate::columns::Column;
use crate::convert::converted;
use crate::fault::Fault;
use crate::link::Link;
use crate::pool::{Lease, Permit, Pool};
use crate::settings::DatabaseSettings;
use adbc_core::CancelHandle;
use datafusion::arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Batches between a driver and who reads them.
const AHEAD: usize = 2;
/// Rows of an answer about tables.
const MAX_ANSWER_ROWS: usize = 1_000_000;
/// Rows without columns in one batch.
const COUNTED_ROWS: usize = 64 << 10;

/// Ends a statement from outside.
pub(crate) struct Stop(Mutex<State>);

enum State {
    /// Nothing runs yet.
    Idle,
    /// What cancels it: the statement, else its connection.
    Running(Vec<Box<dyn CancelHandle>>),
    Finished,
    Stopped,
}

impl Stop {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Idle)))
    }

    /// From now on this is cancelled. `false` if that was asked before.
    pub(crate) fn arm(&self, handles: Vec<Box<dyn CancelHandle>>) -> bool {
        let mut state = self.lock();
        let goes_on = !matches!(*state, State::Stopped);
        if goes_on {
            *state = State::Running(handles);
        }
        goes_on
    }

    /// [`Self::arm`] with one way to cancel it.
    pub(crate) fn arm_with(&self, handle: Box<dyn CancelHandle>) -> bool {
        self.arm(vec![handle])
    }

    /// The statement has ended by itself, and nothing cancels what comes after it on its connection. `false` if it was
    /// stopped.
    pub(crate) fn finish(&self) -> bool {
        let mut state = self.lock();
        let by_itself = !matches!(*state, State::Stopped);
        if by_itself {
            *state = State::Finished;
        }
        by_itself
    }

    /// Cancels what runs, on another thread: it may have to ask the server.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        let handles = match &mut *state {
            State::Running(handles) => std::mem::take(handles),
            State::Finished | State::Stopped => return,
            State::Idle => Vec::new(),
        };
        *state = State::Stopped;
        drop(state);
        if !handles.is_empty() {
            let cancel = move || {
                let _ = handles.iter().any(|handle| handle.try_cancel().is_ok());
            };
            let _ = thread::Builder::new().name("database-cancel".to_owned()).spawn(cancel);
        }
    }

    fn is_stopped(&self) -> bool {
        matches!(*self.lock(), State::Stopped)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops a statement when nobody waits for it any more.
pub(crate) struct StopOnDrop(pub(crate) Arc<Stop>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn on_thread(work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let started = thread::Builder::new().name("database".to_owned()).spawn(work);
    started.map(drop).map_err(|error| Fault::Driver(format!("no thread can be started: {error}")))
}

/// What an answer is made of, on the thread of its connection.
pub(crate) type Asking<T> = dyn Fn(&mut Link, &Stop) -> Result<T, Fault> + Send + Sync;

impl Pool {
    /// Asks the database something small, and once more where a connection that was kept is gone.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        asking: impl Fn(&mut Link, &Stop) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, Fault> {
        let permit = self.permit(1).await?;
        let (pool, stop) = (Arc::clone(self), Stop::new());
        let guard = StopOnDrop(Arc::clone(&stop));
        let (connected, connects) = oneshot::channel();
        let (answered, answer) = oneshot::channel();
        on_thread(move || {
            let lease = pool.lease(permit);
            let _ = connected.send(());
            let _ = answered.send(lease.and_then(|lease| asked(lease, &asking, &stop)));
        })?;
        let settings = &self.settings;
        // The library's own limit comes first where it has one.
        let patience = settings.connect_timeout + settings.connect_timeout / 4;
        if timeout(patience, connects).await.is_err() {
            return Err(Fault::Late(format!("{:?}", settings.connect_timeout)));
        }
        let answer = timeout(settings.timeout, answer).await;
        drop(guard);
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Fault::Driver("a driver broke down".to_owned())),
            Err(_) => Err(Fault::Late(format!("{:?}", settings.timeout))),
        }
    }
}

fn asked<T>(mut lease: Lease, asking: &Asking<T>, stop: &Stop) -> Result<T, Fault> {
    let mut answer = asking(lease.connection()?, stop);
    if matches!(answer, Err(Fault::Unreachable(_))) && lease.reused && !stop.is_stopped() {
        lease = lease.renewed()?;
        answer = asking(lease.connection()?, stop);
    }
    if answer.is_ok() && stop.finish() {
        lease.give_back();
    }
    answer
}

/// The rows of a statement that gives few.
pub(crate) fn rows_of(
    connection: &mut Link,
    sql: &str,
    stop: &Stop,
    settings: &DatabaseSettings,
) -> Result<Vec<RecordBatch>, Fault> {
    let (mut batches, mut rows) = (Vec::new(), 0);
    for batch in connection.begin(sql, &[], stop, settings)? {
        let batch = batch?;
        rows += batch.num_rows();
        if rows > MAX_ANSWER_ROWS {
            return Err(Fault::Unexpected("it has more tables or columns than are listed".to_owned()));
        }
        batches.push(batch);
    }
    Ok(batches)
}

/// What is read of a table.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// What the connection is told before, each of which gives no rows.
    pub(crate) before: Vec<String>,
    pub(crate) sql: String,
    /// What ends what was begun before.
    pub(crate) after: Option<&'static str>,
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// Whether each row begins with a number, 1 for the one that only shows the types.
    pub(crate) witness: bool,
    /// Whether there is one row, with the number of rows, which have no columns.
    pub(crate) counted: bool,
}

enum Message {
    Connected,
    Rows(RecordBatch),
    End,
    Failed(Fault),
}

/// Rows on their way. Dropping it ends the statement.
pub(crate) struct Reading {
    messages: mpsc::Receiver<Message>,
    connected: bool,
    ended: bool,
    pool: Arc<Pool>,
    stop: StopOnDrop,
}

impl Reading {
    /// Begins to read on a connection for which there is a permit.
    pub(crate) fn begin(pool: &Arc<Pool>, permit: Permit, wanted: Wanted) -> Result<Self, Fault> {
        let (sender, messages) = mpsc::channel(AHEAD);
        let (stop, here) = (Stop::new(), Arc::clone(pool));
        let guard = StopOnDrop(Arc::clone(&stop));
        on_thread(move || {
            let last = match read(&here, permit, &wanted, (&stop, &sender)) {
                Ok(()) => Message::End,
                Err(fault) => Message::Failed(fault),
            };
            let _ = sender.blocking_send(last);
        })?;
        Ok(Self { messages, connected: false, ended: false, pool: Arc::clone(pool), stop: guard })
    }

    /// The next rows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, Fault>> {
        while !self.ended {
            let settings = &self.pool.settings;
            let limit = match self.connected {
                true => settings.timeout,
                false => settings.connect_timeout + settings.connect_timeout / 4,
            };
            match timeout(limit, self.messages.recv()).await {
                Ok(Some(Message::Connected)) => self.connected = true,
                Ok(Some(Message::Rows(rows))) => return Some(Ok(rows)),
                Ok(Some(Message::End)) => self.ended = true,
                Ok(Some(Message::Failed(fault))) => return self.failed(fault),
                Ok(None) => return self.failed(Fault::Driver("a driver broke down".to_owned())),
                Err(_) => return self.failed(Fault::Late(format!("{limit:?}"))),
            }
        }
        None
    }

    fn failed(&mut self, fault: Fault) -> Option<Result<RecordBatch, Fault>> {
        self.ended = true;
        self.stop.0.stop();
        Some(Err(fault))
    }
}

type Out<'a> = (&'a Stop, &'a mpsc::Sender<Message>);

/// Reads all rows, as fast as they are taken.
fn read(pool: &Arc<Pool>, permit: Permit, wanted: &Wanted, out: Out<'_>) -> Result<(), Fault> {
    let mut lease = pool.lease(permit)?;
    let _ = out.1.blocking_send(Message::Connected);
    let mut sent = 0;
    let mut done = read_on(&mut lease, wanted, out, &mut sent);
    // A connection that was kept may be gone, and nothing has come of it yet.
    if matches!(done, Err(Fault::Unreachable(_))) && lease.reused && sent == 0 && !out.0.is_stopped() {
        lease = lease.renewed()?;
        done = read_on(&mut lease, wanted, out, &mut sent);
    }
    if done? && out.0.finish() {
        let settings = lease.settings();
        let ended = match wanted.after {
            Some(words) => lease.connection()?.tell(words, &Stop::new(), &settings).is_ok(),
            None => true,
        };
        // Where something was begun that cannot be ended, it ends with its connection.
        if ended {
            lease.give_back();
        }
    }
    Ok(())
}

/// Whether all rows were read.
fn read_on(
    lease: &mut Lease,
    wanted: &Wanted,
    (stop, sender): Out<'_>,
    sent: &mut usize,
) -> Result<bool, Fault> {
    let settings = lease.settings();
    let connection = lease.connection()?;
    for words in &wanted.before {
        connection.tell(words, stop, &settings)?;
    }
    for batch in connection.begin(&wanted.sql, &wanted.columns, stop, &settings)? {
        let batch = batch.map_err(|fault| if stop.is_stopped() { Fault::Cancelled } else { fault })?;
        if wanted.counted {
            return counted(&batch, wanted, (sender, sent));
        }
        let batch = if wanted.witness { without_witness(&batch)? } else { batch };
        let rows = converted(&batch, &wanted.columns, &wanted.schema, usize::from(wanted.witness))?;
        if rows.num_rows() == 0 {
            continue;
        }
        *sent += 1;
        if sender.blocking_send(Message::Rows(rows)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// So many rows without columns.
fn counted(
    batch: &RecordBatch,
    wanted: &Wanted,
    (sender, sent): (&mpsc::Sender<Message>, &mut usize),
) -> Result<bool, Fault> {
    let unexpected = || Fault::Unexpected("it has not said how many rows there are".to_owned());
    let number = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    let number = number.and_then(|number| number.values().first().copied()).ok_or_else(unexpected)?;
    let mut left = usize::try_from(number).map_err(|_| unexpected())?;
    while left > 0 {
        let rows = left.min(COUNTED_ROWS);
        left -= rows;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&wanted.schema), Vec::new(), &options)
            .map_err(|error| Fault::Unexpected(error.to_string()))?;
        *sent += 1;
        if sender.blocking_send(Message::Rows(rows)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rows without the one that only shows the types, by which SQLite's driver takes those of columns.
fn without_witness(batch: &RecordBatch) -> Result<RecordBatch, Fault> {
    let unexpected = || Fault::Unexpected("its rows do not begin as was asked".to_owned());
    let marks = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    let marks = marks.ok_or_else(unexpected)?;
    let witnesses = marks.values().iter().filter(|mark| **mark == 1).count();
    match (witnesses, marks.values().first()) {
        (0, _) => Ok(batch.clone()),
        (1, Some(1)) => Ok(batch.slice(1, batch.num_rows() - 1)),
        _ => Err(unexpected()),
    }
}
