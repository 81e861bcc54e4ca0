//! Results on their way out: a few rows at a time in the buffer, and the next batch is asked for when its client has taken the
//! last one.

use crate::connection::{attend, cancelled};
use crate::reply::Column;
use crate::rows::{Format, Rows, types};
use crate::status::{Failure, Result};
use crate::wire::Wire;
use arrow::datatypes::{Schema, SchemaRef};
use bowshot_api::{BatchStream, Delivery, Endpoints, QueryId, Request, Server, Session};
use bytes::BytesMut;
use futures::StreamExt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Columns of a result, as in MySQL.
const MOST_COLUMNS: usize = 4_096;

/// A result that is being read. Dropping it stops the work behind it.
pub(crate) struct Running {
    server: Arc<dyn Server>,
    session: Arc<dyn Session>,
    query: QueryId,
    schema: SchemaRef,
    /// In which points of time are shown.
    zone: String,
    partitions: usize,
    next_partition: usize,
    stream: Option<BatchStream>,
    batch: Option<Rows>,
    next_row: usize,
    /// Rows that may still be written.
    left: u64,
    /// Rows that have been written.
    sent: u64,
    scratch: BytesMut,
}

/// The columns of a result.
///
/// # Errors
/// For more columns than MySQL has.
pub(crate) fn columns(schema: &Schema) -> Result<Vec<Column>, Failure> {
    let count = schema.fields().len();
    if count > MOST_COLUMNS {
        let message = format!("the result has {count} columns, and the limit is {MOST_COLUMNS}");
        return Err(Failure::new(1117, "HY000", message).with_hint("select fewer columns"));
    }
    let named = schema.fields().iter().zip(types(schema));
    Ok(named.map(|(field, kind)| Column { name: field.name().clone(), kind }).collect())
}

impl Drop for Running {
    /// What nobody has begun to read would wait for its reader.
    fn drop(&mut self) {
        if self.next_partition == self.partitions {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (server, session, query) = (Arc::clone(&self.server), Arc::clone(&self.session), self.query);
            runtime.spawn(async move { _ = server.cancel(session.principal(), query).await });
        }
    }
}

impl Running {
    pub(crate) async fn start(
        wire: &mut Wire,
        cancel: &CancellationToken,
        (server, session): (Arc<dyn Server>, Arc<dyn Session>),
        (request, zone): (&Request, String),
    ) -> Result<Self> {
        let request = Request {
            endpoints: Some(Endpoints::Exactly(1)),
            delivery: Some(Delivery::Stream),
            ..request.clone()
        };
        let answer = attend(wire, cancel, session.start(&request)).await?;
        Ok(Self {
            server,
            session,
            query: answer.query,
            schema: answer.schema,
            zone,
            partitions: answer.partitions,
            next_partition: 0,
            stream: None,
            batch: None,
            next_row: 0,
            left: u64::MAX,
            sent: 0,
            scratch: BytesMut::new(),
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Ends the result after so many rows.
    pub(crate) fn end_after(&mut self, rows: u64) {
        self.left = rows;
    }

    /// Writes rows, at most `limit`, and says whether there are no more.
    pub(crate) async fn send(
        &mut self,
        wire: &mut Wire,
        cancel: &CancellationToken,
        (format, limit): (Format, Option<u64>),
    ) -> Result<bool> {
        let mut sent = 0;
        while limit != Some(sent) {
            if self.left == 0 {
                return Ok(true);
            }
            let Some(rows) = self.rows(wire, cancel).await? else { return Ok(true) };
            while self.next_row < rows.count() && limit != Some(sent) && self.left > 0 {
                let scratch = &mut self.scratch;
                wire.try_put(|out| rows.put(self.next_row, format, out, scratch))?;
                self.next_row += 1;
                sent += 1;
                self.sent += 1;
                self.left -= 1;
                wire.flush_some(cancel).await?;
                if cancel.is_cancelled() {
                    return Err(cancelled().into());
                }
            }
            self.batch = Some(rows);
        }
        Ok(false)
    }

    /// How many rows have been written.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Takes all rows, and writes none of them.
    pub(crate) async fn drain(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<()> {
        while self.rows(wire, cancel).await?.is_some() {}
        Ok(())
    }

    /// The batch that is not written yet, and from which row on; `None` after the last one.
    async fn rows(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<Option<Rows>> {
        if let Some(rows) = self.batch.take()
            && self.next_row < rows.count()
        {
            return Ok(Some(rows));
        }
        loop {
            let Some(stream) = &mut self.stream else {
                if self.next_partition == self.partitions {
                    return Ok(None);
                }
                let attached = self.server.attach(self.session.principal(), self.query, self.next_partition);
                self.stream = Some(attend(wire, cancel, attached).await?);
                self.next_partition += 1;
                continue;
            };
            match attend(wire, cancel, async { stream.next().await.transpose() }).await? {
                Some(batch) => {
                    self.next_row = 0;
                    return Ok(Some(Rows::new(&batch, &self.zone)?));
                }
                None => self.stream = None,
            }
        }
    }
}
