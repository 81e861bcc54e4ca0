//! Encodes results. Memory is limited to one batch and one chunk of its encoding.

mod arrow;
mod compression;
mod csv;
mod json;
mod json_values;
mod parquet;

use self::arrow::{File, Stream};
use self::compression::Compressed;
use self::csv::Csv;
pub(crate) use self::json::columns;
use self::json::{Json, Lines};
use self::parquet::Parquet;
use crate::media_type::{Format, ResponseFormat};
use ::arrow::datatypes::SchemaRef;
use ::arrow::error::ArrowError;
use ::arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Error, Layout, Limits, Result, batch_bytes};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;

/// Target size of a chunk of text formats.
const PIECE_BYTES: usize = 64 << 10;

pub(crate) trait Encoder: Send {
    /// Adds the next batch, after [`Encoder::more`] has returned `None`.
    fn take(&mut self, batch: RecordBatch);

    /// The next chunk; `None` if it needs another batch.
    fn more(&mut self) -> Result<Option<Bytes>>;

    fn end(&mut self) -> Result<Bytes>;

    /// The end of a failed result, if the format can express it; else the connection is aborted.
    fn failed(&mut self, _error: &Value) -> Option<Bytes> {
        None
    }

    /// Whether encoding is too slow for the socket runtime.
    fn is_heavy(&self) -> bool {
        false
    }
}

/// The encoder of a result.
///
/// # Errors
/// `Unsupported` for a column that the form has no place for.
pub(crate) fn encoder(wanted: ResponseFormat, answer: &Answer, limits: &Limits) -> Result<Box<dyn Encoder>> {
    let encoder: Box<dyn Encoder> = match wanted.format {
        Format::Json => Box::new(Json::new(answer)?),
        Format::Lines => Box::new(Lines::new(answer)?),
        Format::Csv => Box::new(Csv::new(answer)?),
        Format::ArrowStream => Box::new(Stream::new(answer, limits.message_bytes)?),
        Format::ArrowFile => Box::new(File::new(answer, limits.message_bytes)?),
        Format::Parquet => Box::new(Parquet::new(answer)?),
    };
    Ok(match wanted.coding {
        Some(coding) => Box::new(Compressed::new(encoder, coding)?),
        None => encoder,
    })
}

#[derive(Debug)]
struct BatchSlicer {
    layout: Layout,
    schema: SchemaRef,
    batch: Option<RecordBatch>,
    row: usize,
    row_bytes: usize,
}

impl BatchSlicer {
    /// Batches in the layout of the result.
    fn new(answer: &Answer) -> Self {
        let (layout, schema) = (answer.layout, Arc::clone(&answer.schema));
        Self { layout, schema, batch: None, row: 0, row_bytes: 1 }
    }

    /// Batches without dictionaries, for formats that do not support them.
    fn plain(answer: &Answer) -> Self {
        let layout = Layout { dictionaries: false, ..answer.layout };
        Self { layout, schema: layout.schema(&answer.schema), ..Self::new(answer) }
    }

    fn take(&mut self, batch: RecordBatch) {
        self.row_bytes = (batch_bytes(&batch) / batch.num_rows().max(1)).max(1);
        (self.batch, self.row) = (Some(batch), 0);
    }

    /// The next rows, of about `bytes` bytes.
    fn slice(&mut self, bytes: usize) -> Result<Option<RecordBatch>> {
        let Some(batch) = &self.batch else { return Ok(None) };
        let left = batch.num_rows().saturating_sub(self.row);
        if left == 0 {
            self.batch = None;
            return Ok(None);
        }
        let rows = (bytes / self.row_bytes).clamp(1, left);
        let slice = batch.slice(self.row, rows);
        self.row += rows;
        self.layout.apply(slice, &self.schema).map(Some)
    }
}

/// Arrow cannot encode the columns.
fn refused(form: &str, error: ArrowError) -> Error {
    Error::unsupported(format!("cannot encode the result as {form}: {error}"))
        .with_hint("cast the columns in the query, or ask for application/vnd.apache.arrow.stream")
        .with_source(error)
}

/// Arrow failed to encode valid rows.
fn unencoded(error: ArrowError) -> Error {
    Error::internal("rows cannot be encoded").with_source(error)
}
