//! Arrow streams and files (Arrow columnar format, "Encapsulated message format"). The messages of a file are those of a stream
//! between its magic and its footer, so that both are read from their front to their end.
//!
//! The bytes come from a client: no length that they say makes memory before as many bytes have come, and what is in them
//! `bowshot-ipc` checks.

use crate::upload::Upload;
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
/// Bytes of the metadata of one message.
const MAX_METADATA_BYTES: usize = 64 << 20;

/// The rows of a stream or a file. Waits for the schema.
///
/// # Errors
/// When the body does not begin with a schema. The batches have an error where it breaks, and end with it.
pub(super) async fn rows(upload: Upload, longest: usize) -> Result<BatchStream> {
    let decoder = Decoder::new().with_max_bytes(longest.saturating_mul(2));
    let mut frames = Frames { upload, come: BytesMut::new(), longest, decoder, is_over: false };
    let schema = frames.begin().await?;
    let batches = futures::stream::try_unfold(frames, |mut frames| async move {
        Ok(frames.batch().await?.map(|batch| (batch, frames)))
    });
    // Each message has its memory for itself.
    Ok(BatchStream::new(schema, batches.boxed()).exclusive())
}

struct Frames {
    upload: Upload,
    /// What has come and was not read.
    come: BytesMut,
    longest: usize,
    decoder: Decoder,
    is_over: bool,
}

impl Frames {
    async fn begin(&mut self) -> Result<SchemaRef> {
        if self.fill(MAGIC.len()).await? && self.come.starts_with(MAGIC) {
            self.come.advance(MAGIC.len());
            // Some writers fill up to more than the eight bytes that have to be.
            while self.fill(PADDING.len()).await? && self.come.starts_with(PADDING) {
                self.come.advance(PADDING.len());
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

    /// The next message; `None` after the last one. The body has come to its end then.
    async fn message(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        if self.is_over || !self.fill(4).await? {
            if !self.come.is_empty() {
                return Err(cut());
            }
            return Ok(None);
        }
        let mut length = self.come.get_u32_le();
        if length == CONTINUATION {
            self.need(4).await?;
            length = self.come.get_u32_le();
        }
        if length == 0 {
            return self.drain().await;
        }
        let header = self.take(usize::try_from(length).unwrap_or(usize::MAX), MAX_METADATA_BYTES).await?;
        let message = root_as_message(&header).map_err(|error| {
            Error::invalid("the metadata of an Arrow message is malformed").with_source(error.to_string())
        })?;
        let body_bytes = usize::try_from(message.bodyLength())
            .map_err(|_| Error::invalid("an Arrow message says that its body is shorter than nothing"))?;
        let body = self.take(body_bytes, self.longest).await?;
        Ok(Some((header, body)))
    }

    /// Reads what follows the last message, such as the footer of a file, without a look at it.
    async fn drain(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        self.is_over = true;
        self.come.clear();
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
        Ok(self.come.split_to(bytes).freeze())
    }

    async fn need(&mut self, bytes: usize) -> Result<()> {
        if self.fill(bytes).await? { Ok(()) } else { Err(cut()) }
    }

    /// Waits until as many bytes have come; tells whether they have before the end.
    async fn fill(&mut self, bytes: usize) -> Result<bool> {
        while self.come.len() < bytes {
            match self.upload.next().await? {
                Some(piece) => self.come.extend_from_slice(&piece),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn cut() -> Error {
    Error::invalid("the Arrow stream ends in the middle of a message").with_hint("send it to its end")
}
