//! Arrow IPC streams and files. Large buffers are sent without a copy.

use super::{BatchSlicer, Encoder, refused, unencoded};
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamEncoder};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Compression, Error, Layout, Result};
use bytes::Bytes;
use std::collections::VecDeque;
use std::mem::take;

/// Smaller buffers are merged.
const SMALL_BYTES: usize = 16 << 10;

fn options(layout: Layout) -> Result<IpcWriteOptions> {
    let compression = match layout.compression {
        Compression::None => None,
        Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
        Compression::Zstd => Some(CompressionType::ZSTD),
    };
    IpcWriteOptions::default().try_with_compression(compression).map_err(unencoded)
}

struct Owned(Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

pub(super) struct Stream {
    /// `None` after the end.
    encoder: Option<StreamEncoder>,
    ready: VecDeque<Bytes>,
    batches: BatchSlicer,
    message_bytes: usize,
}

impl Stream {
    pub(super) fn new(answer: &Answer, message_bytes: usize) -> Result<Self> {
        let encoder = StreamEncoder::try_new_with_options(&answer.schema, options(answer.layout)?);
        let encoder = encoder.map_err(|error| refused("an Arrow stream", error))?;
        Ok(Self {
            encoder: Some(encoder),
            ready: VecDeque::new(),
            batches: BatchSlicer::new(answer),
            message_bytes,
        })
    }
}

fn over() -> Error {
    Error::internal("a stream goes on after its end")
}

impl Encoder for Stream {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        if let Some(piece) = self.ready.pop_front() {
            return Ok(Some(piece));
        }
        let Some(batch) = self.batches.slice(self.message_bytes)? else { return Ok(None) };
        let encoder = self.encoder.as_mut().ok_or_else(over)?;
        let mut small = Vec::new();
        for buffer in encoder.encode(&batch).map_err(unencoded)? {
            if buffer.len() < SMALL_BYTES {
                small.extend_from_slice(&buffer);
                continue;
            }
            if !small.is_empty() {
                self.ready.push_back(take(&mut small).into());
            }
            self.ready.push_back(Bytes::from_owner(Owned(buffer)));
        }
        if !small.is_empty() {
            self.ready.push_back(small.into());
        }
        Ok(self.ready.pop_front())
    }

    fn end(&mut self) -> Result<Bytes> {
        let buffers = self.encoder.take().ok_or_else(over)?.finish().map_err(unencoded)?;
        Ok(buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect())
    }
}

/// The file format, which does not allow dictionaries to change: they are decoded.
pub(super) struct File {
    writer: FileWriter<Vec<u8>>,
    batches: BatchSlicer,
    message_bytes: usize,
}

impl File {
    pub(super) fn new(answer: &Answer, message_bytes: usize) -> Result<Self> {
        let batches = BatchSlicer::plain(answer);
        let writer = FileWriter::try_new_with_options(Vec::new(), &batches.schema, options(batches.layout)?);
        let writer = writer.map_err(|error: ArrowError| refused("an Arrow file", error))?;
        Ok(Self { writer, batches, message_bytes })
    }
}

impl Encoder for File {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(batch) = self.batches.slice(self.message_bytes)? else { return Ok(None) };
        self.writer.write(&batch).map_err(unencoded)?;
        Ok(Some(take(self.writer.get_mut()).into()))
    }

    fn end(&mut self) -> Result<Bytes> {
        self.writer.finish().map_err(unencoded)?;
        Ok(take(self.writer.get_mut()).into())
    }
}
