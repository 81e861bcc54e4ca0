//! Cuts batches into slices that fit a message.

use crate::slice_size::Measure;
use arrow::record_batch::RecordBatch;

/// Rows of which a bitmap fills whole 64-bit words.
const WORD_ROWS: usize = 64;

/// Rows of which a bitmap fills whole 64-byte blocks.
const BLOCK_ROWS: usize = 512;

/// The slices of one batch, cut as they are asked for.
#[derive(Debug)]
pub(crate) struct Slices {
    batch: RecordBatch,
    next_row: usize,
    rows_per_slice: usize,
    limit_bytes: usize,
    done: bool,
}

impl Slices {
    /// Slices of about `target_bytes`; none is larger than one and a half times that unless it is a single row.
    pub(crate) fn new(batch: RecordBatch, target_bytes: usize) -> Self {
        let target = target_bytes.max(1);
        let limit_bytes = limit_bytes(target);
        let rows = batch.num_rows();
        let bytes = batch_bytes(&batch, limit_bytes);
        let rows_per_slice = if bytes <= limit_bytes { rows } else { share(rows, target, bytes) };
        Self { batch, next_row: 0, rows_per_slice, limit_bytes, done: false }
    }
}

impl Iterator for Slices {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done {
            return None;
        }
        let left = self.batch.num_rows() - self.next_row;
        if self.rows_per_slice >= self.batch.num_rows() {
            self.done = true;
            return Some(self.batch.clone());
        }
        let mut rows = self.rows_per_slice.min(left);
        let mut slice = self.batch.slice(self.next_row, rows);
        // Rows differ in size: where the average misleads, take fewer.
        while rows > 1 {
            let bytes = batch_bytes(&slice, self.limit_bytes);
            if bytes <= self.limit_bytes {
                break;
            }
            rows = share(rows, self.limit_bytes / 2, bytes);
            slice = self.batch.slice(self.next_row, rows);
        }
        self.next_row += rows;
        self.done = self.next_row >= self.batch.num_rows();
        Some(slice)
    }
}

/// The part of `rows` that makes `target` of `bytes`: at least one row, fewer than `rows`, a round number if possible.
fn share(rows: usize, target: usize, bytes: usize) -> usize {
    let exact = (rows as u128 * target as u128 / bytes.max(1) as u128) as usize;
    let exact = exact.min(rows.saturating_sub(1));
    let round = match exact {
        BLOCK_ROWS.. => exact / BLOCK_ROWS * BLOCK_ROWS,
        WORD_ROWS.. => exact / WORD_ROWS * WORD_ROWS,
        _ => exact,
    };
    round.max(1)
}

pub(crate) fn batch_bytes(batch: &RecordBatch, limit_bytes: usize) -> usize {
    let measure = Measure { dictionary_limit: limit_bytes };
    batch.columns().iter().map(|column| measure.bytes(column)).sum()
}

/// Bytes that no message exceeds, unless a single row does, when messages should have `target_bytes`.
pub(crate) fn limit_bytes(target_bytes: usize) -> usize {
    target_bytes.saturating_add(target_bytes / 2)
}
