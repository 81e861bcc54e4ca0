//! The rows of a result as packets: a few at a time in the buffer of the socket, and the next batch when the client has taken
//! the last one.

use crate::encode::{Format, Rows, types};
use crate::packet_framing::Wire;
use crate::server_packets::Column;
use crate::status::{Failure, Result};
use arrow::datatypes::Schema;
use bowshot_api::{Request, Server, Session};
use bowshot_rowwire::{ProtocolError, ResultStream};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Columns of a result, as in MySQL.
const MAX_COLUMNS: usize = 4_096;

/// A result that is being written. Dropping it stops the work behind it.
pub(crate) struct ResultWriter {
    result: ResultStream,
    /// The time zone of timestamps.
    zone: String,
    batch: Option<Rows>,
    next_row: usize,
    /// Rows that may still be written.
    left: u64,
    /// Rows that have been written.
    sent: u64,
}

pub(crate) fn columns(schema: &Schema) -> Result<Vec<Column>, Failure> {
    let count = schema.fields().len();
    if count > MAX_COLUMNS {
        let message = format!("the result has {count} columns, and the limit is {MAX_COLUMNS}");
        return Err(Failure::new(1117, "HY000", message).with_hint("select fewer columns"));
    }
    let named = schema.fields().iter().zip(types(schema));
    Ok(named.map(|(field, kind)| Column { name: field.name().clone(), kind }).collect())
}

impl ResultWriter {
    pub(crate) async fn start(
        wire: &mut Wire,
        cancel: &CancellationToken,
        (server, session): (Arc<dyn Server>, Arc<dyn Session>),
        (request, zone): (&Request, String),
    ) -> Result<Self> {
        let result = wire.wait_for(ResultStream::start(server, session, request), cancel).await?;
        Ok(Self { result, zone, batch: None, next_row: 0, left: u64::MAX, sent: 0 })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.result.schema()
    }

    /// Limits the rows of the result.
    pub(crate) fn end_after(&mut self, rows: u64) {
        self.left = rows;
    }

    /// Writes at most `limit` rows, and says whether the result has ended.
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
                wire.try_put(|out| rows.put(self.next_row, format, out))?;
                self.next_row += 1;
                sent += 1;
                self.sent += 1;
                self.left -= 1;
                wire.flush_if_full(cancel).await?;
                if cancel.is_cancelled() {
                    return Err(Failure::cancelled().into());
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

    /// Reads all rows and discards them.
    pub(crate) async fn drain(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<()> {
        while self.rows(wire, cancel).await?.is_some() {}
        Ok(())
    }

    /// The current batch, to be written from `next_row` on; `None` after the last one.
    async fn rows(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<Option<Rows>> {
        if let Some(rows) = self.batch.take()
            && self.next_row < rows.count()
        {
            return Ok(Some(rows));
        }
        let batch = wire.wait_for(self.result.next(), cancel).await?;
        self.next_row = 0;
        Ok(batch.map(|batch| Rows::new(&batch, &self.zone)).transpose()?)
    }
}
