//! The table `system.access_log`: the audit records of the last statements of all users. In memory only, visible to
//! administrators.

use super::{QueryRecord, micros, shown_tag};
use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, Result};
use std::sync::Arc;

const MAX_NAMES: usize = 100;

pub(super) fn rows(records: &[Arc<QueryRecord>]) -> Result<RecordBatch> {
    let text = |value: &dyn Fn(&QueryRecord) -> Option<String>| -> ArrayRef {
        Arc::new(records.iter().map(|record| value(record)).collect::<StringArray>())
    };
    let started =
        TimestampMicrosecondArray::from_iter_values(records.iter().map(|record| micros(record.started)));
    let durations = records.iter().map(|record| record.duration.as_secs_f64() * 1e3);
    let columns: [(&str, ArrayRef); 13] = [
        ("started", Arc::new(started.with_timezone("+00:00"))),
        ("user_name", text(&|record| Some(record.user.clone()))),
        ("session_id", text(&|record| Some(record.session.to_string()))),
        ("query_id", text(&|record| Some(record.id.to_string()))),
        ("statement", text(&|record| Some(record.sql.clone()))),
        ("tables", text(&|record| names(record, false))),
        ("tables_in_part", text(&|record| names(record, true))),
        ("decision", text(&|record| Some(record.decision.to_owned()))),
        ("outcome", text(&|record| Some(record.outcome.name().to_owned()))),
        ("error", text(&|record| record.error.clone())),
        ("rows", Arc::new(UInt64Array::from_iter_values(records.iter().map(|record| record.rows)))),
        ("duration_ms", Arc::new(Float64Array::from_iter_values(durations))),
        ("query_tag", text(&|record| shown_tag(&record.facts.tag))),
    ];
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::internal("cannot make the access log").with_source(error))
}

/// The tables used with, or without, row or column policies.
fn names(record: &QueryRecord, guarded: bool) -> Option<String> {
    let names =
        record.facts.tables.iter().filter(|(_, through)| *through == guarded).map(|(name, _)| name.as_str());
    let names: Vec<&str> = names.take(MAX_NAMES).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
