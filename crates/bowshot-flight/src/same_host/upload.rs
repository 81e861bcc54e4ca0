//! PUT: rows that the client wrote into its own memory. Each memory is validated (`open_sealed`), contains one Arrow
//! stream, and passes the same checks as messages of DoPut.

use super::connection::Failure;
use super::frames::{self, Frame, Frames, Wire, broken};
use super::pool::Pool;
use crate::caller::Caller;
use crate::ingest;
use crate::put::{misplaced, wanted};
use crate::status::{CUT_OFF, refuse};
use crate::upload::{Rows, silent};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightDescriptor;
use arrow_flight::sql::Command;
use bowshot_api::{BatchStream, Error, ErrorKind, Limits, Result};
use bowshot_ipc::shared::{Encapsulated, open_sealed};
use bowshot_ipc::{Decoded, Decoder};
use bytes::Bytes;
use futures::StreamExt;
use prost::Message;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Unacknowledged memories of a client.
const AHEAD: usize = 4;

pub(crate) struct Upload<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) frames: &'a mut Frames,
    pub(crate) pool: &'a Pool,
}

impl Upload<'_> {
    /// Answers a call; the bytes are the metadata of its result, as those of a DoPut.
    pub(crate) async fn run(
        &mut self,
        caller: &Caller,
        descriptor: Bytes,
    ) -> std::result::Result<Bytes, Failure> {
        let descriptor = FlightDescriptor::decode(descriptor)
            .map_err(|error| refuse(Error::invalid("the call has no FlightDescriptor").with_source(error)))?;
        let command = match wanted(&descriptor).map_err(refuse)? {
            Command::CommandStatementIngest(command) => command,
            other => return Err(refuse(misplaced(&other)).into()),
        };
        // One more for the end.
        let (sender, memories) = mpsc::channel(AHEAD + 1);
        let (taken, mut taken_ones) = mpsc::unbounded_channel();
        let rows = Memories::new(memories, taken, caller.server().limits());
        let mut work = Box::pin(ingest::ingest(caller, command, rows));
        let mut sender = Some(sender);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done.map_err(refuse)?),
                Some(()) = taken_ones.recv() => self.wire.send(frames::TAKEN, &[], None).await?,
                frame = self.frames.next() => self.hear(frame, &mut sender)?,
            }
        }
    }

    /// Handles frames of the client during an upload.
    fn hear(
        &self,
        frame: io::Result<Option<Frame>>,
        sender: &mut Option<mpsc::Sender<Sent>>,
    ) -> std::result::Result<(), Failure> {
        let Some(frame) = frame? else { return Err(Failure::Gone(io::ErrorKind::UnexpectedEof.into())) };
        let Frame { kind, payload, descriptor } = frame;
        match (kind, descriptor) {
            (frames::MEMORY, Some(descriptor)) => pass(sender.as_ref(), Sent::Memory(descriptor)),
            (frames::DONE, _) => pass(sender.take().as_ref(), Sent::End),
            (frames::RELEASE, _) => {
                self.pool.release(&payload);
                Ok(())
            }
            _ => Err(Failure::Gone(broken("a frame that has no place within a PUT"))),
        }
    }
}

/// Passes a frame on; the channel has room while the client follows the protocol.
fn pass(sender: Option<&mpsc::Sender<Sent>>, sent: Sent) -> std::result::Result<(), Failure> {
    match sender.is_some_and(|sender| sender.try_send(sent).is_ok()) {
        true => Ok(()),
        false => Err(Failure::Gone(broken("more rows than may be under way, or rows behind the end"))),
    }
}

enum Sent {
    Memory(OwnedFd),
    End,
}

enum Next {
    Schema(SchemaRef),
    Batch(RecordBatch),
    End,
}

struct Memories {
    coming: mpsc::Receiver<Sent>,
    taken: mpsc::UnboundedSender<()>,
    patience: Duration,
    /// Longest memory.
    most: usize,
    /// Longest decompressed message.
    max_bytes: usize,
    current: Option<(Encapsulated, Decoder)>,
    schema: Option<SchemaRef>,
}

impl Memories {
    fn new(coming: mpsc::Receiver<Sent>, taken: mpsc::UnboundedSender<()>, limits: &Limits) -> Self {
        Self {
            coming,
            taken,
            patience: limits.reader_timeout,
            most: limits.max_message_bytes,
            max_bytes: limits.max_message_bytes,
            current: None,
            schema: None,
        }
    }

    async fn next(&mut self) -> Result<Next> {
        loop {
            let Some((messages, decoder)) = self.current.as_mut() else {
                let Sent::Memory(descriptor) = self.sent().await? else { return Ok(Next::End) };
                let bytes = open_sealed(descriptor, self.most)?;
                let decoder = Decoder::new().with_max_bytes(self.max_bytes);
                self.current = Some((Encapsulated::new(bytes), decoder));
                continue;
            };
            let Some(message) = messages.next() else {
                if decoder.schema().is_none() {
                    return Err(Error::invalid("a memory has no schema")
                        .with_hint("each memory is a whole Arrow stream"));
                }
                self.current = None;
                // Ignore errors: the receiver has dropped the rows.
                let _ = self.taken.send(());
                continue;
            };
            let (header, body) = message?;
            match decoder.decode(&header, body)? {
                Decoded::Batch(batch) if batch.num_rows() > 0 => return Ok(Next::Batch(batch)),
                Decoded::Schema(schema) => return self.follows(schema),
                Decoded::Batch(_) | Decoded::Dictionary | Decoded::Empty => {}
            }
        }
    }

    /// Checks that the schema equals the first one.
    fn follows(&mut self, schema: SchemaRef) -> Result<Next> {
        if self.schema.get_or_insert_with(|| SchemaRef::clone(&schema)).fields() != schema.fields() {
            return Err(Error::invalid("the schema of a memory differs from that of the first one")
                .with_hint("send rows of one schema"));
        }
        Ok(Next::Schema(schema))
    }

    async fn sent(&mut self) -> Result<Sent> {
        let next = self.coming.recv();
        let next = match self.patience.is_zero() {
            true => next.await,
            false => timeout(self.patience, next).await.map_err(|_elapsed| silent(self.patience))?,
        };
        next.ok_or_else(|| Error::new(ErrorKind::Cancelled, CUT_OFF))
    }
}

impl Rows for Memories {
    /// The rows, decoded on polling. They are views of client memory: copy to retain them.
    async fn batches(mut self, max_bytes: usize) -> Result<BatchStream> {
        self.max_bytes = max_bytes;
        // The schema is first.
        let Next::Schema(schema) = self.next().await? else {
            return Err(Error::invalid("there are no rows, and no schema")
                .with_hint("send a memory with the schema, even if there are no rows"));
        };
        let batches = futures::stream::try_unfold(self, |mut memories| async move {
            loop {
                match memories.next().await? {
                    Next::Batch(batch) => return Ok(Some((batch, memories))),
                    Next::Schema(_) => {}
                    Next::End => return Ok(None),
                }
            }
        });
        Ok(BatchStream::new(schema, batches.boxed()))
    }
}
