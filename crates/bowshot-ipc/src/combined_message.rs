//! Several batches as one message without copying their values: the buffers of the batches are sent one after another as one buffer. Only
//! offsets, bitmaps, booleans and buffers too small to be sent alone are copied (`frame.rs`).

use crate::batch::batch_bytes;
use crate::batch_metadata::Parts;
use crate::encode::ALIGNMENT;
use crate::error::{Error, Result};
use crate::frame::{Message, Pieces};
use arrow::array::{Array, ArrayData, ArrayRef, BooleanBufferBuilder, OffsetSizeTrait};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow_ipc::FieldNode;
use bytes::Bytes;

/// Whether columns of a type can be joined so.
pub(crate) fn joins(data_type: &DataType) -> bool {
    data_type.is_primitive()
        || matches!(
            data_type,
            DataType::Null
                | DataType::Boolean
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::FixedSizeBinary(_)
        )
}

/// Bytes that a batch adds to a message of several, at most: if any of them has nulls in a column, all of them have a bitmap.
pub(crate) fn joined_bytes(batch: &RecordBatch) -> usize {
    let without_bitmap = batch.columns().iter().filter(|column| column.null_count() == 0).count();
    batch_bytes(batch, usize::MAX) + without_bitmap * batch.num_rows().div_ceil(8)
}

/// Batches of one schema whose columns all [join](joins), as one uncompressed message. Fails if texts exceed their offsets.
pub(crate) fn join(batches: &[RecordBatch]) -> Result<Message> {
    let mut body = Body::default();
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    for column in 0..columns {
        body.push_column(&batches.iter().map(|batch| batch.column(column)).collect::<Vec<_>>())?;
    }
    let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>() as i64;
    let Body { pieces, len, nodes, buffers } = body;
    let parts = Parts { rows, nodes, buffers, counts: vec![], codec: None };
    Ok(Message { header: parts.message(len).into(), body: pieces.finish(), app_metadata: Bytes::new() })
}

#[derive(Default)]
struct Body {
    pieces: Pieces,
    len: usize,
    nodes: Vec<FieldNode>,
    buffers: Vec<arrow_ipc::Buffer>,
}

impl Body {
    /// Adds a column, of which each batch has a part.
    fn push_column(&mut self, parts: &[&ArrayRef]) -> Result<()> {
        let rows = parts.iter().map(|part| part.len()).sum::<usize>();
        let Some(data_type) = parts.first().map(|part| part.data_type()) else { return Ok(()) };
        if *data_type == DataType::Null {
            self.nodes.push(FieldNode::new(rows as i64, rows as i64));
            return Ok(());
        }
        let nulls = parts.iter().map(|part| part.null_count()).sum::<usize>();
        self.nodes.push(FieldNode::new(rows as i64, nulls as i64));
        let validity = (nulls > 0).then(|| validity(parts, rows));
        self.push_buffer(validity);
        let parts: Vec<_> = parts.iter().map(|part| part.to_data()).collect();
        match data_type {
            DataType::Boolean => self.push_buffer([bits(&parts, rows)]),
            DataType::Utf8 | DataType::Binary => self.push_texts::<i32>(&parts, rows)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.push_texts::<i64>(&parts, rows)?,
            DataType::FixedSizeBinary(width) => self.push_values(&parts, *width as usize),
            fixed => self.push_values(&parts, fixed.primitive_width().ok_or_else(unexpected)?),
        }
        Ok(())
    }

    /// Values of `width` bytes.
    fn push_values(&mut self, parts: &[ArrayData], width: usize) {
        let of =
            |part: &ArrayData| part.buffers()[0].slice_with_length(part.offset() * width, part.len() * width);
        self.push_buffer(parts.iter().map(of));
    }

    /// Offsets, then the bytes of the texts.
    fn push_texts<O: OffsetSizeTrait>(&mut self, parts: &[ArrayData], rows: usize) -> Result<()> {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(O::zero());
        let mut texts = Vec::with_capacity(parts.len());
        let mut bytes = 0_usize;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let own = &part.buffer::<O>(0)[..=part.len()];
            let (first, last) = (own[0].as_usize(), own[part.len()].as_usize());
            let end = bytes + (last - first);
            O::from_usize(end).ok_or(Error::Encode(ArrowError::OffsetOverflowError(end)))?;
            // Each is at most `end`, which has just been seen to fit.
            let here = O::usize_as(bytes);
            offsets.extend(own[1..].iter().map(|offset| here + (*offset - own[0])));
            texts.push(part.buffers()[1].slice_with_length(first, last - first));
            bytes = end;
        }
        self.push_buffer([Buffer::from_vec(offsets)]);
        self.push_buffer(texts);
        Ok(())
    }

    fn push_buffer(&mut self, pieces: impl IntoIterator<Item = Buffer>) {
        let start = self.len;
        for piece in pieces {
            self.len += piece.len();
            self.pieces.push_buffer(piece);
        }
        self.buffers.push(arrow_ipc::Buffer::new(start as i64, (self.len - start) as i64));
        let padding = self.len.next_multiple_of(ALIGNMENT) - self.len;
        self.pieces.push_zeros(padding);
        self.len += padding;
    }
}

fn validity(parts: &[&ArrayRef], rows: usize) -> Buffer {
    let mut bits = BooleanBufferBuilder::new(rows);
    for part in parts {
        match part.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(part.len(), true),
        }
    }
    bits.finish().into_inner()
}

fn bits(parts: &[ArrayData], rows: usize) -> Buffer {
    let mut bits = BooleanBufferBuilder::new(rows);
    for part in parts {
        bits.append_packed_range(part.offset()..part.offset() + part.len(), part.buffers()[0].as_slice());
    }
    bits.finish().into_inner()
}

fn unexpected() -> Error {
    Error::Unexpected("columns that cannot be joined")
}
