//! The rows of a result as messages: a few at a time in the buffer of the socket, and the next batch when the client has taken
//! the last one.

use crate::backend_messages::Column;
use crate::encode::{PgType, Rows, types};
use crate::frontend_messages::{Format, format_of};
use crate::message_framing::Wire;
use crate::status::{Failure, Result};
use arrow::array::timezone::Tz;
use arrow::datatypes::Schema;
use bowshot_api::{ColumnOrigin, Request, Server, Session};
use bowshot_rowwire::{ProtocolError, ResultStream};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Columns of a result, as in PostgreSQL.
const MAX_COLUMNS: usize = 1_664;

/// A result that is being written. Dropping it stops the work behind it.
pub(crate) struct ResultWriter {
    result: ResultStream,
    batch: Option<Rows>,
    next_row: usize,
    formats: Vec<Format>,
    /// The time zone of texts of timestamps; `None` is UTC.
    zone: Option<Tz>,
}

/// The columns of a result, in the formats that the client asks for.
pub(crate) fn columns(schema: &Schema, formats: &[Format]) -> Result<Vec<Column>> {
    let count = schema.fields().len();
    if count > MAX_COLUMNS {
        let message = format!("the result has {count} columns, and the limit is {MAX_COLUMNS}");
        return Err(Failure::new("54011", message).with_hint("select fewer columns").into());
    }
    let kinds = types(schema);
    let named = schema.fields().iter().zip(kinds).enumerate();
    named
        .map(|(index, (field, kind))| match format_of(formats, index, count) {
            Some(format) => Ok(Column { name: field.name().clone(), kind, format, origin: None }),
            None => {
                let message = format!("{} result formats were given for {count} columns", formats.len());
                Err(Failure::protocol(message).into())
            }
        })
        .collect()
}

/// The columns with the columns of tables that they come from, where known.
pub(crate) fn with_origins(mut columns: Vec<Column>, origins: Vec<Option<ColumnOrigin>>) -> Vec<Column> {
    if columns.len() == origins.len() {
        columns.iter_mut().zip(origins).for_each(|(column, origin)| column.origin = origin);
    }
    columns
}

impl ResultWriter {
    pub(crate) async fn start(
        wire: &mut Wire,
        cancel: &CancellationToken,
        (server, session): (Arc<dyn Server>, Arc<dyn Session>),
        request: &Request,
    ) -> Result<Self> {
        let result = wire.wait_for(ResultStream::start(server, session, request), cancel).await?;
        Ok(Self { result, batch: None, next_row: 0, formats: Vec::new(), zone: None })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.result.schema()
    }

    /// Sets the formats of the values.
    pub(crate) fn set_formats(&mut self, columns: &[Column]) {
        self.formats = columns.iter().map(|column| column.format).collect();
    }

    /// Sets the time zone of texts of timestamps.
    pub(crate) fn with_zone(mut self, zone: Option<Tz>) -> Self {
        self.zone = zone;
        self
    }

    /// Whether the result has these columns.
    pub(crate) fn has_columns(&self, columns: &[Column]) -> bool {
        let oids = |kinds: &mut dyn Iterator<Item = PgType>| kinds.map(PgType::oid).collect::<Vec<_>>();
        oids(&mut columns.iter().map(|column| column.kind)) == oids(&mut types(self.schema()).into_iter())
    }

    /// Writes at most `limit` rows as DataRow. Returns how many, and whether the result has ended.
    pub(crate) async fn send(
        &mut self,
        wire: &mut Wire,
        cancel: &CancellationToken,
        limit: Option<u64>,
    ) -> Result<(u64, bool)> {
        let mut sent = 0;
        while let Some(rows) = self.rows(wire, cancel).await? {
            while self.next_row < rows.count() {
                rows.data_row(self.next_row, &self.formats, wire.out())?;
                self.next_row += 1;
                sent += 1;
                wire.flush_if_full(cancel).await?;
                if cancel.is_cancelled() {
                    return Err(Failure::cancelled().into());
                }
                // As in PostgreSQL, without looking whether more rows follow.
                if limit == Some(sent) {
                    self.batch = Some(rows);
                    return Ok((sent, false));
                }
            }
        }
        Ok((sent, true))
    }

    /// The current batch, to be written from `next_row` on; `None` after the last one.
    pub(crate) async fn rows(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<Option<Rows>> {
        if let Some(rows) = self.batch.take()
            && self.next_row < rows.count()
        {
            return Ok(Some(rows));
        }
        let batch = wire.wait_for(self.result.next(), cancel).await?;
        self.next_row = 0;
        Ok(batch.map(|batch| Rows::new(&batch, self.zone)).transpose()?)
    }
}
