//! GET: copies the rows of a ticket into memory that the client maps, with two threads.

use super::batch_coalescer::CoalescedBatches;
use super::connection::Failure;
use super::frames::{self, Frame, Frames, Wire, broken};
use super::pool::{Memory, Pool};
use crate::caller::Caller;
use crate::metrics;
use crate::status::{refuse, status};
use crate::stream;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, QueryId, batch_bytes};
use bowshot_ipc::{schema_bytes, shared};
use bytes::{BufMut, Bytes, BytesMut};
use futures::future::{BoxFuture, ready};
use futures::stream::FuturesOrdered;
use futures::{FutureExt, StreamExt};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::sleep;

/// Unacknowledged frames with rows.
const AHEAD: usize = 4;
/// Memories that are being filled at once.
const FILLING: usize = 2;
/// Smaller results are sent through the socket: mapping would cost more than a copy.
const SMALL: usize = 256 << 10;
/// How long a frame waits for another.
const HELD: Duration = Duration::from_millis(2);
/// Reason for sending rows through the socket.
const FOR_SIZE: u8 = 0;
const FOR_LIMITS: u8 = 1;

pub(crate) struct Download<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) frames: &'a mut Frames,
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) under_way: usize,
}

/// Rows that are ready to be handed over.
enum Filled {
    Memory { memory: Memory, length: usize },
    Bytes { pieces: Vec<Bytes>, why: u8 },
}

type Filling = FuturesOrdered<BoxFuture<'static, bowshot_api::Result<Filled>>>;

impl Download<'_> {
    pub(crate) async fn run(&mut self, caller: &Caller, ticket: Bytes) -> Result<(), Failure> {
        let source = self.beside(stream::open(caller, ticket)).await??;
        let (query, schema) = (source.query, source.batches.schema());
        // Sent with the first rows, if they come soon.
        self.wire.hold(frames::SCHEMA, &[schema_bytes(&schema)])?;
        let mut rows = CoalescedBatches::new(source.batches);
        let (mut filling, mut more) = (Filling::new(), true);
        while more || !filling.is_empty() {
            let room = more && filling.len() < FILLING && self.under_way + filling.len() < AHEAD;
            tokio::select! {
                biased;
                Some(filled) = filling.next(), if !filling.is_empty() => {
                    self.hand_over(filled.map_err(|error| status(&error, query))?, rows.is_done()).await?;
                }
                batches = rows.next(), if room => match batches {
                    Some(batches) => filling.push_back(self.fill(&schema, batches, query)?),
                    None => more = false,
                },
                frame = self.frames.next() => self.hear(frame)?,
                () = sleep(HELD), if self.wire.holds() => self.wire.flush().await?,
            }
        }
        Ok(())
    }

    /// Waits for something, and ends with the client.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut work = Box::pin(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                frame = self.frames.next() => self.hear(frame)?,
            }
        }
    }

    /// Handles frames of the client during a download.
    fn hear(&mut self, frame: io::Result<Option<Frame>>) -> Result<(), Failure> {
        let Some(frame) = frame? else { return Err(Failure::Gone(io::ErrorKind::UnexpectedEof.into())) };
        match frame.kind {
            frames::TAKEN => self.under_way = self.under_way.saturating_sub(1),
            frames::RELEASE => self.pool.release(&frame.payload),
            _ => return Err(Failure::Gone(broken("a frame that has no place within a GET"))),
        }
        Ok(())
    }

    /// Has rows copied, on another thread if they are many.
    fn fill(
        &self,
        schema: &SchemaRef,
        batches: bowshot_api::Result<Vec<RecordBatch>>,
        query: Option<QueryId>,
    ) -> Result<BoxFuture<'static, bowshot_api::Result<Filled>>, Failure> {
        let batches = batches.map_err(|error| status(&error, query))?;
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        metrics::sent_rows().increment(rows as u64);
        if batches.iter().map(batch_bytes).sum::<usize>() < SMALL {
            return Ok(ready(fill(self.pool, schema, &batches)).boxed());
        }
        let (pool, schema) = (Arc::clone(self.pool), SchemaRef::clone(schema));
        let filling = spawn_blocking(move || fill(&pool, &schema, &batches));
        let broken = |error: JoinError| Err(Error::internal("rows were not copied").with_source(error));
        Ok(filling.map(move |filled| filled.unwrap_or_else(broken)).boxed())
    }

    /// Sends rows; the last ones with the end.
    async fn hand_over(&mut self, filled: Filled, last: bool) -> Result<(), Failure> {
        match filled {
            Filled::Memory { memory, length } => {
                let number = self.pool.number();
                let mut payload = BytesMut::with_capacity(12);
                payload.put_u32_le(number);
                payload.put_u64_le(length as u64);
                let descriptor = memory.shared.as_fd();
                self.wire.send(frames::MEMORY, &[payload.freeze()], Some(descriptor)).await?;
                self.pool.hold(number, memory);
                metrics::handed_over("memory").increment(length as u64);
            }
            Filled::Bytes { mut pieces, why } => {
                let length: usize = pieces.iter().map(Bytes::len).sum();
                pieces.insert(0, Bytes::copy_from_slice(&[why]));
                match last && length < SMALL {
                    true => self.wire.hold(frames::BYTES, &pieces)?,
                    false => self.wire.send(frames::BYTES, &pieces, None).await?,
                }
                metrics::handed_over("socket").increment(length as u64);
            }
        }
        self.under_way += 1;
        Ok(())
    }
}

/// Rows as an Arrow stream, in memory of their own where that is worth it and the limits allow it.
fn fill(pool: &Pool, schema: &SchemaRef, batches: &[RecordBatch]) -> bowshot_api::Result<Filled> {
    let pieces = shared::whole_stream(schema, batches)?;
    let length: usize = pieces.iter().map(Bytes::len).sum();
    if length < SMALL {
        return Ok(Filled::Bytes { pieces, why: FOR_SIZE });
    }
    match pool.fill(&pieces, length) {
        Ok(Some(memory)) => Ok(Filled::Memory { memory, length }),
        Ok(None) => Ok(Filled::Bytes { pieces, why: FOR_LIMITS }),
        Err(error) => Err(Error::new(ErrorKind::Unavailable, "there is no memory to hand rows over")
            .with_hint("connect with `same_host=False`, or try again later")
            .with_source(error)),
    }
}

/// A message for a call that could not be read.
pub(crate) fn unreadable(error: Error) -> Failure {
    Failure::Told(refuse(error))
}
