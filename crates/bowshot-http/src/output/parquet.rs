//! Parquet. A row group is buffered until it is complete, so groups are small.

use super::{BatchSlicer, Encoder};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Error, Result, batch_bytes};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::mem::take;
use std::sync::Arc;

/// Limits of a row group.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 1 << 20;
/// Decoded bytes of a row group, which a reader may load at once.
const READ_BYTES: usize = 512 << 20;
/// Bytes encoded at a time.
const PART_BYTES: usize = 1 << 20;

pub(super) struct Parquet {
    writer: ArrowWriter<Vec<u8>>,
    batches: BatchSlicer,
    /// Decoded bytes since the last flush.
    bytes: usize,
}

impl Parquet {
    pub(super) fn new(answer: &Answer) -> Result<Self> {
        let batches = BatchSlicer::plain(answer);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let schema = Arc::clone(&batches.schema);
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(unsupported)?;
        Ok(Self { writer, batches, bytes: 0 })
    }
}

fn unsupported(error: ParquetError) -> Error {
    Error::unsupported(format!("cannot encode the result as Parquet: {error}"))
        .with_hint("cast the columns in the query, or ask for application/vnd.apache.arrow.stream")
        .with_source(error)
}

/// Some types are rejected only when rows are written.
fn unencoded(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(_) => unsupported(error),
        other => Error::internal("rows cannot be encoded as Parquet").with_source(other),
    }
}

impl Encoder for Parquet {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        while let Some(batch) = self.batches.slice(PART_BYTES)? {
            self.writer.write(&batch).map_err(unencoded)?;
            self.bytes += batch_bytes(&batch);
            if self.writer.in_progress_size() >= GROUP_BYTES || self.bytes >= READ_BYTES {
                self.writer.flush().map_err(unencoded)?;
                self.bytes = 0;
            }
            let written = take(self.writer.inner_mut());
            if !written.is_empty() {
                return Ok(Some(written.into()));
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<Bytes> {
        self.writer.finish().map_err(unencoded)?;
        Ok(take(self.writer.inner_mut()).into())
    }

    fn is_heavy(&self) -> bool {
        true
    }
}
