//! A stream of record batches with its schema, as it crosses the door.

use crate::Result;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The bytes of something that a client sends, a piece at a time, up to an end that the client has made. Each piece that fails is
/// the last one.
pub type Pieces = BoxStream<'static, Result<Bytes>>;

/// What the batches of a stream may be views of, such as files that somebody can cut.
pub trait Origin: fmt::Debug + Send + Sync {
    /// Fails if batches that were taken may no longer be what they were. To be called after they were used.
    ///
    /// # Errors
    /// Says what has changed.
    fn check(&self) -> Result<()>;
}

/// Record batches of one schema. Dropping the stream stops the work behind it and frees what it holds.
pub struct BatchStream {
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
    exclusive: bool,
    origin: Option<Arc<dyn Origin>>,
}

impl BatchStream {
    /// A stream whose batches all have `schema`; the producer keeps that promise.
    pub fn new(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self { schema, batches, exclusive: false, origin: None }
    }

    /// A stream over batches that are there already.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self::new(schema, Box::pin(futures::stream::iter(batches.into_iter().map(Ok))))
    }

    /// Says that nobody else has the memory of the batches, nor can change it: who takes them need not copy them.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// Whether the producer has said so.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Says what the batches may be views of: who keeps them longer than the stream asks it before using them.
    #[must_use]
    pub fn with_origin(self, origin: Option<Arc<dyn Origin>>) -> Self {
        Self { origin, ..self }
    }

    /// What the producer has said of that.
    pub fn origin(&self) -> Option<&Arc<dyn Origin>> {
        self.origin.as_ref()
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

impl Stream for BatchStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Bytes that the rows of a batch take, slices counted by their own length and not by the buffers they point into.
///
/// Arrays whose slice size Arrow cannot tell count with their whole buffers.
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| {
            column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
        })
        .sum()
}
