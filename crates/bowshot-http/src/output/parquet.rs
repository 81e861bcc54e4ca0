//! Parquet. Its pages are kept until a group of rows is whole, so groups are small.

use super::{Encoder, InHand};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Error, Result, batch_bytes};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use std::mem::take;
use std::sync::Arc;

/// Bytes and rows after which a group ends.
const GROUP_BYTES: usize = 32 << 20;
const GROUP_ROWS: usize = 1 << 20;
/// Bytes in memory of what a reader may take in one batch, however few are written for them.
const READ_BYTES: usize = 512 << 20;
/// Bytes of rows that are encoded at a time.
const PART_BYTES: usize = 1 << 20;

/// See the module.
pub(super) struct Parquet {
    writer: ArrowWriter<Vec<u8>>,
    hand: InHand,
    /// Bytes in memory of the rows since the last group that was closed for its size.
    bytes: usize,
}

impl Parquet {
    pub(super) fn new(answer: &Answer) -> Result<Self> {
        let hand = InHand::plain(answer);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let schema = Arc::clone(&hand.schema);
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map_err(unsupported)?;
        Ok(Self { writer, hand, bytes: 0 })
    }
}

fn unsupported(error: ParquetError) -> Error {
    Error::unsupported(format!("the result has no form as Parquet: {error}"))
        .with_hint("cast the columns in the query, or ask for application/vnd.apache.arrow.stream")
        .with_source(error)
}

/// Some types are refused with the first rows only.
fn unencoded(error: ParquetError) -> Error {
    match error {
        ParquetError::NYI(_) => unsupported(error),
        other => Error::internal("rows cannot be encoded as Parquet").with_source(other),
    }
}

impl Encoder for Parquet {
    fn take(&mut self, batch: RecordBatch) {
        self.hand.take(batch);
    }

    fn more(&mut self) -> Result<Option<Bytes>> {
        while let Some(batch) = self.hand.slice(PART_BYTES)? {
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

    fn failed(&mut self, _: &Value) -> Option<Bytes> {
        None
    }

    fn is_heavy(&self) -> bool {
        true
    }
}
