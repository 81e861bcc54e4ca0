//! Statements run on a thread of their own, since drivers block; their rows come through a channel. A statement whose reader is dropped is
//! cancelled, and a connection on which something may be left is closed.

use crate::cancellation::{CancelOnDrop, Cancellation};
use crate::columns::Column;
use crate::connection::{DatabaseConnection, TextRows};
use crate::convert::convert_batch;
use crate::error::DatabaseError;
use crate::pool::{Lease, Permit, Pool};
use datafusion::arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use std::sync::Arc;
use std::thread;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Batches buffered between a driver and the reader.
const AHEAD: usize = 2;
/// Rows of a batch without columns.
const COUNTED_ROWS: usize = 64 << 10;

fn on_thread(work: impl FnOnce() + Send + 'static) -> Result<(), DatabaseError> {
    let started = thread::Builder::new().name("database".to_owned()).spawn(work);
    started.map(drop).map_err(|error| DatabaseError::Driver(format!("cannot start a thread: {error}")))
}

/// Computes an answer on the thread of the connection.
pub(crate) type Asking<T> =
    dyn Fn(&mut DatabaseConnection, &Cancellation) -> Result<T, DatabaseError> + Send + Sync;

impl Pool {
    /// Runs small statements, again if a reused connection was lost.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        asking: impl Fn(&mut DatabaseConnection, &Cancellation) -> Result<T, DatabaseError>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, DatabaseError> {
        let permit = self.permit(1).await?;
        let (pool, cancellation) = (Arc::clone(self), Cancellation::new());
        let guard = CancelOnDrop(Arc::clone(&cancellation));
        let (connected, connects) = oneshot::channel();
        let (answered, answer) = oneshot::channel();
        on_thread(move || {
            let lease = pool.lease(permit);
            let _ = connected.send(());
            let _ = answered.send(lease.and_then(|lease| asked(lease, &asking, &cancellation)));
        })?;
        let settings = &self.settings;
        // The driver's own timeout, if it has one, should come first.
        let patience = settings.connect_timeout + settings.connect_timeout / 4;
        if timeout(patience, connects).await.is_err() {
            return Err(DatabaseError::Timeout(format!("{:?}", settings.connect_timeout)));
        }
        let answer = timeout(settings.timeout, answer).await;
        drop(guard);
        match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(DatabaseError::Driver("the driver failed".to_owned())),
            Err(_) => Err(DatabaseError::Timeout(format!("{:?}", settings.timeout))),
        }
    }

    /// The rows of a small statement, as texts.
    pub(crate) async fn query_texts(self: &Arc<Self>, sql: String) -> Result<TextRows, DatabaseError> {
        let settings = Arc::clone(&self.settings);
        self.ask(move |connection, cancellation| connection.query_texts(&sql, cancellation, &settings)).await
    }
}

fn asked<T>(mut lease: Lease, asking: &Asking<T>, cancellation: &Cancellation) -> Result<T, DatabaseError> {
    let mut answer = asking(lease.connection()?, cancellation);
    if matches!(answer, Err(DatabaseError::Unreachable(_))) && lease.reused && !cancellation.is_cancelled() {
        lease = lease.reconnect()?;
        answer = asking(lease.connection()?, cancellation);
    }
    if answer.is_ok() && cancellation.finish() {
        lease.give_back();
    }
    answer
}

/// A statement that reads a table.
#[derive(Debug)]
pub(crate) struct ReadStatement {
    /// Statements without rows that run before.
    pub(crate) before: Vec<String>,
    pub(crate) sql: String,
    /// The statement that ends what `before` began.
    pub(crate) after: Option<&'static str>,
    pub(crate) columns: Vec<Arc<Column>>,
    pub(crate) schema: SchemaRef,
    /// Whether each row begins with a number, which is 1 for a row that only shows the types.
    pub(crate) witness: bool,
    /// Whether the one row has the number of rows without columns.
    pub(crate) counted: bool,
}

enum Message {
    Connected,
    Rows(RecordBatch),
    End,
    Failed(DatabaseError),
}

/// The rows of a running statement. Dropping it cancels the statement.
pub(crate) struct RowStream {
    messages: mpsc::Receiver<Message>,
    connected: bool,
    ended: bool,
    pool: Arc<Pool>,
    cancellation: CancelOnDrop,
}

impl RowStream {
    /// Starts a statement on a connection of the permit.
    pub(crate) fn begin(
        pool: &Arc<Pool>,
        permit: Permit,
        statement: ReadStatement,
    ) -> Result<Self, DatabaseError> {
        let (sender, messages) = mpsc::channel(AHEAD);
        let (cancellation, here) = (Cancellation::new(), Arc::clone(pool));
        let guard = CancelOnDrop(Arc::clone(&cancellation));
        on_thread(move || {
            let last = match read(&here, permit, &statement, (&cancellation, &sender)) {
                Ok(()) => Message::End,
                Err(fault) => Message::Failed(fault),
            };
            let _ = sender.blocking_send(last);
        })?;
        Ok(Self { messages, connected: false, ended: false, pool: Arc::clone(pool), cancellation: guard })
    }

    /// The next rows; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, DatabaseError>> {
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
                Ok(None) => return self.failed(DatabaseError::Driver("the driver failed".to_owned())),
                Err(_) => return self.failed(DatabaseError::Timeout(format!("{limit:?}"))),
            }
        }
        None
    }

    fn failed(&mut self, fault: DatabaseError) -> Option<Result<RecordBatch, DatabaseError>> {
        self.ended = true;
        self.cancellation.0.cancel();
        Some(Err(fault))
    }
}

type Out<'a> = (&'a Cancellation, &'a mpsc::Sender<Message>);

/// Reads all rows, as fast as they are received.
fn read(
    pool: &Arc<Pool>,
    permit: Permit,
    statement: &ReadStatement,
    out: Out<'_>,
) -> Result<(), DatabaseError> {
    let mut lease = pool.lease(permit)?;
    let _ = out.1.blocking_send(Message::Connected);
    let mut sent = 0;
    let mut done = read_rows(&mut lease, statement, out, &mut sent);
    // A reused connection may be lost, and no rows have been sent.
    if matches!(done, Err(DatabaseError::Unreachable(_)))
        && lease.reused
        && sent == 0
        && !out.0.is_cancelled()
    {
        lease = lease.reconnect()?;
        done = read_rows(&mut lease, statement, out, &mut sent);
    }
    if done? && out.0.finish() {
        let settings = lease.settings();
        let ended = match statement.after {
            Some(sql) => lease.connection()?.execute(sql, &Cancellation::new(), &settings).is_ok(),
            None => true,
        };
        // A transaction that cannot be ended is closed with its connection.
        if ended {
            lease.give_back();
        }
    }
    Ok(())
}

/// Reads the rows; returns whether all of them were received.
fn read_rows(
    lease: &mut Lease,
    statement: &ReadStatement,
    (cancellation, sender): Out<'_>,
    sent: &mut usize,
) -> Result<bool, DatabaseError> {
    let settings = lease.settings();
    let connection = lease.connection()?;
    for sql in &statement.before {
        connection.execute(sql, cancellation, &settings)?;
    }
    for batch in connection.query(&statement.sql, &statement.columns, cancellation, &settings)? {
        let batch = batch
            .map_err(|fault| if cancellation.is_cancelled() { DatabaseError::Cancelled } else { fault })?;
        if statement.counted {
            return send_row_count(&batch, statement, (sender, sent));
        }
        let batch = if statement.witness { remove_type_row(&batch)? } else { batch };
        let rows =
            convert_batch(&batch, &statement.columns, &statement.schema, usize::from(statement.witness))?;
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

/// Sends the counted rows as batches without columns.
fn send_row_count(
    batch: &RecordBatch,
    statement: &ReadStatement,
    (sender, sent): (&mpsc::Sender<Message>, &mut usize),
) -> Result<bool, DatabaseError> {
    let unexpected = || DatabaseError::Unexpected("it did not return a number of rows".to_owned());
    let number = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    let number = number.and_then(|number| number.values().first().copied()).ok_or_else(unexpected)?;
    let mut left = usize::try_from(number).map_err(|_| unexpected())?;
    while left > 0 {
        let rows = left.min(COUNTED_ROWS);
        left -= rows;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&statement.schema), Vec::new(), &options)
            .map_err(|error| DatabaseError::Unexpected(error.to_string()))?;
        *sent += 1;
        if sender.blocking_send(Message::Rows(rows)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the row that only shows the types to SQLite's driver.
fn remove_type_row(batch: &RecordBatch) -> Result<RecordBatch, DatabaseError> {
    let unexpected =
        || DatabaseError::Unexpected("its rows do not begin with the requested column".to_owned());
    let marks = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
    let marks = marks.ok_or_else(unexpected)?;
    let witnesses = marks.values().iter().filter(|mark| **mark == 1).count();
    match (witnesses, marks.values().first()) {
        (0, _) => Ok(batch.clone()),
        (1, Some(1)) => Ok(batch.slice(1, batch.num_rows() - 1)),
        _ => Err(unexpected()),
    }
}
