//! Rows on their way between a plan or a table and a file. The file is read and written on a thread that may block, a few
//! batches ahead of or behind the rest.

use crate::authorize::AuthorizedPlan;
use crate::error::classify;
use crate::plan::parameters;
use crate::plan::planned_statement::Planned;
use crate::session::write::Written;
use crate::session::{EngineSession, distributed_query};
use crate::write::Write;
use crate::write::apply::{self, Place, arranged, by_name};
use crate::write::constraints::Casts;
use crate::write::copy::{CopyIn, CopyOut, folder};
use crate::write::rows::{absent_values, checked, stream};
use bowshot_api::{BatchStream, Error, ErrorKind, LastWrite, Origin, Result};
use bowshot_files::exchange::{FileRows, FileWriter};
use bowshot_policy::snapshot::Pinned;
use bowshot_types::declared;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use std::fs::File;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// Batches between the two sides.
const AHEAD: usize = 2;

enum Message {
    Rows(RecordBatch),
    /// All rows are there. A writer that hears nothing more without it has been given up.
    End,
}

impl EngineSession {
    /// Runs a COPY; `None` for every other statement.
    pub(crate) async fn copy(
        &self,
        write: &Write,
        plan: &AuthorizedPlan,
        parameters: &[RecordBatch],
    ) -> Result<Option<Written>> {
        match write {
            Write::CopyIn(copy) => Box::pin(self.copy_in(copy, plan.pinned())).await.map(Some),
            Write::CopyOut(copy) => {
                let query = bound(plan.planned(), parameters)?;
                let rows = Box::pin(self.copy_out(copy, &query, plan.pinned())).await?;
                Ok(Some(Written {
                    pinned: plan.pinned().clone(),
                    rows: Some(rows),
                    rows_in_all: Some(rows),
                    returned: None,
                    last: LastWrite::default(),
                }))
            }
            Write::Load(load) => Box::pin(self.load(load, plan.pinned())).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Runs a query and writes its rows to a file; the number of rows. Nothing is left behind unless all of them are
    /// there.
    async fn copy_out(&self, copy: &CopyOut, plan: &LogicalPlan, pinned: &Pinned) -> Result<u64> {
        let (state, names) = (self.state(pinned), self.names(pinned));
        let elsewhere = match pinned.input() {
            None => distributed_query::to_write(self, &state, plan).await?,
            Some(_) => None,
        };
        let (rows, origin) = match elsewhere {
            Some(rows) => {
                let origin = rows.origin().cloned();
                (rows, origin)
            }
            None => {
                let (rows, origin) = stream(&state, plan).await?;
                let schema = rows.schema();
                (BatchStream::new(schema, rows.map(|batch| batch.map_err(classify)).boxed()), origin)
            }
        };
        let layout = copy.shape.layout();
        let schema = layout.schema(&declared::schema_without_marks(&rows.schema()));
        let exchange = Arc::clone(folder(&names)?);
        let (sender, receiver) = channel(AHEAD);
        let (copy, columns) = (copy.clone(), Arc::clone(&schema));
        let writer = spawn_blocking(move || {
            let columns = shredded(&RecordBatch::new_empty(columns), &copy)?.schema();
            let file = exchange.write(&copy.path, copy.shape, &columns, copy.overwrite)?;
            write_all(file, (receiver, &copy), origin.as_ref())
        });
        let sent = send_all(rows, &sender, |batch| layout.apply(batch, &schema)).await;
        finished(writer, sender, sent).await
    }

    /// Takes the rows of a file into a table.
    async fn copy_in(&self, copy: &CopyIn, pinned: &Pinned) -> Result<Written> {
        let (state, names, stores) = (self.lazy_state(pinned), self.names(pinned), self.stores());
        let (exchange, from) = (Arc::clone(folder(&names)?), copy.clone());
        let opened =
            spawn_blocking(move || exchange.read(&from.path, (from.shape, &from.read), &from.wanted)).await;
        let rows = streamed(opened.map_err(broken)??);
        let origin = rows.origin().cloned();
        if copy.in_database {
            let written = self.ingest_into_database(&copy.table, rows, &names).await?;
            checked(origin.as_ref())?;
            return Ok(written);
        }
        let table = names.table(&copy.table)?;
        let positions = by_name(&rows.schema(), table.definition(), &copy.table)?;
        let absent = absent_values(table.definition(), &state, &stores.shared).await?;
        let rows = arranged(rows, positions, absent, table.schema());
        let place = Place { names: &names, stores: &stores, state: &state };
        let applied = apply::insert(
            &copy.table,
            apply::adding(&copy.table, &table, &place),
            Casts::Exact,
            rows,
            &place,
        )
        .await?;
        checked(origin.as_ref())?;
        Ok(Written {
            pinned: applied.pinned,
            rows: Some(applied.rows),
            rows_in_all: Some(applied.rows),
            returned: None,
            last: LastWrite::default(),
        })
    }
}

/// The query with the values of its parameters, of which a file takes one row.
fn bound(planned: &Planned, rows: &[RecordBatch]) -> Result<LogicalPlan> {
    if rows.is_empty() {
        parameters::check_none(planned.parameters())?;
        return Ok(planned.plan().clone());
    }
    let mut filled = rows.iter().filter(|batch| batch.num_rows() > 0);
    match (filled.next(), filled.next()) {
        (Some(batch), None) if batch.num_rows() == 1 => {
            parameters::bind(planned.plan(), planned.parameters(), batch, 0)
        }
        _ => Err(Error::invalid("COPY takes one row of parameters")),
    }
}

/// Sends the rows of a query. A writer that does not take them has failed, and tells why itself.
async fn send_all(
    mut rows: BatchStream,
    sender: &Sender<Message>,
    laid_out: impl Fn(RecordBatch) -> Result<RecordBatch>,
) -> Result<()> {
    while let Some(batch) = rows.next().await {
        if sender.send(Message::Rows(laid_out(batch?)?)).await.is_err() {
            return Ok(());
        }
    }
    let _ = sender.send(Message::End).await;
    Ok(())
}

/// The sender lives until the writer has ended: its end tells that nobody waits for the file.
async fn finished(writer: JoinHandle<Result<u64>>, sender: Sender<Message>, sent: Result<()>) -> Result<u64> {
    match sent {
        Ok(()) => {
            let written = writer.await;
            drop(sender);
            written.map_err(broken)?
        }
        Err(error) => {
            drop(sender);
            // The file is to be gone before the client hears of the error.
            let _ = writer.await;
            Err(error)
        }
    }
}

/// Rows as they go into the file.
fn shredded(rows: &RecordBatch, copy: &CopyOut) -> Result<RecordBatch> {
    copy.shredding.shred(rows).map_err(|error| classify(error.into()))
}

fn write_all(
    mut file: FileWriter,
    (mut rows, copy): (Receiver<Message>, &CopyOut),
    origin: Option<&Arc<dyn Origin>>,
) -> Result<u64> {
    let mut count = 0;
    loop {
        match rows.blocking_recv() {
            Some(Message::Rows(batch)) => {
                count += batch.num_rows() as u64;
                file.write(&shredded(&batch, copy)?)?;
            }
            Some(Message::End) => {
                file.finish(|| match rows.is_closed() {
                    true => Err(cancelled()),
                    false => checked(origin),
                })?;
                return Ok(count);
            }
            None => return Err(cancelled()),
        }
    }
}

/// The rows of a Parquet file of `bytes` that a client has sent. To be called on the query runtime.
///
/// # Errors
/// `Invalid` for what is no such file, as each of the rows.
pub async fn sent_parquet(file: File, bytes: u64) -> Result<BatchStream> {
    let opened = spawn_blocking(move || FileRows::of_sent_parquet(file, bytes)).await;
    Ok(streamed(opened.map_err(broken)??))
}

/// The rows of a file as a stream; dropping it ends the reading.
pub(super) fn streamed(mut rows: FileRows) -> BatchStream {
    let (schema, origin) = (Arc::clone(rows.schema()), Arc::new(rows.shared()));
    let (sender, receiver) = channel(AHEAD);
    // Reads until the stream takes no more: nothing waits for it, and it holds nothing but the file.
    drop(spawn_blocking(move || {
        loop {
            let batch = rows.next_batch().transpose();
            let is_last = !matches!(batch, Ok(Some(_)));
            if sender.blocking_send(batch).is_err() || is_last {
                return;
            }
        }
    }));
    let batches = futures::stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Ok(Some(batch))) => Some((Ok(batch), Some(receiver))),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some((Err(error), None)),
            None => Some((Err(Error::internal("reading the file broke down")), None)),
        }
    });
    BatchStream::new(schema, batches.boxed()).with_origin(Some(origin))
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the query was cancelled")
}

pub(super) fn broken(error: JoinError) -> Error {
    Error::internal("copying broke down").with_source(error)
}
