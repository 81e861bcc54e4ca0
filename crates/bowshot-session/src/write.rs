//! Statements that change tables: run, committed, and in the log however they end.

use crate::arriving;
use crate::live::{self, State};
use crate::query::{self, Authorised, nothing};
use crate::query_log::{Outcome, QueryRecord, decision};
use crate::result::out_of_time;
use crate::session::ClientSession;
use crate::task;
use crate::transactions::Scope;
use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use bowshot_api::{BatchStream, Error, ErrorKind, Ingest, LastWrite, Layout, QueryId, Reason, Result};
use bowshot_engine::{Action, Execution, ProgressMeter, Returned, Written};
use bowshot_query_task::QueryTask;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;

/// How often a statement that changes tables runs again because another writer was first.
const MAX_CONFLICTS: usize = 100;
/// How long a statement keeps its slot while it waits for its client.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// A statement that is about to run.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) live: Arc<live::Statement>,
    pub(crate) id: QueryId,
    pub(crate) started: Instant,
    /// When it must have run.
    pub(crate) deadline: Option<Instant>,
    /// How rows that the statement returns are laid out; `None` if only their number is asked for.
    pub(crate) layout: Option<Layout>,
}

/// Runs a statement that changes tables, and makes it count. Where it is a transaction by itself and another writer was
/// first, it runs again on what that one has left.
pub(crate) async fn write(
    session: &ClientSession,
    authorised: &Authorised,
    mut scope: Scope,
    begun: Begun,
) -> Result<Execution> {
    let is_final = matches!(authorised.plan.action(), Action::Write(change) if change.is_final());
    if is_final && !scope.is_alone() {
        return Err(Error::invalid("the statement cannot be undone, and does not run in a transaction")
            .with_reason(Reason::ActiveTransaction)
            .with_hint("commit first, and run it with autocommit"));
    }
    let (deadline, layout) = (Deadline::new(&begun, session), begun.layout);
    let logged = Logged::new(session, &authorised.sql, begun);
    let result = match attempts(session, authorised.clone(), &mut scope, &deadline).await {
        Ok(mut done) => {
            logged.begun.live.affects(done.rows_in_all);
            session.note_changed(done.rows.map_or(0, |rows| i64::try_from(rows).unwrap_or(i64::MAX)));
            session.note_write(std::mem::take(&mut done.last));
            done.result(layout)
        }
        Err(error) => Err(error),
    };
    match result {
        Ok(execution) => {
            logged.goes_on();
            Ok(execution)
        }
        Err(error) => Err(logged.failed(error)),
    }
}

/// What a statement has changed, and has made count.
struct Done {
    rows: Option<u64>,
    /// Those of all parts of the statement.
    rows_in_all: Option<u64>,
    returned: Option<Returned>,
    last: LastWrite,
}

impl Done {
    /// The rows that the statement returns, or how many it has changed.
    fn result(self, layout: Option<Layout>) -> Result<Execution> {
        match (self.returned, layout) {
            (Some(returned), Some(layout)) => Ok(returned.execution(layout)),
            _ => counted(self.rows),
        }
    }
}

async fn attempts(
    session: &ClientSession,
    mut authorised: Authorised,
    scope: &mut Scope,
    deadline: &Deadline,
) -> Result<Done> {
    for _ in 0..MAX_CONFLICTS {
        let engine = session.engine().clone();
        let this = authorised.clone();
        let work = async move { engine.write(&this.sql, &this.plan, &this.parameters).await };
        let written = deadline.hold(Box::pin(as_part(session, work))).await?;
        let Written { pinned: changed, rows, rows_in_all, returned, last } = written;
        let done = Done { rows, rows_in_all, returned, last };
        if matches!(authorised.plan.action(), Action::Write(change) if !change.is_of_tables()) {
            return Ok(done);
        }
        // Not under the deadline: a commit that has begun may take effect.
        match scope.keep(session.engine(), authorised.plan.pinned(), changed).await {
            Ok(()) => return Ok(done),
            // Rows of the client do not come again.
            Err(error)
                if error.kind() == ErrorKind::Conflict
                    && scope.is_alone()
                    && authorised.plan.pinned().input().is_none() => {}
            Err(error) => return Err(error),
        }
        let pinned = scope.pin(session.engine(), session.isolation());
        let plan = deadline.hold(Box::pin(query::plan(session, &authorised.sql, &pinned))).await?;
        authorised = Authorised { plan, ..authorised };
    }
    Err(Error::new(ErrorKind::Conflict, format!("other writers were first {MAX_CONFLICTS} times"))
        .with_hint("run the statement again"))
}

/// Writes rows that a client sends into a table. They come once: a conflict is the client's to answer.
pub(crate) async fn ingest(
    session: &ClientSession,
    ingest: &Ingest,
    rows: BatchStream,
    live: &Arc<live::Statement>,
) -> Result<u64> {
    check(ingest)?;
    query::accept(session)?;
    query::admit(session, live).await?;
    live.is(State::Running);
    live.touches(vec![(named(ingest), false)]);
    let rows = arriving::paced(rows, live);
    let begun = Begun::of(live, None);
    let deadline = Deadline::new(&begun, session);
    let logged = Logged::new(session, &described(ingest), begun);
    match ingested(session, ingest, rows, &deadline).await {
        Ok(rows) => {
            live.affects(Some(rows));
            logged.finished();
            Ok(rows)
        }
        Err(error) => Err(logged.failed(error)),
    }
}

/// Whether rows may be written into a table, before they have come.
///
/// # Errors
/// As [`ingest`].
pub(crate) async fn check_ingest(session: &ClientSession, ingest: &Ingest) -> Result<()> {
    check(ingest)?;
    query::accept(session)?;
    let transaction = ingest.transaction.or_else(|| session.transactions().only());
    let pinned = session.pin(transaction).await?;
    session.engine().check_ingest(ingest, &pinned).await
}

/// Refuses what no table could be found for.
fn check(ingest: &Ingest) -> Result<()> {
    if ingest.temporary && (ingest.schema_name.is_some() || ingest.catalog.is_some()) {
        return Err(Error::invalid("a temporary table has no schema and no catalog of the caller's choice")
            .with_hint("leave `schema` and `catalog` unset"));
    }
    match ingest.options.keys().next() {
        Some(name) => Err(Error::invalid(format!("unknown ingest option `{name}`"))
            .with_hint("leave out `options`: there are none")),
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
    let pinned = scope.pin(session.engine(), session.isolation());
    let (engine, wanted, base) = (session.engine().clone(), ingest.clone(), pinned.clone());
    let work = async move { engine.ingest(&wanted, rows, &base).await };
    let written = deadline.hold(Box::pin(as_part(session, work))).await?;
    scope.keep(session.engine(), &pinned, written.pinned).await?;
    Ok(written.rows.unwrap_or(0))
}

/// The table of an upload, as far as its client names it.
fn named(ingest: &Ingest) -> String {
    let parts = [ingest.catalog.as_deref(), ingest.schema_name.as_deref(), Some(ingest.table.as_str())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// What the log has in the place of a text.
pub(crate) fn described(ingest: &Ingest) -> Arc<str> {
    let mut text = "bulk ingest into ".to_owned();
    if ingest.temporary {
        text.push_str("temporary ");
    }
    for part in [&ingest.catalog, &ingest.schema_name].into_iter().flatten() {
        text.push_str(part);
        text.push('.');
    }
    text.push_str(&ingest.table);
    Arc::from(text)
}

/// The result of a statement that has changed rows, or gone past them: how many.
pub(crate) fn counted(rows: Option<u64>) -> Result<Execution> {
    let Some(rows) = rows else { return Ok(nothing()) };
    let count: ArrayRef = Arc::new(Int64Array::from(vec![i64::try_from(rows).unwrap_or(i64::MAX)]));
    let batch = RecordBatch::try_from_iter([("count", count)])
        .map_err(|error| Error::internal("a count is no batch").with_source(error))?;
    let schema = batch.schema();
    let stream = BatchStream::from_batches(Arc::clone(&schema), vec![batch]);
    Ok(Execution {
        schema,
        streams: vec![stream],
        ordered: true,
        rows: Some(1),
        progress: ProgressMeter::default(),
        opening: None,
    })
}

/// Affected rows that a statement with an effect reports: one column, `count`. DataFusion's own is unsigned.
pub(crate) fn affected_rows(batch: &RecordBatch) -> u64 {
    let Some(column) = batch.columns().first() else { return 0 };
    let ours = column.as_primitive_opt::<Int64Type>().and_then(arrow::compute::sum);
    let engines = column.as_primitive_opt::<UInt64Type>().and_then(arrow::compute::sum);
    ours.and_then(|count| u64::try_from(count).ok()).or(engines).unwrap_or(0)
}

/// A task of the same job, which ends when it is dropped.
async fn as_part<T: Send + 'static>(
    session: &ClientSession,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let runtime = session.server().engine.runtime();
    match QueryTask::current() {
        Some(job) => task::run(runtime, job.inside(work)).await,
        None => task::run(runtime, work).await,
    }
}

/// When a statement has run for too long.
struct Deadline {
    timeout: Duration,
    at: Option<Instant>,
    timers: Handle,
}

impl Deadline {
    fn new(begun: &Begun, session: &ClientSession) -> Self {
        let at = begun.deadline;
        let timeout = at.map_or(Duration::ZERO, |at| at.saturating_duration_since(begun.started));
        Self { timeout, at, timers: session.server().house.timers.clone() }
    }

    /// Does a part of the work, which ends when it is dropped.
    async fn hold<T>(&self, work: impl Future<Output = Result<T>> + Unpin) -> Result<T> {
        let Some(at) = self.at else { return work.await };
        tokio::select! {
            biased;
            done = work => done,
            () = self.over(at) => Err(out_of_time(self.timeout)),
        }
    }

    /// A timer of the runtime that is current where it is made.
    fn over(&self, at: Instant) -> tokio::time::Sleep {
        let _timers = self.timers.enter();
        tokio::time::sleep_until(at.into())
    }
}

/// A statement that changes tables on its way into the log. One whose caller leaves is dropped, and was cancelled.
struct Logged<'a> {
    session: &'a ClientSession,
    sql: Arc<str>,
    begun: Begun,
    started_at: SystemTime,
    open: bool,
}

impl Begun {
    pub(crate) fn of(live: &Arc<live::Statement>, layout: Option<Layout>) -> Self {
        let (id, started, deadline) = (live.id, live.arrived, live.job.deadline());
        Self { live: Arc::clone(live), id, started, deadline, layout }
    }
}

impl<'a> Logged<'a> {
    fn new(session: &'a ClientSession, sql: &Arc<str>, begun: Begun) -> Self {
        Self { session, sql: Arc::clone(sql), begun, started_at: SystemTime::now(), open: true }
    }

    /// It has a result, which will tell the log.
    fn goes_on(mut self) {
        self.open = false;
    }

    fn finished(mut self) {
        self.record(Outcome::Finished, None);
    }

    /// Gives the error back.
    fn failed(mut self, error: Error) -> Error {
        let outcome = if error.kind() == ErrorKind::Cancelled { Outcome::Cancelled } else { Outcome::Failed };
        self.record(outcome, Some(&error));
        error
    }

    fn record(&mut self, outcome: Outcome, error: Option<&Error>) {
        self.open = false;
        if self.begun.live.is_logged() {
            return;
        }
        self.session.server().house.log.add(QueryRecord {
            id: self.begun.id,
            session: self.session.key(),
            user: self.session.owner().name.clone(),
            sql: self.session.without_secrets(&self.sql).into_owned(),
            outcome,
            started: self.started_at,
            duration: self.begun.started.elapsed(),
            rows: 0,
            rows_in: self.begun.live.rows_in(),
            rows_affected: self.begun.live.rows_affected(),
            bytes: 0,
            error: error.map(Error::to_string),
            decision: decision(error),
            tables: self.begun.live.tables(),
        });
    }
}

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        if self.open {
            self.record(Outcome::Cancelled, Some(&Error::new(ErrorKind::Cancelled, "the caller left")));
        }
    }
}
