//! Rows that a client sends for a table (COPY … FROM STDIN, LOAD DATA LOCAL): they become batches that the session stores while
//! more of them come, all of them or none.

use crate::error::{ConnectionError, ProtocolError};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, IfExists, IfMissing, Ingest, Session};
use futures::{SinkExt, channel::mpsc};
use std::collections::BTreeMap;
use std::pin::pin;
use tokio_util::sync::CancellationToken;

/// Rows and bytes of one batch.
const BATCH_ROWS: usize = 16_384;
const BATCH_BYTES: usize = 4 << 20;
/// Batches that wait for the session.
const QUEUED_BATCHES: usize = 1;

/// Batches on their way to the session.
pub type BatchSender = mpsc::Sender<bowshot_api::Result<RecordBatch>>;

/// The client's side of a connection.
pub trait Client: Send {
    /// Waits until the client has gone.
    fn wait_closed(&mut self) -> impl Future<Output = ()> + Send;
}

/// What reads the rows off a connection.
pub trait RowReader: Send {
    /// The connection.
    type Client: Client;
    /// The errors of its protocol.
    type Error: ProtocolError;

    /// Sends all rows of the client as batches.
    fn read(
        &mut self,
        client: &mut Self::Client,
        batches: &mut BatchSender,
    ) -> impl Future<Output = Result<(), ConnectionError<Self::Error>>> + Send;
}

/// Whether the rows of a batch are enough for it to be sent.
pub fn is_full(rows: usize, bytes: usize) -> bool {
    rows >= BATCH_ROWS || bytes >= BATCH_BYTES
}

/// The schema of rows for a table: nulls are the session's affair.
pub fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    SchemaRef::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// Adds the client's rows to the table with this qualified name, and counts them.
///
/// # Errors
/// Those of the client and of the session; the table stays as it was then.
pub async fn append<R: RowReader>(
    (session, table): (&dyn Session, &[String]),
    (client, reader): (&mut R::Client, &mut R),
    schema: SchemaRef,
    cancel: &CancellationToken,
) -> Result<u64, ConnectionError<R::Error>> {
    let (batches, receiver) = mpsc::channel(QUEUED_BATCHES);
    // Dropped after the session's work is stopped: rows that are cut off must not look like all of them.
    let open = batches.clone();
    let rows = BatchStream::new(schema, Box::pin(receiver)).exclusive();
    let ingest = appending_to(table);
    let mut stored = pin!(session.ingest(&ingest, rows));
    {
        let mut sent = pin!(send_all(reader, client, batches));
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(R::Error::cancelled().into()),
            sent = &mut sent => sent?,
            // Before the last row it can only have failed.
            early = &mut stored => return Ok(early?),
        }
    }
    drop(open);
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(R::Error::cancelled().into()),
        stored = &mut stored => Ok(stored?),
        () = client.wait_closed() => Err(ConnectionError::Closed),
    }
}

/// Sends all rows. After an error the session gets one too, so that it stores none of them.
async fn send_all<R: RowReader>(
    reader: &mut R,
    client: &mut R::Client,
    mut batches: BatchSender,
) -> Result<(), ConnectionError<R::Error>> {
    let sent = reader.read(client, &mut batches).await;
    if sent.is_err() {
        let error = Error::new(ErrorKind::Cancelled, "the client did not send all rows");
        _ = batches.send(Err(error)).await;
    }
    sent
}

fn appending_to(table: &[String]) -> Ingest {
    let mut path = table.iter().rev().cloned();
    Ingest {
        table: path.next().unwrap_or_default(),
        schema_name: path.next(),
        catalog: path.next(),
        temporary: false,
        if_missing: IfMissing::Fail,
        if_exists: IfExists::Append,
        transaction: None,
        options: BTreeMap::new(),
    }
}
