//! The metrics of statements that have ended. To find one by its name takes longer than to count it, so they are found once, when
//! they are counted first.

use super::{Outcome, QueryRecord};
use metrics::{Counter, Histogram};
use std::sync::OnceLock;

/// The counters of ended statements.
#[derive(Debug, Default)]
pub(super) struct QueryMetrics {
    finished: OnceLock<Counter>,
    failed: OnceLock<Counter>,
    cancelled: OnceLock<Counter>,
    duration: OnceLock<Histogram>,
    rows: OnceLock<Counter>,
    bytes: OnceLock<Counter>,
}

impl QueryMetrics {
    pub(super) fn count(&self, record: &QueryRecord) {
        let queries = match record.outcome {
            Outcome::Finished => &self.finished,
            Outcome::Failed => &self.failed,
            Outcome::Cancelled => &self.cancelled,
        };
        let outcome = record.outcome.name();
        queries.get_or_init(|| metrics::counter!("bowshot_queries_total", "outcome" => outcome)).increment(1);
        self.duration
            .get_or_init(|| metrics::histogram!("bowshot_query_duration_seconds"))
            .record(record.duration.as_secs_f64());
        self.rows.get_or_init(|| metrics::counter!("bowshot_result_rows_total")).increment(record.rows);
        self.bytes.get_or_init(|| metrics::counter!("bowshot_result_bytes_total")).increment(record.bytes);
    }
}
