//! Queries whose hash tables do not fit into memory. Those of joins and of windows cannot spill: where one fails before a row has gone to the
//! client, the query is planned again with joins that sort their sides, which can, and windows that sort their rows. Later the client has rows of which nobody knows which ones would
//! come again, and gets the error.

use super::EngineSession;
use super::distributed_query::Made;
use super::query::physical_plan;
use crate::execute::file_views::Origins;
use crate::execute::{self, Parallelism};
use bowshot_api::{BatchStream, Error, Layout, Reason, Result};
use bowshot_optimizer::SessionJoinOrder;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNode;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;

/// With large sides sorted, then with all of them.
const MOST_FAILURES: usize = 2;

/// The streams of a plan, those of another one behind them where its hash tables do not fit into memory.
pub(super) fn guarded(
    session: &EngineSession,
    plan: &Arc<dyn ExecutionPlan>,
    (state, query, form, ordered): Made<'_>,
    streams: Vec<BatchStream>,
) -> Vec<BatchStream> {
    let Some(schema) = streams.first().map(BatchStream::schema) else { return streams };
    // On several nodes a plan is placed again where that helps.
    let is_here = !session.distribution().is_active();
    let is_hashed = |node: &Arc<dyn ExecutionPlan>| {
        Ok(node.is::<HashJoinExec>() || bowshot_optimizer::hashes_partitions(node.as_ref()))
    };
    if !is_here || !plan.exists(is_hashed).unwrap_or(false) {
        return streams;
    }
    let origins = Arc::new(Origins::default());
    origins.add(&streams);
    let (moved, has_moved) = watch::channel(false);
    let query = Arc::new(Query {
        session: session.clone(),
        plan: query.clone(),
        state: state.clone(),
        form,
        ordered,
        schema,
        origins,
        progress: Mutex::default(),
        moved,
    });
    let guarded = streams.into_iter().map(|rows| {
        Guarded { rows, query: Arc::clone(&query), has_moved: has_moved.clone(), place: Place::First }
            .stream()
    });
    guarded.collect()
}

struct Query {
    session: EngineSession,
    plan: LogicalPlan,
    state: SessionState,
    form: (Layout, Parallelism),
    ordered: bool,
    schema: SchemaRef,
    origins: Arc<Origins>,
    progress: Mutex<Progress>,
    /// Tells the streams of the first plan that they have ended.
    moved: watch::Sender<bool>,
}

#[derive(Default)]
struct Progress {
    failures: usize,
    /// Whether the client may have rows.
    given: bool,
}

impl Query {
    /// Notes that a stream gives rows, if its plan is still the one that counts.
    fn give(&self, place: Place) -> bool {
        let mut progress = self.progress.lock();
        let counts = progress.failures == 0 || place != Place::First;
        progress.given |= counts;
        counts
    }

    /// How often hash tables of the query have failed, if it may be planned once more.
    fn fail(&self, place: Place) -> Option<usize> {
        let mut progress = self.progress.lock();
        let is_over = progress.given || progress.failures == MOST_FAILURES;
        if is_over || (progress.failures > 0 && place == Place::First) {
            return None;
        }
        progress.failures += 1;
        Some(progress.failures)
    }

    fn has_moved(&self) -> bool {
        self.progress.lock().failures > 0
    }

    /// All rows, by a plan for hash tables that have failed so often.
    async fn again(&self, failures: usize) -> Result<BatchStream> {
        tracing::warn!(
            failures,
            "hash tables do not fit into memory: the statement is planned with sorted joins and windows"
        );
        let mut state = self.state.clone();
        if let Some(order) = state.config_mut().options_mut().extensions.get_mut::<SessionJoinOrder>() {
            order.failures = failures;
        }
        let planning = physical_plan(&self.session, (&state, self.form), &self.plan, self.ordered);
        let plan = bowshot_query_task::run_planning(planning).await?;
        let streams = execute::streams(&plan, &state, self.form.0, &self.schema)?;
        self.origins.add(&streams);
        Ok(BatchStream::new(SchemaRef::clone(&self.schema), execute::merged(streams)))
    }
}

/// Of which plan a stream has the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
    /// Of the one that the client gets rows of.
    Settled,
}

struct Guarded {
    rows: BatchStream,
    query: Arc<Query>,
    has_moved: watch::Receiver<bool>,
    place: Place,
}

impl Guarded {
    fn stream(self) -> BatchStream {
        let (schema, origins) = (self.rows.schema(), Arc::clone(&self.query.origins));
        let rows = stream::unfold(Some(self), |guarded| async move {
            let mut guarded = guarded?;
            match guarded.next().await {
                Some(Ok(batch)) => Some((Ok(batch), Some(guarded))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        });
        BatchStream::new(schema, rows.boxed()).with_origin(Some(origins))
    }

    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let error = match self.of_plan().await? {
                Ok(batch) => {
                    if self.place != Place::Settled {
                        if !self.query.give(self.place) {
                            return None;
                        }
                        self.place = Place::Settled;
                    }
                    return Some(Ok(batch));
                }
                Err(error) => error,
            };
            match self.recover(error).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next rows of the plan that the stream is of; those of the first one end when another one is made.
    async fn of_plan(&mut self) -> Option<Result<RecordBatch>> {
        if self.place != Place::First {
            return self.rows.next().await;
        }
        tokio::select! {
            biased;
            () = wait(&mut self.has_moved) => None,
            next = self.rows.next() => next,
        }
    }

    /// Goes on with the rows of another plan after an error, if that may help; `false` where another stream does.
    ///
    /// # Errors
    /// The error, as the client is to see it.
    async fn recover(&mut self, error: Error) -> Result<bool> {
        if self.place == Place::First && self.query.has_moved() {
            return Ok(false);
        }
        if self.place == Place::Settled || !matches!(error.reason(), Some(Reason::InsufficientResources)) {
            return Err(error);
        }
        let Some(failures) = self.query.fail(self.place) else {
            // Another stream may have failed just now.
            return if self.place == Place::First && self.query.has_moved() { Ok(false) } else { Err(error) };
        };
        // What the plan has in memory goes before the next one begins.
        self.rows = BatchStream::from_batches(SchemaRef::clone(&self.query.schema), Vec::new());
        self.query.moved.send_replace(true);
        self.place = Place::Later;
        self.rows = self.query.again(failures).await?;
        Ok(true)
    }
}

async fn wait(has_moved: &mut watch::Receiver<bool>) {
    drop(has_moved.wait_for(|moved| *moved).await);
}
