//! Runs statements that change tables, commits them, and logs how they end.

use crate::ingest_stream;
use crate::query::{self, AuthorizedStatement, empty_execution, one_value};
use crate::query_log::{Outcome, QueryRecord, decision};
use crate::result::out_of_time;
use crate::running_statements::{RunningStatement, State};
use crate::session::ClientSession;
use crate::task;
use crate::transaction_scope::Scope;
use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Ingest, LastWrite, Layout, QueryId, Reason, Result};
use bowshot_engine::{Action, Execution, Returned, Written};
use bowshot_query_task::QueryTask;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;

/// Retries of a statement after conflicts.
const MAX_CONFLICTS: usize = 100;
/// How long a statement holds its slot while it waits for its client.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct WriteContext {
    pub(crate) live: Arc<RunningStatement>,
    pub(crate) id: QueryId,
    pub(crate) started: Instant,
    pub(crate) deadline: Option<Instant>,
    /// The layout of returned rows; `None` if only their number is asked for.
    pub(crate) layout: Option<Layout>,
}

/// Runs a statement that changes tables, and commits. Without an explicit transaction, it runs again after a
/// conflict.
pub(crate) async fn write(
    session: &ClientSession,
    authorized: &AuthorizedStatement,
    mut scope: Scope,
    context: WriteContext,
) -> Result<Execution> {
    let is_final = matches!(authorized.plan.action(), Action::Write(change) if change.is_final());
    if is_final && !scope.is_alone() {
        return Err(not_in_transaction());
    }
    let (deadline, layout) = (Deadline::new(&context, session), context.layout);
    let logged = LogOnDrop::new(session, &authorized.sql, context);
    let result = match write_with_retry(session, authorized.clone(), &mut scope, &deadline).await {
        Ok(mut done) => {
            logged.context.live.set_rows_affected(done.rows_in_all);
            session.note_changed(done.rows.map_or(0, |rows| i64::try_from(rows).unwrap_or(i64::MAX)));
            session.note_write(std::mem::take(&mut done.last));
            done.result(layout)
        }
        Err(error) => Err(error),
    };
    match result {
        Ok(execution) => {
            logged.disarm();
            Ok(execution)
        }
        Err(error) => Err(logged.fail(error)),
    }
}

struct WriteOutcome {
    rows: Option<u64>,
    /// Affected rows of all parts of the statement.
    rows_in_all: Option<u64>,
    returned: Option<Returned>,
    last: LastWrite,
}

impl WriteOutcome {
    /// The returned rows, or the number of affected rows.
    fn result(self, layout: Option<Layout>) -> Result<Execution> {
        match (self.returned, layout) {
            (Some(returned), Some(layout)) => returned.execution(layout),
            _ => count_result(self.rows),
        }
    }
}

async fn write_with_retry(
    session: &ClientSession,
    mut authorized: AuthorizedStatement,
    scope: &mut Scope,
    deadline: &Deadline,
) -> Result<WriteOutcome> {
    for _ in 0..MAX_CONFLICTS {
        let engine = session.engine().clone();
        let this = authorized.clone();
        let work = async move { engine.write(&this.sql, &this.plan, &this.parameters).await };
        let written = deadline.hold(Box::pin(run_in_job(session, work))).await?;
        let Written { pinned: changed, rows, rows_in_all, returned, last } = written;
        let done = WriteOutcome { rows, rows_in_all, returned, last };
        if matches!(authorized.plan.action(), Action::Write(change) if !change.is_of_tables()) {
            return Ok(done);
        }
        // Without the deadline: a commit may take effect once it has begun.
        match scope.keep(session.engine(), authorized.plan.pinned(), changed).await {
            Ok(()) => return Ok(done),
            // Rows of the client cannot be read twice.
            Err(error)
                if error.kind() == ErrorKind::Conflict
                    && scope.is_alone()
                    && authorized.plan.pinned().input().is_none() => {}
            Err(error) => return Err(error),
        }
        let pinned = scope.pin(session.engine(), session.isolation());
        let plan = deadline.hold(Box::pin(query::plan(session, &authorized.sql, &pinned))).await?;
        authorized = AuthorizedStatement { plan, ..authorized };
    }
    Err(Error::new(
        ErrorKind::Conflict,
        format!("the commit conflicted with other writers {MAX_CONFLICTS} times"),
    )
    .with_hint("run the statement again"))
}

/// Writes rows of a client into a table. A conflict is returned: the rows cannot be read twice.
pub(crate) async fn ingest(
    session: &ClientSession,
    ingest: &Ingest,
    rows: BatchStream,
    live: &Arc<RunningStatement>,
) -> Result<u64> {
    check(ingest)?;
    query::check_accepting(session)?;
    query::admit(session, live).await?;
    live.set_state(State::Running);
    live.set_tables(Arc::from([(target_name(ingest), false)]));
    let rows = ingest_stream::paced(rows, live);
    let context = WriteContext::new(live, None);
    let deadline = Deadline::new(&context, session);
    let logged = LogOnDrop::new(session, &log_text(ingest), context);
    match ingested(session, ingest, rows, &deadline).await {
        Ok(rows) => {
            live.set_rows_affected(Some(rows));
            logged.finish();
            Ok(rows)
        }
        Err(error) => Err(logged.fail(error)),
    }
}

/// Checks that rows may be written into a table, before they arrive.
///
/// # Errors
/// As [`ingest`].
pub(crate) async fn check_ingest(session: &ClientSession, ingest: &Ingest) -> Result<()> {
    check(ingest)?;
    query::check_accepting(session)?;
    let transaction = ingest.transaction.or_else(|| session.transactions().only());
    let pinned = session.pin(transaction).await?;
    session.engine().check_ingest(ingest, &pinned).await
}

fn check(ingest: &Ingest) -> Result<()> {
    if ingest.temporary && (ingest.schema_name.is_some() || ingest.catalog.is_some()) {
        return Err(Error::invalid("a temporary table cannot be created in a given schema or catalog")
            .with_hint("leave `schema` and `catalog` unset"));
    }
    match ingest.options.keys().next() {
        Some(name) => Err(Error::invalid(format!("unknown ingest option `{name}`"))
            .with_hint("leave `options` out: none are supported")),
        None => Ok(()),
    }
}

async fn ingested(
    session: &ClientSession,
    ingest: &Ingest,
    rows: BatchStream,
    deadline: &Deadline,
) -> Result<u64> {
    let transaction = ingest.transaction.or_else(|| session.transactions().only());
    let mut scope = session.transactions().scope(transaction).await?;
    scope.check()?;
    let pinned = scope.pin(session.engine(), session.isolation());
    let is_final = session.engine().is_ingest_final(ingest, &pinned);
    if is_final && !scope.is_alone() {
        return Err(not_in_transaction());
    }
    let (engine, wanted, base) = (session.engine().clone(), ingest.clone(), pinned.clone());
    let work = async move { engine.ingest(&wanted, rows, &base).await };
    let written = deadline.hold(Box::pin(run_in_job(session, work))).await?;
    if !is_final {
        scope.keep(session.engine(), &pinned, written.pinned).await?;
    }
    Ok(written.rows.unwrap_or(0))
}

fn not_in_transaction() -> Error {
    Error::invalid("the statement cannot run in a transaction: it cannot be rolled back")
        .with_reason(Reason::ActiveTransaction)
        .with_hint("commit first, and run it with autocommit")
}

/// The table of an ingest, as far as its client names it.
fn target_name(ingest: &Ingest) -> String {
    let parts = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

pub(crate) fn log_text(ingest: &Ingest) -> Arc<str> {
    let kind = if ingest.temporary { "temporary " } else { "" };
    Arc::from(format!("bulk ingest into {kind}{}", target_name(ingest)))
}

pub(crate) fn count_result(rows: Option<u64>) -> Result<Execution> {
    let Some(rows) = rows else { return Ok(empty_execution()) };
    let count = Int64Array::from(vec![i64::try_from(rows).unwrap_or(i64::MAX)]);
    one_value(Field::new("count", DataType::Int64, false), Arc::new(count))
}

/// The number of affected rows in column `count`, which is unsigned in DataFusion's plans.
pub(crate) fn affected_rows(batch: &RecordBatch) -> u64 {
    let Some(column) = batch.columns().first() else { return 0 };
    let ours = column.as_primitive_opt::<Int64Type>().and_then(arrow::compute::sum);
    let engines = column.as_primitive_opt::<UInt64Type>().and_then(arrow::compute::sum);
    ours.and_then(|count| u64::try_from(count).ok()).or(engines).unwrap_or(0)
}

/// Runs work in the statement's job; dropping it stops the work.
async fn run_in_job<T: Send + 'static>(
    session: &ClientSession,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let runtime = session.server().engine.runtime();
    match QueryTask::current() {
        Some(job) => task::run(runtime, job.inside(work)).await,
        None => task::run(runtime, work).await,
    }
}

struct Deadline {
    timeout: Duration,
    at: Option<Instant>,
    timers: Handle,
}

impl Deadline {
    fn new(context: &WriteContext, session: &ClientSession) -> Self {
        let at = context.deadline;
        let timeout = at.map_or(Duration::ZERO, |at| at.saturating_duration_since(context.started));
        Self { timeout, at, timers: session.server().context.timers.clone() }
    }

    /// Runs work until the deadline.
    async fn hold<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        let Some(at) = self.at else { return work.await };
        tokio::select! {
            biased;
            done = work => done,
            () = self.over(at) => Err(out_of_time(self.timeout)),
        }
    }

    /// A timer of the runtime of `timers`.
    fn over(&self, at: Instant) -> tokio::time::Sleep {
        let _timers = self.timers.enter();
        tokio::time::sleep_until(at.into())
    }
}

/// Logs a write however it ends. Dropped by a leaving caller, it logs a cancel.
struct LogOnDrop<'a> {
    session: &'a ClientSession,
    sql: Arc<str>,
    context: WriteContext,
    started_at: SystemTime,
    open: bool,
}

impl WriteContext {
    pub(crate) fn new(live: &Arc<RunningStatement>, layout: Option<Layout>) -> Self {
        let (id, started, deadline) = (live.id, live.arrived, live.job.deadline());
        Self { live: Arc::clone(live), id, started, deadline, layout }
    }
}

impl<'a> LogOnDrop<'a> {
    fn new(session: &'a ClientSession, sql: &Arc<str>, context: WriteContext) -> Self {
        Self { session, sql: Arc::clone(sql), context, started_at: SystemTime::now(), open: true }
    }

    /// The result will log the statement.
    fn disarm(mut self) {
        self.open = false;
    }

    fn finish(mut self) {
        self.record(Outcome::Finished, None);
    }

    fn fail(mut self, error: Error) -> Error {
        self.record(Outcome::from_error(&error), Some(&error));
        error
    }

    fn record(&mut self, outcome: Outcome, error: Option<&Error>) {
        self.open = false;
        if self.context.live.mark_logged() {
            return;
        }
        self.session.server().context.log.add(QueryRecord {
            id: self.context.id,
            session: self.session.key(),
            user: self.session.owner().name.clone(),
            sql: self.session.without_secrets(&self.sql).into_owned(),
            outcome,
            started: self.started_at,
            duration: self.context.started.elapsed(),
            rows: 0,
            bytes: 0,
            error: error.map(Error::to_string),
            decision: decision(error),
            facts: self.context.live.facts(),
        });
    }
}

impl Drop for LogOnDrop<'_> {
    fn drop(&mut self) {
        if self.open {
            self.record(Outcome::Cancelled, Some(&Error::new(ErrorKind::Cancelled, "the caller left")));
        }
    }
}
