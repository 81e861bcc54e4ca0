//! CSV with a header (RFC 4180). An empty field is null.

use super::columns::resolve;
use super::sample::Sample;
use super::type_inference;
use super::{BATCH_BYTES, BATCH_ROWS};
use crate::request_body::Upload;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Result};
use bytes::{Buf, Bytes};
use futures::StreamExt;
use std::sync::Arc;

/// The rows of a CSV body. Waits for the sample.
///
/// # Errors
/// When there is no header. The batches have an error where the text breaks, and end with it.
pub(super) async fn rows(
    mut upload: Upload,
    table: Option<&Schema>,
    max_bytes: usize,
) -> Result<BatchStream> {
    let sample = Sample::take(&mut upload, Ok).await?;
    let end = if sample.is_whole { sample.bytes.len() } else { last_record_end(&sample.bytes)? };
    let lines = sample.bytes.get(..end).unwrap_or_default();
    if lines.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::invalid("the body is empty").with_hint("send CSV with a header"));
    }
    let format = Format::default().with_header(true);
    let (names, _) = format.infer_schema(lines, Some(0)).map_err(malformed)?;
    let texts = with_strings(&names, |_| true);
    let first = ReaderBuilder::new(Arc::clone(&texts)).with_format(format.clone()).build(lines);
    let first = first.and_then(|rows| rows.collect::<Result<Vec<RecordBatch>, _>>()).map_err(malformed)?;
    let count = first.iter().map(RecordBatch::num_rows).sum();
    let schema = resolve(&type_inference::schema(&first, &texts), table, can_parse)?;
    let inferred = |field: &Field| table.is_none_or(|table| table.field_with_name(field.name()).is_err());
    let decoder = ReaderBuilder::new(with_strings(&schema, inferred))
        .with_format(format)
        .with_batch_size(batch_rows(lines.len(), count))
        .build_decoder();
    let (buffer, wanted) = (Bytes::from(sample.bytes), Arc::clone(&schema));
    let is_whole = sample.is_whole;
    let lines =
        Lines { upload, buffer, decoder, schema: wanted, rows: 0, batch_bytes: 0, max_bytes, is_whole };
    let batches = futures::stream::try_unfold(lines, |mut lines| async move {
        Ok(lines.batch().await?.map(|batch| (batch, lines)))
    });
    Ok(BatchStream::new(schema, batches.boxed()).exclusive())
}

/// The columns, as strings where `is_string` returns true.
fn with_strings(columns: &Schema, is_string: impl Fn(&Field) -> bool) -> SchemaRef {
    let fields = columns.fields().iter().map(|field| match is_string(field) {
        true => Field::new(field.name(), DataType::Utf8, true),
        false => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows per batch, estimated from the sample.
fn batch_rows(bytes: usize, rows: usize) -> usize {
    let row_bytes = (bytes / rows.max(1)).max(1);
    (BATCH_BYTES / row_bytes).clamp(1, BATCH_ROWS)
}

fn last_record_end(bytes: &[u8]) -> Result<usize> {
    let (mut is_quoted, mut end) = (false, None);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => end = Some(index + 1),
            _ => {}
        }
    }
    end.ok_or_else(|| {
        let message = format!("the first {} bytes contain no complete line", bytes.len());
        Error::new(ErrorKind::LimitReached, message).with_hint("send CSV with a header and shorter lines")
    })
}

fn can_parse(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_floating()
        || matches!(
            data_type,
            DataType::Boolean
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
        )
}

fn malformed(error: ArrowError) -> Error {
    Error::invalid(format!("the CSV cannot be read: {error}"))
        .with_hint(
            "the types are those of the table, or what the first rows look like; quote fields with commas",
        )
        .with_source(error)
}

struct Lines {
    upload: Upload,
    buffer: Bytes,
    decoder: Decoder,
    schema: SchemaRef,
    rows: usize,
    batch_bytes: usize,
    max_bytes: usize,
    is_whole: bool,
}

impl Lines {
    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.buffer.is_empty() && !self.is_whole {
                match self.upload.next().await? {
                    Some(piece) => self.buffer = piece,
                    None => self.is_whole = true,
                }
            }
            // The decoder takes an empty buffer as the end.
            if self.buffer.is_empty() && !self.is_whole {
                continue;
            }
            let read = self.decoder.decode(&self.buffer).map_err(malformed)?;
            self.buffer.advance(read);
            self.batch_bytes += read;
            if self.batch_bytes > self.max_bytes {
                let message = format!("a few rows have more than {} bytes", self.max_bytes);
                return Err(Error::new(ErrorKind::LimitReached, message)
                    .with_hint("close the quotes, or raise `limits.max_message_bytes`"));
            }
            if self.decoder.capacity() == 0 || (read == 0 && self.buffer.is_empty()) {
                self.batch_bytes = 0;
                let Some(rows) = self.decoder.flush().map_err(malformed)? else { return Ok(None) };
                let typed = type_inference::typed(&rows, &self.schema, self.rows)?;
                self.rows += rows.num_rows();
                return Ok(Some(typed));
            }
        }
    }
}
