//! Streams of record batches with their schema.

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
use std::vec::IntoIter;

/// Bytes that a client sends, in chunks, up to an explicit end. The stream ends with its first error.
pub type ByteStream = BoxStream<'static, Result<Bytes>>;

/// The storage that batches are views of, such as files that may be truncated.
pub trait Origin: fmt::Debug + Send + Sync {
    /// Fails if the storage has changed since batches were read. Call it after using them.
    ///
    /// # Errors
    /// Says what has changed.
    fn check(&self) -> Result<()>;
}

/// Record batches of one schema. Dropping the stream stops its work.
pub struct BatchStream {
    schema: SchemaRef,
    batches: Batches,
    exclusive: bool,
    origin: Option<Arc<dyn Origin>>,
}

enum Batches {
    /// All that are left.
    Ready(IntoIter<RecordBatch>),
    Coming(BoxStream<'static, Result<RecordBatch>>),
}

impl BatchStream {
    /// A stream of batches that all have `schema`.
    pub fn new(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self { schema, batches: Batches::Coming(batches), exclusive: false, origin: None }
    }

    /// A stream of existing batches.
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: Batches::Ready(batches.into_iter()), exclusive: false, origin: None }
    }

    /// The batches that are left, if all are there, and are no views of a storage that may change.
    pub fn ready(&self) -> Option<&[RecordBatch]> {
        match &self.batches {
            Batches::Ready(batches) if self.origin.is_none() => Some(batches.as_slice()),
            _ => None,
        }
    }

    /// Marks the batches as not shared: they can be stored without a copy.
    #[must_use]
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// Whether the batches are not shared.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Adds the storage that the batches are views of: check it before using batches after the stream has ended.
    #[must_use]
    pub fn with_origin(self, origin: Option<Arc<dyn Origin>>) -> Self {
        Self { origin, ..self }
    }

    /// The storage that the batches are views of.
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
        match &mut self.batches {
            Batches::Ready(batches) => Poll::Ready(batches.next().map(Ok)),
            Batches::Coming(batches) => batches.as_mut().poll_next(cx),
        }
    }
}

crate::debug_fields!(BatchStream { schema });

/// Bytes of a batch; slices count with their own length, not with that of their buffers.
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Schema;
    use futures::{FutureExt, StreamExt};

    #[derive(Debug)]
    struct File;

    impl Origin for File {
        fn check(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn batches_are_ready_that_are_left_and_cannot_change() {
        let schema = Arc::new(Schema::empty());
        let batch = || RecordBatch::new_empty(SchemaRef::clone(&schema));
        let stream = || BatchStream::from_batches(SchemaRef::clone(&schema), vec![batch(), batch()]);
        let ready = |stream: &BatchStream| stream.ready().map(<[RecordBatch]>::len);
        let mut read = stream();
        for left in (0..2).rev() {
            assert!(read.next().now_or_never().flatten().is_some());
            assert_eq!(ready(&read), Some(left));
        }
        assert!(read.next().now_or_never().flatten().is_none());
        assert_eq!(ready(&stream().with_origin(Some(Arc::new(File)))), None);
        let coming = BatchStream::new(SchemaRef::clone(&schema), stream().boxed());
        assert_eq!(ready(&coming), None);
    }
}
