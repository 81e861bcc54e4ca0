//! CSV (RFC 4180) with a header. Null is an empty field, an empty string is `""`; nested values are written as JSON.

use super::json_values::{JsonValues, check, is_uuid, options};
use super::{BatchSlicer, Encoder, PIECE_BYTES, refused, unencoded};
use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::json::EncoderOptions;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bowshot_api::{Answer, Result};
use bytes::Bytes;
use std::io::Write as _;

pub(super) struct Csv {
    /// Pending bytes before the next row.
    before: Vec<u8>,
    options: EncoderOptions,
    batches: BatchSlicer,
}

impl Csv {
    pub(super) fn new(answer: &Answer) -> Result<Self> {
        let batches = BatchSlicer::plain(answer);
        check(&batches.schema).map_err(|error| refused("CSV", error))?;
        let mut before = Vec::new();
        for (index, field) in batches.schema.fields().iter().enumerate() {
            put(index, Some(field.name().as_bytes()), &mut before);
        }
        before.extend_from_slice(b"\r\n");
        Ok(Self { before, options: options(), batches })
    }

    fn rows(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let format = FormatOptions::new().with_display_error(true);
        let fields = batch.schema_ref().fields();
        let formatters: Vec<Option<ArrayFormatter<'_>>> = batch
            .columns()
            .iter()
            .zip(fields)
            .map(|(column, field)| match is_plain(field) {
                true => ArrayFormatter::try_new(column.as_ref(), &format).map(Some),
                false => Ok(None),
            })
            .collect::<Result<_, _>>()?;
        let nulls: Vec<_> = batch.columns().iter().map(|column| column.logical_nulls()).collect();
        let mut cells = JsonValues::new(batch, &self.options)?;
        let mut text = Vec::new();
        for row in 0..batch.num_rows() {
            for (index, (nulls, formatter)) in nulls.iter().zip(&formatters).enumerate() {
                text.clear();
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    put(index, None, out);
                    continue;
                }
                match formatter {
                    // Writing to a vector cannot fail.
                    Some(formatter) => _ = write!(text, "{}", formatter.value(row)),
                    None => cells.put(index, row, &mut text),
                }
                let text = match text.as_slice() {
                    [b'"', uuid @ .., b'"'] if is_uuid(batch.schema_ref().field(index)) => uuid,
                    text => text,
                };
                put(index, Some(text), out);
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }
}

/// Whether values are written as plain text.
fn is_plain(field: &Field) -> bool {
    let data_type = field.data_type();
    !data_type.is_nested() && !matches!(data_type, DataType::Dictionary(..)) && !is_uuid(field)
}

/// Writes one field with its separator.
fn put(index: usize, text: Option<&[u8]>, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
    let Some(text) = text else { return };
    let is_special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.iter().any(is_special) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

impl Encoder for Csv {
    bowshot_api::delegate! { batches: fn take(&mut self, batch: RecordBatch); }

    fn more(&mut self) -> Result<Option<Bytes>> {
        let Some(batch) = self.batches.slice(PIECE_BYTES)? else { return Ok(None) };
        let mut out = std::mem::take(&mut self.before);
        self.rows(&batch, &mut out).map_err(unencoded)?;
        Ok(Some(out.into()))
    }

    fn end(&mut self) -> Result<Bytes> {
        Ok(std::mem::take(&mut self.before).into())
    }
}
