//! Physical plan → running streams. Nothing is computed until a stream is polled, and dropping a stream stops its part of the
//! work. Which plan runs for a statement, the session says (`session/query.rs`).

pub(crate) mod checked_scan;
pub(crate) mod file_views;
pub(crate) mod input_scan;
pub(crate) mod materialized_cte;
pub(crate) mod materialized_table;
pub(crate) mod progress;
pub(crate) mod row_balance;
pub(crate) mod split_scan;
pub(crate) mod statistics;
pub(crate) mod table_changes;

use crate::endpoints::{Handout, Opening, ResultEndpoints};
use crate::error::classify;
use crate::execute::file_views::FileViews;
use crate::execute::progress::ProgressMeter;
use bowshot_api::{BatchStream, Layout, QueryId, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::StreamingTableExec;
use futures::stream::{self, StreamExt};
use std::collections::HashMap;
use std::sync::Arc;

/// How many streams an execution is split into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parallelism {
    /// One for each processor.
    Default,
    /// This many, where the plan can be split.
    Streams(usize),
    /// One for each node that makes rows, if those are `most` or fewer.
    Nodes {
        /// How many endpoints the client wants at most.
        most: usize,
        /// What its rows are of.
        query: QueryId,
        /// Into how many it is split where it runs on one node; `None` for one for each processor.
        streams: Option<usize>,
    },
}

/// A plan that is ready to run.
#[derive(Debug)]
pub struct Execution {
    /// Schema of every stream, in the layout that was asked for.
    pub schema: SchemaRef,
    /// One stream for each partition of the plan, at least one. To be polled on the query runtime.
    pub streams: Vec<BatchStream>,
    /// Whether the statement asks for an order; there is one stream then.
    pub ordered: bool,
    /// Number of rows where the plan knows it exactly.
    pub rows: Option<u64>,
    /// Tells how far the streams are.
    pub progress: ProgressMeter,
    /// Starts a plan whose rows other nodes may hand out. There are no streams before that.
    pub opening: Option<Opening>,
}

impl Execution {
    /// Starts what has to be started, and waits for its first rows; with the endpoints, if nodes hand the rows out. Then there is
    /// one stream without rows, which ends when they have ended.
    ///
    /// # Errors
    /// What the plan fails with before its first row.
    pub async fn opened(mut self) -> Result<(Self, Option<Arc<dyn ResultEndpoints>>)> {
        let Some(opening) = self.opening.take() else { return Ok((self, None)) };
        let (streams, endpoints) = opening.0.await?;
        self.streams = streams;
        Ok((self, endpoints))
    }
}

/// The streams as one.
pub(crate) fn merged(streams: Vec<BatchStream>) -> stream::BoxStream<'static, Result<RecordBatch>> {
    stream::select_all(streams).boxed()
}

/// The streams of a plan, one for each partition, in a layout.
///
/// # Errors
/// From starting the plan; nothing is computed yet.
pub(crate) fn streams(
    plan: &Arc<dyn ExecutionPlan>,
    state: &SessionState,
    layout: Layout,
    schema: &SchemaRef,
) -> Result<Vec<BatchStream>> {
    streams_in(&context(plan, state), plan, layout, schema)
}

/// The same in a context that there is.
///
/// # Errors
/// From starting the plan; nothing is computed yet.
pub(crate) fn streams_in(
    context: &Arc<TaskContext>,
    plan: &Arc<dyn ExecutionPlan>,
    layout: Layout,
    schema: &SchemaRef,
) -> Result<Vec<BatchStream>> {
    let count = plan.properties().partitioning.partition_count();
    let views = FileViews::of(plan.as_ref());
    let mut streams = Vec::with_capacity(count.max(1));
    for partition in 0..count {
        let batches = plan.execute(partition, Arc::clone(context)).map_err(classify)?;
        streams.push(shown(batches, views.clone(), layout, schema));
    }
    if streams.is_empty() {
        streams.push(BatchStream::from_batches(SchemaRef::clone(schema), Vec::new()));
    }
    Ok(streams)
}

fn context(plan: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Arc<TaskContext> {
    let config = state.config().clone();
    let config = match split_scan::batch_rows(plan.as_ref(), config.batch_size()) {
        Some(rows) => config.with_batch_size(rows),
        None => config,
    };
    if tells_functions(plan.as_ref()) {
        return Arc::new(TaskContext::from(state).with_session_config(config));
    }
    let (session, runtime) = (state.session_id().to_owned(), Arc::clone(state.runtime_env()));
    let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
    Arc::new(TaskContext::new(None, session, config, none.0, none.1, none.2, none.3, runtime))
}

/// Whether a plan looks for functions while it runs, as `information_schema.routines` does: for all others the names of
/// hundreds of them need not be copied.
fn tells_functions(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<StreamingTableExec>()
        || plan.children().into_iter().any(|child| tells_functions(child.as_ref()))
}

/// Rows of a plan with these views as they go to a client.
pub(crate) fn shown(
    batches: SendableRecordBatchStream,
    views: Option<Arc<FileViews>>,
    layout: Layout,
    schema: &SchemaRef,
) -> BatchStream {
    let batches = file_views::watched(batches, views.as_ref());
    let stream = laid_out(batches, layout, SchemaRef::clone(schema));
    stream.with_origin(file_views::origin(views))
}

fn laid_out(batches: SendableRecordBatchStream, layout: Layout, schema: SchemaRef) -> BatchStream {
    let target = SchemaRef::clone(&schema);
    let batches = batches.map(move |batch| layout.apply(batch.map_err(classify)?, &target));
    BatchStream::new(schema, batches.boxed())
}

/// The rows of one partition of a plan as they are handed out.
///
/// # Errors
/// From starting the plan; nothing is computed yet.
pub fn rows_of(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
    handout: &Handout,
) -> Result<BatchStream> {
    let views = FileViews::of(plan.as_ref());
    let batches = plan.execute(partition, Arc::clone(context)).map_err(classify)?;
    Ok(shown(batches, views, handout.layout, &handout.schema))
}
