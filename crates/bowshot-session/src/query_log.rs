//! The table `system.queries`: running statements and the last finished ones. Bounded, in memory only.

mod access_log;
mod query_metrics;
mod suggested;
mod tag_labels;

use crate::access_metrics;
use crate::running_statements::{RunningStatement, RunningStatements, StatementFacts};
use arrow::array::{ArrayRef, Float64Array, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::record_batch::RecordBatch;
use bowshot_access::AuditLog;
use bowshot_api::{Error, ErrorKind, NoDecision, Principal, QueryId, Result, SessionId};
use bowshot_engine::SuggestedView;
use bowshot_system_catalog::system::SystemTables;
use parking_lot::Mutex;
use query_metrics::QueryMetrics;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tag_labels::TagLabels;

const CAPACITY: usize = 10_000;
/// Longest stored SQL text, in bytes.
const SQL_BYTES: usize = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Finished,
    Failed,
    Cancelled,
}

impl Outcome {
    /// The outcome of a statement that failed.
    pub(crate) fn from_error(error: &Error) -> Self {
        if error.kind() == ErrorKind::Cancelled { Self::Cancelled } else { Self::Failed }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug)]
pub(crate) struct QueryRecord {
    pub(crate) id: QueryId,
    pub(crate) session: SessionId,
    pub(crate) user: String,
    /// Redacted.
    pub(crate) sql: String,
    pub(crate) outcome: Outcome,
    pub(crate) started: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) error: Option<String>,
    /// The access decision: see [`decision`].
    pub(crate) decision: &'static str,
    pub(crate) facts: StatementFacts,
}

/// What the operator wants to know of statements that have ended.
#[derive(Debug, Default)]
pub struct QueryLogOptions {
    pub audit: Option<AuditLog>,
    /// Statements that took this long have a line in the log; none when zero.
    pub slow_after: Duration,
    /// Whether statements are counted by their tags, which whoever reads the metrics then sees.
    pub count_tags: bool,
}

/// The query log. Users see their own statements only.
#[derive(Debug, Default)]
pub struct QueryLog {
    records: Mutex<VecDeque<Arc<QueryRecord>>>,
    /// Records of [`mod@access_log`], refused statements included.
    decisions: Mutex<VecDeque<Arc<QueryRecord>>>,
    /// Statements that have ended since the start.
    ended: AtomicU64,
    suggested: Mutex<Vec<SuggestedView>>,
    live: Arc<RunningStatements>,
    options: QueryLogOptions,
    tags: TagLabels,
    metrics: QueryMetrics,
}

impl QueryLog {
    /// A log with these options; the default has none of them.
    pub fn new(options: QueryLogOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Fails if the audit trail cannot be written.
    ///
    /// # Errors
    /// `Unavailable` while it cannot be written.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(Err(reason)) = self.options.audit.as_ref().map(AuditLog::check) else { return Ok(()) };
        tracing::debug!(reason, "cannot run the statement: the audit trail cannot be written");
        Err(Error::new(ErrorKind::Unavailable, "cannot write the audit trail: statements are refused")
            .with_hint("free space on the disk, or set `audit.required` to false"))
    }

    pub(crate) fn live(&self) -> &Arc<RunningStatements> {
        &self.live
    }

    pub(crate) fn add(&self, mut record: QueryRecord) {
        self.metrics.count(&record);
        tracing::debug!(query = %record.id, outcome = record.outcome.name(), rows = record.rows,
            milliseconds = record.duration.as_millis() as u64, "query ended");
        if self.options.count_tags {
            self.tags.count(&record.facts.tag, record.outcome.name());
        }
        self.decided(&mut record);
        if !self.options.slow_after.is_zero() && record.duration >= self.options.slow_after {
            log_slow(&record);
        }
        let record = Arc::new(record);
        keep(&self.decisions, &record);
        keep(&self.records, &record);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// How many statements have ended since the start.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Records a statement that was refused before it ran, for the operator only.
    pub(crate) fn refused(&self, mut record: QueryRecord) {
        self.decided(&mut record);
        keep(&self.decisions, &Arc::new(record));
    }

    /// Counts the decision and writes it to the audit trail.
    fn decided(&self, record: &mut QueryRecord) {
        access_metrics::decided(&record.sql, record.decision);
        if let Some(audit) = &self.options.audit {
            access_metrics::line(audit.write(facts(record)));
        }
        shorten(&mut record.sql);
    }

    pub(crate) fn rows(&self, principal: &Principal) -> Result<RecordBatch> {
        let records = self.records.lock();
        let mut rows: Vec<Row> = records
            .iter()
            .filter(|record| record.user == principal.name)
            .map(|record| Row::ended(record))
            .collect();
        drop(records);
        rows.extend(self.live.by_principal(principal).iter().map(|statement| Row::live(statement)));
        let text = |value: &dyn Fn(&Row) -> Option<String>| -> ArrayRef {
            Arc::new(rows.iter().map(value).collect::<StringArray>())
        };
        let started = rows.iter().map(|row| micros(row.started));
        let started = TimestampMicrosecondArray::from_iter_values(started).with_timezone("+00:00");
        let durations = rows.iter().map(|row| row.duration.as_secs_f64() * 1e3);
        let number = |value: &dyn Fn(&Row) -> Option<u64>| -> ArrayRef {
            Arc::new(rows.iter().map(value).collect::<UInt64Array>())
        };
        let columns: [(&str, ArrayRef, bool); 15] = [
            ("query_id", text(&|row| Some(row.id.to_string())), false),
            ("session_id", text(&|row| Some(row.session.to_string())), false),
            ("user_name", text(&|row| Some(row.user.clone())), false),
            ("statement", text(&|row| Some(row.sql.clone())), false),
            ("outcome", text(&|row| Some(row.outcome.to_owned())), false),
            ("started", Arc::new(started), false),
            ("duration_ms", Arc::new(Float64Array::from_iter_values(durations)), false),
            ("rows", number(&|row| Some(row.rows)), false),
            ("bytes", number(&|row| Some(row.bytes)), false),
            ("error", text(&|row| row.error.clone()), true),
            ("waits_for", text(&|row| row.waits_for.map(ToOwned::to_owned)), true),
            ("progress", Arc::new(rows.iter().map(|row| row.fraction).collect::<Float64Array>()), true),
            ("memory_bytes", number(&|row| row.memory), true),
            ("rows_in", number(&|row| Some(row.rows_in)), false),
            ("query_tag", text(&|row| shown_tag(&row.tag)), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| Error::internal("the query log does not fit its schema").with_source(error))
    }
}

/// The tag as a value of SQL: null where the session has none.
fn shown_tag(tag: &str) -> Option<String> {
    (!tag.is_empty()).then(|| tag.to_owned())
}

/// Writes the line of a slow statement, whose text has no passwords and is cut by [`shorten`]. A warning, so that it does not
/// depend on the levels of the log.
fn log_slow(record: &QueryRecord) {
    let StatementFacts { tag, rows_in, rows_affected, queued, .. } = &record.facts;
    tracing::warn!(
        query = %record.id,
        session = %record.session,
        user = record.user.as_str(),
        query_tag = &**tag,
        outcome = record.outcome.name(),
        duration_ms = record.duration.as_secs_f64() * 1e3,
        queued_ms = queued.as_secs_f64() * 1e3,
        rows = record.rows,
        bytes = record.bytes,
        rows_in = *rows_in,
        rows_affected = *rows_affected,
        statement = record.sql.as_str(),
        "slow statement"
    );
}

/// The access decision on a statement. Objects that a user may not see are reported as missing.
pub(crate) fn decision(error: Option<&Error>) -> &'static str {
    match error.map(Error::kind) {
        Some(ErrorKind::Denied) => "denied",
        Some(ErrorKind::NotFound) => "not_found",
        Some(ErrorKind::Unavailable) if error.is_some_and(NoDecision::is_in) => "undecided",
        _ => "allowed",
    }
}

fn facts(record: &QueryRecord) -> Map<String, Value> {
    let names = |guarded: bool| -> Vec<&str> {
        let tables = record.facts.tables.iter().filter(|(_, through)| *through == guarded);
        tables.map(|(name, _)| name.as_str()).collect()
    };
    let started = record.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    let facts = json!({
        "event": "statement",
        "started_us": started,
        "user": record.user,
        "session": record.session.to_string(),
        "query": record.id.to_string(),
        "query_tag": shown_tag(&record.facts.tag),
        "statement": record.sql,
        "tables": names(false),
        "tables_in_part": names(true),
        "decision": record.decision,
        "outcome": record.outcome.name(),
        "error": record.error,
        "rows": record.rows,
        "rows_in": record.facts.rows_in,
        "rows_affected": record.facts.rows_affected,
        "duration_us": record.duration.as_micros() as u64,
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

struct Row {
    id: QueryId,
    session: SessionId,
    user: String,
    sql: String,
    outcome: &'static str,
    started: SystemTime,
    duration: Duration,
    rows: u64,
    rows_in: u64,
    bytes: u64,
    error: Option<String>,
    waits_for: Option<&'static str>,
    fraction: Option<f64>,
    memory: Option<u64>,
    tag: Arc<str>,
}

impl Row {
    fn ended(record: &QueryRecord) -> Self {
        Self {
            id: record.id,
            session: record.session,
            user: record.user.clone(),
            sql: record.sql.clone(),
            outcome: record.outcome.name(),
            started: record.started,
            duration: record.duration,
            rows: record.rows,
            rows_in: record.facts.rows_in,
            bytes: record.bytes,
            error: record.error.clone(),
            waits_for: None,
            fraction: None,
            memory: None,
            tag: Arc::clone(&record.facts.tag),
        }
    }

    /// The row has the state as its outcome.
    fn live(statement: &RunningStatement) -> Self {
        let (state, result) = (statement.state(), statement.result());
        let (rows, bytes) = result.as_ref().map(|result| result.totals()).unwrap_or_default();
        Self {
            id: statement.id,
            session: statement.requester.session,
            user: statement.principal.name.clone(),
            sql: statement.sql.to_string(),
            outcome: state.name(),
            started: statement.started,
            duration: statement.elapsed(),
            rows,
            rows_in: statement.rows_in(),
            bytes,
            error: None,
            waits_for: state.waits_for(),
            fraction: result.map(|result| result.fraction()),
            memory: Some(statement.job.bytes()),
            tag: statement.tag(),
        }
    }
}

pub(crate) fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn keep(records: &Mutex<VecDeque<Arc<QueryRecord>>>, record: &Arc<QueryRecord>) {
    let mut records = records.lock();
    if records.len() >= CAPACITY {
        records.pop_front();
    }
    records.push_back(Arc::clone(record));
}

fn shorten(sql: &mut String) {
    if sql.len() > SQL_BYTES {
        let end = (0..=SQL_BYTES).rev().find(|end| sql.is_char_boundary(*end)).unwrap_or(0);
        sql.truncate(end);
        sql.push('…');
    }
}

impl SystemTables for QueryLog {
    fn names(&self) -> Vec<&'static str> {
        vec!["queries"]
    }

    fn admin_names(&self) -> Vec<&'static str> {
        vec!["access_log"]
    }

    fn shared_names(&self) -> Vec<&'static str> {
        vec![suggested::NAME]
    }

    fn rows(&self, name: &str, principal: &Principal) -> Option<Result<RecordBatch>> {
        match name {
            suggested::NAME => Some(self.suggested_rows()),
            "queries" => Some(QueryLog::rows(self, principal)),
            "access_log" => {
                let decisions = self.decisions.lock();
                let decisions: Vec<Arc<QueryRecord>> = decisions.iter().cloned().collect();
                Some(access_log::rows(&decisions))
            }
            _ => None,
        }
    }
}
