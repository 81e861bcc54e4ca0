//! Rows of a result for an agent: the first ones, as CSV to read and as JSON to compute with.

use crate::media_type::{Format, ResponseFormat};
use crate::output::encoder;
use crate::session_scope::SessionScope;
use crate::sql::read;
use crate::status::{Failure, Result};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Error, Limits, batch_bytes};
use std::ops::ControlFlow;

/// Bytes of the rows of one result, as Arrow has them: more than a model can take in.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct FirstRows {
    /// With the names of the columns.
    pub(super) csv: String,
    /// An object with `query_id`, `columns`, `rows` and `row_count`, without its closing brace.
    pub(super) open_json: String,
    pub(super) count: usize,
    /// Whether there are more rows.
    pub(super) is_cut: bool,
}

impl FirstRows {
    /// Reads at most `max_rows` rows. Reading ends there, and with it a query whose result is not stored.
    ///
    /// # Errors
    /// Those of the query, and `Unsupported` for columns that JSON has no place for.
    pub(super) async fn read(scope: &SessionScope, answer: &Answer, max_rows: usize) -> Result<Self> {
        let mut batches = Vec::new();
        let (mut rows_left, mut bytes_left, mut is_cut) = (max_rows, MAX_BYTES, false);
        let take = |batch: &RecordBatch| {
            let first = first_rows(batch, rows_left, bytes_left);
            rows_left = rows_left.saturating_sub(first.num_rows());
            bytes_left = bytes_left.saturating_sub(batch_bytes(&first));
            is_cut = first.num_rows() < batch.num_rows();
            batches.push(first);
            if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let named = |error: Error| Failure::from(error).with_query(answer.query);
        read(scope, answer, take).await.map_err(named)?;
        let limits = scope.server.limits();
        let csv = encode(Format::Csv, answer, &batches, limits).map_err(named)?;
        let json = encode(Format::Json, answer, &batches, limits).map_err(named)?;
        let open_json = json.trim_end().strip_suffix('}').map(str::to_owned);
        let open_json = open_json.ok_or_else(|| Error::internal("a result as JSON is no object"))?;
        Ok(Self { csv, open_json, count: max_rows - rows_left, is_cut })
    }

    /// The object with `query_id`, `columns`, `rows` and `row_count`.
    pub(super) fn json(&self) -> String {
        format!("{}}}", self.open_json)
    }
}

fn first_rows(batch: &RecordBatch, max_rows: usize, max_bytes: usize) -> RecordBatch {
    let mut first = batch.slice(0, batch.num_rows().min(max_rows));
    while first.num_rows() > 0 && batch_bytes(&first) > max_bytes {
        first = first.slice(0, first.num_rows() / 2);
    }
    first
}

fn encode(
    format: Format,
    answer: &Answer,
    batches: &[RecordBatch],
    limits: &Limits,
) -> bowshot_api::Result<String> {
    let mut encoder = encoder(ResponseFormat { format, coding: None }, answer, limits)?;
    let mut bytes = Vec::new();
    for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
        encoder.take(batch.clone());
        while let Some(chunk) = encoder.more()? {
            bytes.extend_from_slice(&chunk);
        }
    }
    bytes.extend_from_slice(&encoder.end()?);
    String::from_utf8(bytes).map_err(|error| Error::internal("a result is not UTF-8 text").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::first_rows;
    use arrow::array::{ArrayRef, StringArray};
    use arrow::record_batch::RecordBatch;
    use std::sync::Arc;

    #[test]
    fn rows_fit_by_count_and_by_size() {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..8).map(|_| "x".repeat(1000))));
        let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
        for (max_rows, max_bytes, expected) in
            [(100, 1 << 20, 8), (3, 1 << 20, 3), (100, 3000, 2), (100, 10, 0), (0, 1 << 20, 0)]
        {
            assert_eq!(
                first_rows(&batch, max_rows, max_bytes).num_rows(),
                expected,
                "{max_rows} {max_bytes}"
            );
        }
    }
}
