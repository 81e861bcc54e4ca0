//! Statements that are queued, planned or running: shown in `system.queries`, and cancelled here before they have a
//! result.

use crate::admission::{Requester, Slot};
use crate::result::QueryResult;
use bowshot_api::{Error, Principal, QueryId, SessionId, shows_statements, statement_span};
use bowshot_engine::DialectName;
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::snapshot::input::StreamedTable;
use bowshot_query_task::{QueryTask, Stop};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};
use tracing::Span;

/// Longest SQL text of a running statement in `system.queries`, in bytes.
const SQL_BYTES: usize = 4 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Queued,
    /// It waits for a statement of the same transaction.
    Blocked,
    Planning,
    Running,
    /// Its buffers are full and unread.
    WaitsForReader,
    WaitsForRows,
    /// It waits for a row that another transaction has locked.
    WaitsForLock,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Queued,
        Self::Blocked,
        Self::Planning,
        Self::Running,
        Self::WaitsForReader,
        Self::WaitsForRows,
        Self::WaitsForLock,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Planning => "planning",
            Self::Running => "running",
            Self::Blocked | Self::WaitsForReader | Self::WaitsForRows | Self::WaitsForLock => "waiting",
        }
    }

    pub(crate) fn waits_for(self) -> Option<&'static str> {
        match self {
            Self::Queued => Some("a slot"),
            Self::Blocked => Some("another statement of its transaction"),
            Self::WaitsForReader => Some("its client to read rows"),
            Self::WaitsForRows => Some("its client to send rows"),
            Self::WaitsForLock => Some("a row that another transaction has locked"),
            Self::Planning | Self::Running => None,
        }
    }
}

/// What the record of a statement has, whether it has a result or not.
#[derive(Debug, Default)]
pub(crate) struct StatementFacts {
    /// The session's `query_tag` when it began; empty without one.
    pub(crate) tag: Arc<str>,
    /// Tables read and changed, and whether with row or column policies.
    pub(crate) tables: Arc<[(String, bool)]>,
    pub(crate) rows_in: u64,
    /// Changed or exported rows; `None` for other statements and after a failure.
    pub(crate) rows_affected: Option<u64>,
    /// How long it has waited for slots.
    pub(crate) queued: Duration,
    /// What its names and words mean, of a query.
    pub(crate) language: Option<Arc<Language>>,
}

/// Where a query looks for names that do not say theirs, and what it is written in.
#[derive(Debug)]
pub(crate) struct Language {
    pub(crate) catalog: String,
    pub(crate) schema: String,
    pub(crate) dialect: DialectName,
}

/// A statement that has not ended.
#[derive(Debug)]
pub(crate) struct RunningStatement {
    pub(crate) id: QueryId,
    pub(crate) requester: Requester,
    pub(crate) principal: Principal,
    pub(crate) sql: Box<str>,
    pub(crate) arrived: Instant,
    pub(crate) started: SystemTime,
    pub(crate) job: Arc<QueryTask>,
    state: AtomicU8,
    logged: AtomicBool,
    touched: Mutex<Arc<[(String, bool)]>>,
    result: Mutex<Weak<QueryResult>>,
    slot: Mutex<Weak<Slot>>,
    input: OnceLock<Arc<StreamedTable>>,
    rows_in: AtomicU64,
    rows_affected: Mutex<Option<u64>>,
    tag: Mutex<Arc<str>>,
    language: Mutex<Option<Arc<Language>>>,
    queued_us: AtomicU64,
    registry: Weak<RunningStatements>,
    pub(crate) span: Span,
}

impl RunningStatement {
    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        let code = usize::from(self.state.load(Ordering::Relaxed));
        State::ALL.get(code).copied().unwrap_or(State::Running)
    }

    /// Marks the end as logged; returns whether it was logged already.
    pub(crate) fn mark_logged(&self) -> bool {
        self.logged.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn record_end(&self, outcome: &'static str, (rows, bytes): (u64, u64), error: Option<&Error>) {
        if self.span.is_disabled() {
            return;
        }
        self.span.record("bowshot.outcome", outcome);
        // Signed: OTLP has no unsigned integers.
        self.span.record("db.response.returned_rows", i64::try_from(rows).unwrap_or(i64::MAX));
        self.span.record("bowshot.bytes", i64::try_from(bytes).unwrap_or(i64::MAX));
        if let Some(error) = error {
            // The message may contain values of rows.
            self.span.record("error.type", tracing::field::debug(error.kind()));
            self.span.record("otel.status_code", "ERROR");
        }
    }

    /// Records the tables that it reads and changes.
    pub(crate) fn set_tables(&self, tables: Arc<[(String, bool)]>) {
        *self.touched.lock() = tables;
    }

    /// Records that it is a query, and in which language if that can be told.
    pub(crate) fn set_language(&self, language: Option<Language>) {
        *self.language.lock() = language.map(Arc::new);
    }

    /// Sets the tag of the session, which a script may change between its statements.
    pub(crate) fn set_tag(&self, tag: &Arc<str>) {
        let mut known = self.tag.lock();
        if *known != *tag {
            self.span.record("bowshot.query_tag", &**tag);
            *known = Arc::clone(tag);
        }
    }

    /// The tag of its session, or an empty text.
    pub(crate) fn tag(&self) -> Arc<str> {
        Arc::clone(&self.tag.lock())
    }

    pub(crate) fn add_queued(&self, wait: Duration) {
        self.queued_us.fetch_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// What its record has, so far.
    pub(crate) fn facts(&self) -> StatementFacts {
        StatementFacts {
            tag: self.tag(),
            tables: Arc::clone(&self.touched.lock()),
            rows_in: self.rows_in(),
            rows_affected: *self.rows_affected.lock(),
            queued: Duration::from_micros(self.queued_us.load(Ordering::Relaxed)),
            language: self.language.lock().clone(),
        }
    }

    pub(crate) fn reset_for_next_statement(&self) {
        self.logged.store(false, Ordering::Release);
        self.set_tables(Arc::default());
        *self.language.lock() = None;
        *self.rows_affected.lock() = None;
    }

    /// Sets the result, which has the statistics.
    pub(crate) fn set_result(&self, result: &Arc<QueryResult>) {
        *self.result.lock() = Arc::downgrade(result);
    }

    pub(crate) fn result(&self) -> Option<Arc<QueryResult>> {
        self.result.lock().upgrade()
    }

    /// Sets the slot, which is lent while the statement waits for its client.
    pub(crate) fn set_slot(&self, slot: &Arc<Slot>) {
        *self.slot.lock() = Arc::downgrade(slot);
    }

    /// Lends the slot while the statement waits for rows.
    pub(crate) fn pause_for_rows(&self) {
        self.set_state(State::WaitsForRows);
        if let Some(slot) = self.slot.lock().upgrade() {
            slot.pause();
        }
    }

    /// Takes the slot back.
    pub(crate) fn resume(&self) {
        self.set_state(State::Running);
        if let Some(slot) = self.slot.lock().upgrade() {
            slot.resume();
        }
    }

    /// Sets the client's rows that it reads as a table.
    pub(crate) fn set_input(&self, input: Arc<StreamedTable>) {
        let _ = self.input.set(input);
    }

    pub(crate) fn input(&self) -> Option<&Arc<StreamedTable>> {
        self.input.get()
    }

    /// Adds the client's rows to the snapshot.
    pub(crate) fn with_input(&self, pinned: Pinned) -> Pinned {
        pinned.with_input(self.input.get().cloned())
    }

    pub(crate) fn count_rows_in(&self, count: usize) {
        self.rows_in.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Rows of the client that it has read.
    pub(crate) fn rows_in(&self) -> u64 {
        self.rows_in.load(Ordering::Relaxed)
    }

    /// Records how many rows it has changed or exported.
    pub(crate) fn set_rows_affected(&self, rows: Option<u64>) {
        *self.rows_affected.lock() = rows;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.arrived.elapsed()
    }

    pub(crate) fn cancel(&self) {
        match self.result() {
            Some(result) => result.cancel(),
            None => self.job.stop(Stop::Cancelled),
        }
    }
}

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.job.stop(Stop::Over);
        if let Some(registry) = self.registry.upgrade() {
            registry.statements.lock().remove(&self.id);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RunningStatements {
    statements: Mutex<HashMap<QueryId, Weak<RunningStatement>>>,
}

impl RunningStatements {
    /// Registers a statement, with a text without secrets. It is removed when the returned handle is dropped.
    pub(crate) fn begin(
        self: &Arc<Self>,
        (session, principal): (SessionId, &Principal),
        sql: &str,
        (arrived, job): (Instant, Arc<QueryTask>),
    ) -> Arc<RunningStatement> {
        let end = (0..=SQL_BYTES.min(sql.len())).rev().find(|end| sql.is_char_boundary(*end)).unwrap_or(0);
        let id = QueryId::random();
        job.is_for(id);
        let sql: Box<str> = Box::from(sql.get(..end).unwrap_or_default());
        let span = statement_span(&principal.name, &session, &id);
        if !span.is_disabled() && shows_statements() {
            span.record("db.query.text", sql.as_ref());
        }
        let statement = Arc::new(RunningStatement {
            id,
            requester: Requester { user: Arc::from(principal.name.as_str()), session },
            principal: principal.clone(),
            sql,
            arrived,
            started: SystemTime::now(),
            job,
            state: AtomicU8::new(State::Running as u8),
            logged: AtomicBool::new(false),
            touched: Mutex::default(),
            result: Mutex::default(),
            slot: Mutex::default(),
            input: OnceLock::new(),
            rows_in: AtomicU64::new(0),
            rows_affected: Mutex::default(),
            tag: Mutex::default(),
            language: Mutex::default(),
            queued_us: AtomicU64::new(0),
            registry: Arc::downgrade(self),
            span,
        });
        self.statements.lock().insert(statement.id, Arc::downgrade(&statement));
        statement
    }

    /// The statements of one user in order of arrival.
    pub(crate) fn by_principal(&self, principal: &Principal) -> Vec<Arc<RunningStatement>> {
        let all: Vec<_> = self.statements.lock().values().filter_map(Weak::upgrade).collect();
        let mut own: Vec<_> = all.into_iter().filter(|statement| statement.principal == *principal).collect();
        own.sort_by_key(|statement| statement.arrived);
        own
    }

    pub(crate) fn find(&self, principal: &Principal, id: QueryId) -> Option<Arc<RunningStatement>> {
        let found = self.statements.lock().get(&id).and_then(Weak::upgrade);
        found.filter(|statement| statement.principal == *principal)
    }

    pub(crate) fn by_session(&self, session: SessionId) -> Vec<Arc<RunningStatement>> {
        let all: Vec<_> = self.statements.lock().values().filter_map(Weak::upgrade).collect();
        all.into_iter().filter(|statement| statement.requester.session == session).collect()
    }
}
