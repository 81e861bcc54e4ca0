//! Arrow streams and files. A file contains the messages of a stream between its magic and its footer, so both are
//! read front to back. Lengths are not trusted: memory is allocated only for bytes that have arrived, and
//! `bowshot-ipc` validates the content.

use crate::request_body::Upload;
use arrow::datatypes::SchemaRef;
use arrow::ipc::root_as_message;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result};
use bowshot_ipc::{Decoded, Decoder};
use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;

/// Begins an Arrow file; two bytes of padding follow.
const MAGIC: &[u8] = b"ARROW1\0\0";
const PADDING: &[u8] = &[0; 8];
/// Begins a message, but in the oldest streams.
const CONTINUATION: u32 = u32::MAX;
const MAX_METADATA_BYTES: usize = 64 << 20;

/// The rows of an Arrow stream or file. Waits for the schema.
///
/// # Errors
/// When the body does not begin with a schema. The batches have an error where it breaks, and end with it.
pub(super) async fn rows(upload: Upload, max_bytes: usize) -> Result<BatchStream> {
    let decoder = Decoder::new().with_max_bytes(max_bytes.saturating_mul(2));
    let mut frames = Frames { upload, buffer: BytesMut::new(), max_bytes, decoder, is_over: false };
    let schema = frames.begin().await?;
    let batches = futures::stream::try_unfold(frames, |mut frames| async move {
        Ok(frames.batch().await?.map(|batch| (batch, frames)))
    });
    // Each message has its own memory.
    Ok(BatchStream::new(schema, batches.boxed()).exclusive())
}

struct Frames {
    upload: Upload,
    buffer: BytesMut,
    max_bytes: usize,
    decoder: Decoder,
    is_over: bool,
}

impl Frames {
    async fn begin(&mut self) -> Result<SchemaRef> {
        if self.fill(MAGIC.len()).await? && self.buffer.starts_with(MAGIC) {
            self.buffer.advance(MAGIC.len());
            // Some writers pad by more than eight bytes.
            while self.fill(PADDING.len()).await? && self.buffer.starts_with(PADDING) {
                self.buffer.advance(PADDING.len());
            }
        }
        while let Some((header, body)) = self.message().await? {
            if let Decoded::Schema(schema) = self.decoder.decode(&header, body)? {
                return Ok(schema);
            }
        }
        Err(Error::invalid("the body has no Arrow schema")
            .with_hint("send an Arrow stream or file, with its schema even if there are no rows"))
    }

    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some((header, body)) = self.message().await? {
            match self.decoder.decode(&header, body)? {
                Decoded::Batch(batch) if batch.num_rows() > 0 => return Ok(Some(batch)),
                Decoded::Batch(_) | Decoded::Schema(_) | Decoded::Dictionary | Decoded::Empty => {}
            }
        }
        Ok(None)
    }

    /// The next message; `None` at the end.
    async fn message(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        if self.is_over || !self.fill(4).await? {
            if !self.buffer.is_empty() {
                return Err(cut());
            }
            return Ok(None);
        }
        let mut length = self.buffer.get_u32_le();
        if length == CONTINUATION {
            self.need(4).await?;
            length = self.buffer.get_u32_le();
        }
        if length == 0 {
            return self.drain().await;
        }
        let header = self.take(usize::try_from(length).unwrap_or(usize::MAX), MAX_METADATA_BYTES).await?;
        let message = root_as_message(&header).map_err(|error| {
            Error::invalid("the metadata of an Arrow message is malformed").with_source(error.to_string())
        })?;
        let body_bytes = usize::try_from(message.bodyLength())
            .map_err(|_| Error::invalid("invalid Arrow message: negative body length"))?;
        let body = self.take(body_bytes, self.max_bytes).await?;
        Ok(Some((header, body)))
    }

    /// Discards the rest, such as the footer of a file.
    async fn drain(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        self.is_over = true;
        self.buffer.clear();
        while self.upload.next().await?.is_some() {}
        Ok(None)
    }

    async fn take(&mut self, bytes: usize, limit: usize) -> Result<Bytes> {
        if bytes > limit {
            let message = format!("an Arrow message of {bytes} bytes is above the limit of {limit}");
            return Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("send smaller batches, or raise `limits.max_message_bytes`"));
        }
        self.need(bytes).await?;
        Ok(self.buffer.split_to(bytes).freeze())
    }

    async fn need(&mut self, bytes: usize) -> Result<()> {
        if self.fill(bytes).await? { Ok(()) } else { Err(cut()) }
    }

    /// Waits for this many bytes; returns whether they arrived before the end.
    async fn fill(&mut self, bytes: usize) -> Result<bool> {
        while self.buffer.len() < bytes {
            match self.upload.next().await? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn cut() -> Error {
    Error::invalid("the Arrow stream ends in the middle of a message").with_hint("send it to its end")
}
