//! What starting a statement gives: the rows of a small result that are there at once, else a result to be read.

use crate::partition::Partition;
use crate::query_log::{Outcome, QueryRecord, decision};
use crate::result::{Launch, QueryResult};
use crate::result_registry::Ended;
use crate::running_statements::RunningStatement;
use crate::session::ClientSession;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Answer, Delivery, Error, ErrorKind, Request, Result, TRACES};
use bowshot_query_task::Stop;
use std::sync::Arc;

/// The most that is given at once: nothing of it counts as a buffer, and nobody can cancel it.
const MAX_ROWS: usize = 1_024;
const MAX_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) enum Started {
    Result(Arc<QueryResult>),
    /// The statement has ended, and its answer has all rows.
    Rows(Answer),
}

impl Started {
    pub(crate) fn answer(self) -> Answer {
        match self {
            Self::Result(query) => query.answer(),
            Self::Rows(answer) => answer,
        }
    }

    /// The result of a request that did not ask for rows at once.
    ///
    /// # Errors
    /// `Internal` where there is none.
    pub(crate) fn result(self) -> Result<Arc<QueryResult>> {
        match self {
            Self::Result(query) => Ok(query),
            Self::Rows(_) => Err(Error::internal("a statement has no result to read")),
        }
    }
}

/// Gives the rows of a small result to a request that takes them at once. Else starts the result, and waits until it can be read.
///
/// # Errors
/// What the statement fails with before its first row.
pub(crate) async fn begin_reading(
    session: &ClientSession,
    launch: Launch,
    (request, is_endless): (&Request, bool),
) -> Result<Started> {
    if request.at_once
        && let Some(answer) = rows_at_once(session, &launch)
    {
        return Ok(Started::Rows(answer));
    }
    let (live, delivery) = (Arc::clone(&launch.statement), launch.delivery);
    let query = start_result(session, launch, &live)?;
    // Clients that send rows may want the schema first.
    if is_endless {
        query.exempt_from_drain();
    } else if delivery == Delivery::Stream && live.input().is_none() {
        wait_until_readable(session, &query).await?;
    }
    Ok(Started::Result(query))
}

/// The rows of a small result that are all there; its statement has ended. `None` for others, and where the statement may not go
/// on: its result says why.
fn rows_at_once(session: &ClientSession, launch: &Launch) -> Option<Answer> {
    let (execution, live) = (&launch.execution, &launch.statement);
    let [stream] = execution.streams.as_slice() else { return None };
    let batches = stream.ready()?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let bytes: usize = batches.iter().map(Partition::size).sum();
    let is_small = rows <= MAX_ROWS && bytes <= MAX_BYTES;
    let is_here = launch.delivery == Delivery::Stream && launch.remote.is_none() && live.input().is_none();
    if !is_small || !is_here || live.job.check().is_err() {
        return None;
    }
    drop(tracing::info_span!(target: TRACES, parent: &live.span, "stream", bowshot.partitions = 1_i64));
    live.job.handed_over(bytes);
    record(session, launch, (rows as u64, bytes as u64));
    Some(Answer {
        query: launch.id,
        schema: Arc::clone(&execution.schema),
        layout: launch.layout,
        partitions: 1,
        ordered: execution.ordered,
        rows: execution.rows,
        expires: None,
        locations: Vec::new(),
        batches: Some(batches.to_vec()),
    })
}

fn record(session: &ClientSession, launch: &Launch, (rows, bytes): (u64, u64)) {
    let live = &launch.statement;
    live.mark_logged();
    live.record_end(Outcome::Finished.name(), (rows, bytes), None);
    session.server().context.log.add(QueryRecord {
        id: launch.id,
        session: launch.session,
        user: launch.principal.name.clone(),
        sql: launch.sql.clone(),
        outcome: Outcome::Finished,
        started: live.started,
        duration: launch.started.elapsed(),
        rows,
        bytes,
        error: None,
        decision: decision(None),
        facts: live.facts(),
    });
}

fn start_result(
    session: &ClientSession,
    launch: Launch,
    live: &Arc<RunningStatement>,
) -> Result<Arc<QueryResult>> {
    let query = QueryResult::launch(launch, &session.server().context, session.server().engine.runtime());
    live.set_result(&query);
    session.server().results.insert(Arc::clone(&query));
    if matches!(live.job.stopped(), Some(Stop::Cancelled | Stop::Late)) {
        // The client left before it could see the result.
        session.server().results.abandon(&query);
        return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
    }
    Ok(query)
}

/// Waits for the first rows, so that errors are returned by the call. Dropping it cancels the query.
async fn wait_until_readable(session: &ClientSession, query: &Arc<QueryResult>) -> Result<()> {
    struct Abandon<'a>(&'a ClientSession, &'a QueryResult, bool);
    impl Drop for Abandon<'_> {
        fn drop(&mut self) {
            if !self.2 {
                self.0.server().results.abandon(self.1);
            }
        }
    }
    let mut guard = Abandon(session, query.as_ref(), false);
    let ready = query.ready().await;
    guard.2 = true;
    if let Err(error) = &ready {
        session.server().results.end(query.id, Ended::Failed(error.duplicate()));
    }
    ready
}
