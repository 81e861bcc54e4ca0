//! The messages of one DoPut, read one at a time, with backpressure. Only the end that the client sends is one;
//! anything else is an error, so that a partial upload writes nothing.

use crate::messages::Messages;
use crate::status::{CUT_OFF, unreadable};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::{FlightData, FlightDescriptor};
use bowshot_api::{BatchStream, Error, ErrorKind, Limits, Result};
use bowshot_ipc::{Decoded, Decoder};
use futures::StreamExt;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Status;

pub(crate) trait Rows {
    /// The rows. Waits for their schema.
    ///
    /// # Errors
    /// When they do not begin with a schema. The batches have an error where the client breaks off, and end with it.
    fn batches(self, max_bytes: usize) -> impl Future<Output = Result<BatchStream>> + Send;
}

#[derive(Debug)]
pub(crate) struct Upload {
    first: Option<FlightData>,
    messages: Messages,
    /// How long the client may leave the server waiting for its next message; zero means no limit.
    patience: Duration,
}

impl Upload {
    pub(crate) async fn begin(messages: Messages, limits: &Limits) -> Result<(FlightDescriptor, Self)> {
        let mut upload = Self { first: None, messages, patience: limits.reader_timeout };
        let mut first = upload.message().await?.ok_or_else(|| {
            Error::invalid("the stream is empty")
                .with_hint("send a first message with a descriptor, and the schema even if there are no rows")
        })?;
        let descriptor = first.flight_descriptor.take().ok_or_else(|| {
            Error::invalid("the first message has no descriptor")
                .with_hint("send a Flight SQL command in it, or the path of a table")
        })?;
        upload.first = Some(first);
        Ok((descriptor, upload))
    }

    /// The next message; `None` when the client has ended the stream.
    pub(crate) async fn message(&mut self) -> Result<Option<FlightData>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let next = self.messages.next();
        let next = if self.patience.is_zero() {
            next.await
        } else {
            timeout(self.patience, next).await.map_err(|_elapsed| silent(self.patience))?
        };
        next.map_err(broken)
    }

    /// Some clients send the descriptor alone, and the schema behind it.
    async fn schema(&mut self, decoder: &mut Decoder) -> Result<SchemaRef> {
        while let Some(data) = self.message().await? {
            if let Decoded::Schema(schema) = decoder.decode(&data.data_header, data.data_body)? {
                return Ok(schema);
            }
        }
        Err(Error::invalid("the stream has no schema")
            .with_hint("send the schema of the rows, even if there are none"))
    }
}

impl Rows for Upload {
    /// Decoded on polling; buffers one message only.
    async fn batches(mut self, max_bytes: usize) -> Result<BatchStream> {
        let mut decoder = Decoder::new().with_max_bytes(max_bytes);
        let schema = self.schema(&mut decoder).await?;
        let batches = futures::stream::try_unfold((self, decoder), next_batch);
        // Each message has its memory for itself.
        Ok(BatchStream::new(schema, batches.boxed()).exclusive())
    }
}

async fn next_batch(
    (mut upload, mut decoder): (Upload, Decoder),
) -> Result<Option<(RecordBatch, (Upload, Decoder))>> {
    while let Some(data) = upload.message().await? {
        match decoder.decode(&data.data_header, data.data_body)? {
            Decoded::Batch(batch) if batch.num_rows() > 0 => return Ok(Some((batch, (upload, decoder)))),
            Decoded::Batch(_) | Decoded::Schema(_) | Decoded::Dictionary | Decoded::Empty => {}
        }
    }
    Ok(None)
}

pub(crate) fn silent(patience: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("no message came for {} s", patience.as_secs_f32()))
        .with_hint("end the stream when everything is sent, or raise `limits.reader_timeout`")
}

fn broken(status: Status) -> Error {
    unreadable(&status).unwrap_or_else(|| Error::new(ErrorKind::Cancelled, CUT_OFF)).with_source(status)
}
