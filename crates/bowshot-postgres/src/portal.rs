//! Results on their way out: a few rows at a time in the buffer, and the next batch is asked for when its client has taken the
//! last one.

use crate::backend::Column;
use crate::connection::{attend, cancelled};
use crate::extended::Prepared;
use crate::message::{Format, format_of};
use crate::rows::{PgType, Rows, types};
use crate::status::{Failure, Result};
use crate::wire::Wire;
use arrow::array::timezone::Tz;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, ColumnOrigin, Delivery, Endpoints, QueryId, Request, Server, Session};
use futures::StreamExt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Columns of a result, as in PostgreSQL.
const MOST_COLUMNS: usize = 1_664;

/// A statement with values, in the extended protocol.
pub(crate) struct Portal {
    pub(crate) statement: Arc<Prepared>,
    /// Tells portals of one statement apart.
    pub(crate) serial: u64,
    pub(crate) values: Option<RecordBatch>,
    pub(crate) formats: Vec<Format>,
    /// What the client was told of the columns.
    pub(crate) described: Option<Vec<Column>>,
    pub(crate) state: PortalState,
}

/// How far a portal has run.
pub(crate) enum PortalState {
    Fresh,
    Running(Box<Running>),
    Done,
}

/// A result that is being read. Dropping it stops the work behind it.
pub(crate) struct Running {
    server: Arc<dyn Server>,
    session: Arc<dyn Session>,
    query: QueryId,
    schema: SchemaRef,
    partitions: usize,
    next_partition: usize,
    stream: Option<BatchStream>,
    batch: Option<Rows>,
    next_row: usize,
    formats: Vec<Format>,
    /// Whose clock texts of instants show; none is that of UTC.
    zone: Option<Tz>,
}

/// The columns of a result in the formats that a client wants.
///
/// # Errors
/// For more columns than the protocol has room for, or another number of formats than columns.
pub(crate) fn columns(schema: &Schema, formats: &[Format]) -> Result<Vec<Column>> {
    let count = schema.fields().len();
    if count > MOST_COLUMNS {
        let message = format!("the result has {count} columns, and the limit is {MOST_COLUMNS}");
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

/// The columns with the tables that they come from, if that is known.
pub(crate) fn with_origins(mut columns: Vec<Column>, origins: Vec<Option<ColumnOrigin>>) -> Vec<Column> {
    if columns.len() == origins.len() {
        columns.iter_mut().zip(origins).for_each(|(column, origin)| column.origin = origin);
    }
    columns
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
        request: &Request,
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
            partitions: answer.partitions,
            next_partition: 0,
            stream: None,
            batch: None,
            next_row: 0,
            formats: Vec::new(),
            zone: None,
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How the client wants the values.
    pub(crate) fn read_as(&mut self, columns: &[Column]) {
        self.formats = columns.iter().map(|column| column.format).collect();
    }

    /// Texts of instants are those of this zone.
    pub(crate) fn in_zone(mut self, zone: Option<Tz>) -> Self {
        self.zone = zone;
        self
    }

    /// Whether the columns are what the client was told.
    pub(crate) fn is_as_told(&self, columns: &[Column]) -> bool {
        let oids = |kinds: &mut dyn Iterator<Item = PgType>| kinds.map(PgType::oid).collect::<Vec<_>>();
        oids(&mut columns.iter().map(|column| column.kind)) == oids(&mut types(&self.schema).into_iter())
    }

    /// Writes rows as DataRow, at most `limit`; gives how many and whether there are no more.
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
                wire.flush_some(cancel).await?;
                if cancel.is_cancelled() {
                    return Err(cancelled().into());
                }
                // Whether more follow is not looked at, as in PostgreSQL.
                if limit == Some(sent) {
                    self.batch = Some(rows);
                    return Ok((sent, false));
                }
            }
        }
        Ok((sent, true))
    }

    /// The batch that is not written yet, and from which row on; `None` after the last one.
    pub(crate) async fn rows(&mut self, wire: &mut Wire, cancel: &CancellationToken) -> Result<Option<Rows>> {
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
                    return Ok(Some(Rows::new(&batch, self.zone)?));
                }
                None => self.stream = None,
            }
        }
    }
}
