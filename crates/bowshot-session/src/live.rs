//! What runs, waits or is being planned right now, each with its job: shown in `system.queries`, and to be cancelled before
//! it has a result.

use crate::admission::{Slot, Who};
use crate::result::QueryResult;
use bowshot_api::{Error, Principal, QueryId, SessionId, shows_statements, statement_span};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::snapshot::input::StreamedTable;
use bowshot_query_task::{QueryTask, Stop};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};
use tracing::Span;

/// Longest text that is shown of a statement that has not ended, in bytes.
const SQL_BYTES: usize = 4 << 10;

/// How far a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// It waits for a slot.
    Queued,
    /// It waits for a statement of the same transaction.
    Blocked,
    Planning,
    Running,
    /// Its buffers are full, and nobody reads them.
    WaitsForReader,
    /// It waits for rows that its client sends.
    WaitsForRows,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Queued,
        Self::Blocked,
        Self::Planning,
        Self::Running,
        Self::WaitsForReader,
        Self::WaitsForRows,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Planning => "planning",
            Self::Running => "running",
            Self::Blocked | Self::WaitsForReader | Self::WaitsForRows => "waiting",
        }
    }

    /// What it waits for.
    pub(crate) fn waits_for(self) -> Option<&'static str> {
        match self {
            Self::Queued => Some("a slot"),
            Self::Blocked => Some("another statement of its transaction"),
            Self::WaitsForReader => Some("its client to read rows"),
            Self::WaitsForRows => Some("its client to send rows"),
            Self::Planning | Self::Running => None,
        }
    }
}

/// A statement that has not ended.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) id: QueryId,
    pub(crate) who: Who,
    pub(crate) principal: Principal,
    pub(crate) sql: Box<str>,
    pub(crate) arrived: Instant,
    pub(crate) started: SystemTime,
    pub(crate) job: Arc<QueryTask>,
    state: AtomicU8,
    logged: AtomicBool,
    touched: Mutex<Vec<(String, bool)>>,
    result: Mutex<Weak<QueryResult>>,
    slot: Mutex<Weak<Slot>>,
    input: OnceLock<Arc<StreamedTable>>,
    rows_in: AtomicU64,
    rows_affected: Mutex<Option<u64>>,
    registry: Weak<Live>,
    /// Of the whole road, for traces.
    pub(crate) span: Span,
}

impl Statement {
    pub(crate) fn is(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        let code = usize::from(self.state.load(Ordering::Relaxed));
        State::ALL.get(code).copied().unwrap_or(State::Running)
    }

    /// Whether somebody else has written into the log how it ended; from now on, the caller has.
    pub(crate) fn is_logged(&self) -> bool {
        self.logged.swap(true, Ordering::AcqRel)
    }

    /// Notes in its span how it ended.
    pub(crate) fn has_ended(&self, outcome: &'static str, (rows, bytes): (u64, u64), error: Option<&Error>) {
        if self.span.is_disabled() {
            return;
        }
        self.span.record("bowshot.outcome", outcome);
        // Signed: collectors have no other whole numbers.
        self.span.record("db.response.returned_rows", i64::try_from(rows).unwrap_or(i64::MAX));
        self.span.record("bowshot.bytes", i64::try_from(bytes).unwrap_or(i64::MAX));
        if let Some(error) = error {
            // Its message may have values of rows.
            self.span.record("error.type", tracing::field::debug(error.kind()));
            self.span.record("otel.status_code", "ERROR");
        }
    }

    /// Notes what it reads and changes.
    pub(crate) fn touches(&self, tables: Vec<(String, bool)>) {
        *lock(&self.touched) = tables;
    }

    /// The tables that it reads and changes, once that is known.
    pub(crate) fn tables(&self) -> Vec<(String, bool)> {
        lock(&self.touched).clone()
    }

    /// The next statement of a script begins: it has a line of its own in the log.
    pub(crate) fn begins_again(&self) {
        self.logged.store(false, Ordering::Release);
        lock(&self.touched).clear();
        *lock(&self.rows_affected) = None;
    }

    /// It has a result, which has the numbers.
    pub(crate) fn has_result(&self, result: &Arc<QueryResult>) {
        *lock(&self.result) = Arc::downgrade(result);
    }

    pub(crate) fn result(&self) -> Option<Arc<QueryResult>> {
        lock(&self.result).upgrade()
    }

    /// It has a place among those that run, which is free for others while it waits for its client.
    pub(crate) fn has_slot(&self, slot: &Arc<Slot>) {
        *lock(&self.slot) = Arc::downgrade(slot);
    }

    /// It waits for rows of its client.
    pub(crate) fn waits_for_rows(&self) {
        self.is(State::WaitsForRows);
        if let Some(slot) = lock(&self.slot).upgrade() {
            slot.pause();
        }
    }

    /// Rows have come, or their end.
    pub(crate) fn has_waited(&self) {
        self.is(State::Running);
        if let Some(slot) = lock(&self.slot).upgrade() {
            slot.resume();
        }
    }

    /// It reads rows of its client as a table.
    pub(crate) fn reads(&self, input: Arc<StreamedTable>) {
        let _ = self.input.set(input);
    }

    pub(crate) fn input(&self) -> Option<&Arc<StreamedTable>> {
        self.input.get()
    }

    /// What it sees of the tables, the rows of its client among them.
    pub(crate) fn sees(&self, pinned: Pinned) -> Pinned {
        pinned.with_input(self.input.get().cloned())
    }

    pub(crate) fn takes_rows(&self, count: usize) {
        self.rows_in.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Rows that its client has sent, as far as it has read them.
    pub(crate) fn rows_in(&self) -> u64 {
        self.rows_in.load(Ordering::Relaxed)
    }

    /// Notes how many rows it has changed, or written into a file.
    pub(crate) fn affects(&self, rows: Option<u64>) {
        *lock(&self.rows_affected) = rows;
    }

    /// Rows that it has changed, or written into a file; `None` where it does neither, or has failed before.
    pub(crate) fn rows_affected(&self) -> Option<u64> {
        *lock(&self.rows_affected)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.arrived.elapsed()
    }

    /// Ends it, wherever it is.
    pub(crate) fn cancel(&self) {
        match self.result() {
            Some(result) => result.cancel(),
            None => self.job.stop(Stop::Cancelled),
        }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        self.job.stop(Stop::Over);
        if let Some(registry) = self.registry.upgrade() {
            lock(&registry.statements).remove(&self.id);
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Live {
    statements: Mutex<HashMap<QueryId, Weak<Statement>>>,
}

impl Live {
    /// Somebody has sent a statement, whose text is told without its secrets. It is there until the last one drops it who works on it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        (session, principal): (SessionId, &Principal),
        sql: &str,
        (arrived, job): (Instant, Arc<QueryTask>),
    ) -> Arc<Statement> {
        let end = (0..=SQL_BYTES.min(sql.len())).rev().find(|end| sql.is_char_boundary(*end)).unwrap_or(0);
        let id = QueryId::random();
        job.is_for(id);
        let sql: Box<str> = Box::from(sql.get(..end).unwrap_or_default());
        let span = statement_span(&principal.name, &session, &id);
        if !span.is_disabled() && shows_statements() {
            span.record("db.query.text", sql.as_ref());
        }
        let statement = Arc::new(Statement {
            id,
            who: Who { user: Arc::from(principal.name.as_str()), session },
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
            registry: Arc::downgrade(self),
            span,
        });
        lock(&self.statements).insert(statement.id, Arc::downgrade(&statement));
        statement
    }

    /// Those of one user, in the order in which they came.
    pub(crate) fn of(&self, principal: &Principal) -> Vec<Arc<Statement>> {
        let all: Vec<_> = lock(&self.statements).values().filter_map(Weak::upgrade).collect();
        let mut own: Vec<_> = all.into_iter().filter(|statement| statement.principal == *principal).collect();
        own.sort_by_key(|statement| statement.arrived);
        own
    }

    pub(crate) fn find(&self, principal: &Principal, id: QueryId) -> Option<Arc<Statement>> {
        let found = lock(&self.statements).get(&id).and_then(Weak::upgrade);
        found.filter(|statement| statement.principal == *principal)
    }

    /// Those of a session.
    pub(crate) fn of_session(&self, session: SessionId) -> Vec<Arc<Statement>> {
        let all: Vec<_> = lock(&self.statements).values().filter_map(Weak::upgrade).collect();
        all.into_iter().filter(|statement| statement.who.session == session).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
