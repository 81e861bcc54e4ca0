//! Runs each call of a client as a task on the query runtime. It ends when the client leaves, on cancel and on
//! timeout; the answer does not wait for work that cannot be interrupted.

use crate::query_log::{Outcome, QueryRecord, decision};
use crate::result::out_of_time;
use crate::running_statements::RunningStatement;
use crate::session::ClientSession;
use crate::task::{self, AbortOnDrop};
use bowshot_api::{Error, ErrorKind, NoDecision, Result};
use bowshot_query_task::Stop;
use futures::FutureExt;
use futures::future::poll_immediate;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument;

/// Runs the work of a call, described by `sql`. Call it on the socket runtime, whose timers queries do not delay.
pub(crate) async fn run<T, F>(
    session: &Arc<ClientSession>,
    sql: &str,
    work: impl FnOnce(Arc<ClientSession>, Arc<RunningStatement>) -> F,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    run_from(session, (sql, Start::OnQueryRuntime), work).await
}

/// Where the work of a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// On the thread of the connection, for what takes less time than waking another thread. What has to wait, to be
    /// planned, or to index a table, goes on on the query runtime.
    Here,
    OnQueryRuntime,
}

/// The same, which begins where it is told.
pub(crate) async fn run_from<T, F>(
    session: &Arc<ClientSession>,
    (sql, start): (&str, Start),
    work: impl FnOnce(Arc<ClientSession>, Arc<RunningStatement>) -> F,
) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let server = session.server();
    let timeout = session.timeout();
    let arrived = Instant::now();
    let deadline = if timeout.is_zero() { None } else { arrived.checked_add(timeout) };
    let job = server.engine.job(&session.owner().name, deadline);
    let sql = session.without_secrets(sql);
    let statement = server.live.begin((session.key(), session.owner()), &sql, (arrived, Arc::clone(&job)));
    statement.set_tag(&session.current_options().query_tag);
    let mut guard = CancelOnDrop { session, statement: Some(Arc::clone(&statement)) };
    let work = job.inside(work(Arc::clone(session), Arc::clone(&statement)));
    let mut work = Box::pin(work.instrument(statement.span.clone()));
    let begun = match start {
        Start::Here => poll_immediate(AssertUnwindSafe(&mut work).catch_unwind()).await,
        Start::OnQueryRuntime => None,
    };
    let ended = match begun {
        Some(Ok(done)) => done,
        Some(Err(_panic)) => Err(task::panicked()),
        None => {
            let running = server.engine.runtime().spawn(work);
            let _guard = AbortOnDrop(running.abort_handle());
            let planning = server.context.limits.planning_timeout;
            tokio::select! {
                biased;
                done = running => done.unwrap_or_else(|error| Err(task::broken(error))),
                late = overdue(&statement, planning) => {
                    job.stop(Stop::Late);
                    Err(late.map_or_else(|| out_of_time(timeout), out_of_time_to_plan))
                }
                _ = cancelled(&statement) => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            }
        }
    };
    guard.statement = None;
    if let Err(error) = &ended
        && statement.result().is_none()
    {
        statement.record_end(Outcome::from_error(error).name(), (0, 0), Some(error));
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Cancelled => record(session, &statement, error),
            ErrorKind::Denied | ErrorKind::NotFound if !statement.mark_logged() => {
                server.context.log.refused(query_record(&statement, error));
            }
            ErrorKind::Unavailable if NoDecision::is_in(error) && !statement.mark_logged() => {
                server.context.log.refused(query_record(&statement, error));
            }
            _ => {}
        }
    }
    ended
}

struct CancelOnDrop<'a> {
    session: &'a ClientSession,
    statement: Option<Arc<RunningStatement>>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(statement) = self.statement.take() else { return };
        // Before `result()`: a later result then sees the stop (`query.rs`).
        statement.job.stop(Stop::Cancelled);
        if let Some(query) = statement.result() {
            // The result has no reader: its caller left.
            self.session.server().results.abandon(&query);
            return;
        }
        let error = Error::new(ErrorKind::Cancelled, "the caller left");
        statement.record_end(Outcome::Cancelled.name(), (0, 0), Some(&error));
        record(self.session, &statement, &error);
    }
}

/// A statement with a result is cancelled through the result.
async fn cancelled(statement: &RunningStatement) {
    loop {
        if statement.job.until_stopped().await == Stop::Cancelled && statement.result().is_none() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Waits until the statement is overdue; returns the planning limit if that was exceeded.
async fn overdue(statement: &RunningStatement, planning: Duration) -> Option<Duration> {
    let job = &statement.job;
    let mut look = job.deadline();
    if !planning.is_zero() {
        let first = statement.arrived + planning;
        look = Some(look.map_or(first, |deadline| deadline.min(first)));
    }
    let Some(mut look) = look else { return std::future::pending().await };
    loop {
        tokio::time::sleep_until(look.into()).await;
        let now = Instant::now();
        if statement.result().is_some() {
            // The result has its own deadline.
            return std::future::pending().await;
        }
        if job.deadline().is_some_and(|deadline| now >= deadline) {
            return None;
        }
        let began = job.planning_since();
        if began.is_some_and(|began| now >= began + planning) {
            return Some(planning);
        }
        let next = began.unwrap_or(now) + planning;
        look = job.deadline().map_or(next, |deadline| deadline.min(next));
    }
}

fn out_of_time_to_plan(limit: Duration) -> Error {
    Error::new(
        ErrorKind::Timeout,
        format!("planning the statement took longer than {} ms", limit.as_millis()),
    )
    .with_hint("write a simpler statement, keep parts of it in tables, or raise `limits.planning_timeout`")
}

fn record(session: &ClientSession, statement: &RunningStatement, error: &Error) {
    if statement.mark_logged() {
        return;
    }
    session.server().context.log.add(query_record(statement, error));
}

fn query_record(statement: &RunningStatement, error: &Error) -> QueryRecord {
    QueryRecord {
        id: statement.id,
        session: statement.requester.session,
        user: statement.principal.name.clone(),
        sql: statement.sql.to_string(),
        outcome: Outcome::from_error(error),
        started: statement.started,
        duration: statement.elapsed(),
        rows: 0,
        bytes: 0,
        error: Some(error.to_string()),
        decision: decision(Some(error)),
        facts: statement.facts(),
    }
}
