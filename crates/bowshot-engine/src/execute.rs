//! Authorised plan → running streams. Nothing is computed until a stream is polled, and dropping a stream stops its
//! part of the work.

use crate::enforce::AuthorizedPlan;
use crate::error::classify;
use crate::intact::{self, Origins, Views};
use crate::progress::ProgressMeter;
use crate::reuse::{Answer, Computed, Query};
use crate::session::EngineSession;
use crate::statistics::exact_rows;
use crate::{job, parameters, straight, yielding};
use bowshot_api::{BatchStream, Error, Layout, Result};
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;

/// How many streams an execution is split into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Parallelism {
    /// One for each processor.
    Default,
    /// This many, where the plan can be split.
    Streams(usize),
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
}

/// The result schema of a plan: what GetSchema, FlightInfo, prepared statements and the encoder all use.
///
/// The types are those after coercion (`SELECT 1 UNION SELECT 'a'` is text), so the plan is analysed for them. A plan
/// that cannot be analysed shows its own types; running it gives the error.
pub(crate) fn result_schema(state: &SessionState, plan: &LogicalPlan, layout: Layout) -> SchemaRef {
    layout.schema(&analysed_schema(state, plan))
}

/// The schema of a plan after coercion, before it is laid out.
pub(crate) fn analysed_schema(state: &SessionState, plan: &LogicalPlan) -> SchemaRef {
    match state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {}) {
        Ok(analysed) => Arc::clone(analysed.schema().inner()),
        Err(_) => Arc::clone(plan.schema().inner()),
    }
}

/// Prepares a plan without parameters.
pub(crate) async fn prepare(session: &EngineSession, run: &Run<'_>) -> Result<Execution> {
    let planned = run.plan.planned();
    parameters::check_none(planned.parameters())?;
    let (state, plan) = session.take_effect(run.plan, &run.state).await?;
    one(session, run, (&state, &plan)).await
}

/// Gives the result of one plan without parameters: what is kept of it, or what is computed.
async fn one(
    session: &EngineSession,
    run: &Run<'_>,
    (state, plan): (&SessionState, &LogicalPlan),
) -> Result<Execution> {
    let ordered = run.plan.planned().ordered();
    let asked = session.asked(run.plan, run.layout);
    let query = Query { plan, state, form: run.form(), asked, purpose: session.purpose() };
    let recorder = match session.reuse().answer(query).await {
        Answer::Known(execution) => return Ok(execution),
        Answer::Wanted(recorder) => Some(recorder),
        Answer::Unknown => None,
    };
    let schema = result_schema(state, plan, run.layout);
    let physical = physical_plan(session, (state, run.form()), plan, ordered).await?;
    let rows = exact_rows(physical.as_ref());
    let progress = ProgressMeter::new(&physical);
    let streams = streams(&physical, state, run.layout, &schema)?;
    let streams = match recorder {
        Some(record) => record(Computed { streams, schema: SchemaRef::clone(&schema), ordered, rows }),
        None => streams,
    };
    Ok(Execution { schema, streams, ordered, rows, progress })
}

/// Prepares one execution for each row of parameters; their results follow one another in one stream.
pub(crate) async fn prepare_bound(
    session: &EngineSession,
    run: &Run<'_>,
    parameters: &[RecordBatch],
) -> Result<Execution> {
    let planned = run.plan.planned();
    let expected = planned.parameters();
    let (first, rest) = first_row(parameters)?;
    let first_plan = run.plan.with_plan(parameters::bind(planned.plan(), expected, first, 0)?);
    let (state, plan) = session.take_effect(&first_plan, &run.state).await?;
    if rest.is_empty() {
        return one(session, run, (&state, &plan)).await;
    }
    let schema = nullable(&result_schema(&state, &plan, run.layout));
    let physical = physical_plan(session, (&state, run.form()), &plan, planned.ordered()).await?;
    let progress = ProgressMeter::new(&physical);
    let (head, origins) = (streams(&physical, &state, run.layout, &schema)?, Origins::default());
    origins.add(&head);
    let tail = tail(session.clone(), run, rest, (SchemaRef::clone(&schema), origins.clone()));
    let stream = BatchStream::new(SchemaRef::clone(&schema), merged(head).chain(tail).boxed());
    let stream = stream.with_origin(Some(Arc::new(origins)));
    Ok(Execution { schema, streams: vec![stream], ordered: true, rows: None, progress })
}

async fn physical_plan(
    session: &EngineSession,
    (state, form): (&SessionState, (Layout, Parallelism)),
    plan: &LogicalPlan,
    ordered: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let optimised = state.optimize(plan).map_err(classify)?;
    let optimised = session.reuse().substitute(optimised, state, session.purpose()).await;
    let physical = state.query_planner().create_physical_plan(&optimised, state).await.map_err(classify)?;
    let physical = match plan {
        LogicalPlan::Explain(explain) => session.reuse().explained(physical, explain, (state, form)),
        _ => physical,
    };
    let options = state.config_options();
    let physical = if ordered {
        physical
    } else {
        straight::split(physical, options.execution.target_partitions, options)?
    };
    yielding::ensure(physical)
}

/// What to run and how.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a AuthorizedPlan,
    pub(crate) layout: Layout,
    pub(crate) parallelism: Parallelism,
    pub(crate) state: SessionState,
}

impl Run<'_> {
    /// In what form the result goes to the client.
    fn form(&self) -> (Layout, Parallelism) {
        (self.layout, self.parallelism)
    }
}

type Rows = Vec<(RecordBatch, usize)>;

/// The first row, and all others as single-row addresses.
fn first_row(parameters: &[RecordBatch]) -> Result<(&RecordBatch, Rows)> {
    let mut filled = parameters.iter().filter(|batch| batch.num_rows() > 0);
    let Some(first) = filled.next() else {
        return Err(Error::invalid("no row of parameters was bound").with_hint("bind at least one row"));
    };
    let mut rest: Rows = (1..first.num_rows()).map(|row| (first.clone(), row)).collect();
    for batch in filled {
        rest.extend((0..batch.num_rows()).map(|row| (batch.clone(), row)));
    }
    Ok((first, rest))
}

/// Runs the remaining rows one after another, each planned when its turn comes.
fn tail(
    session: EngineSession,
    run: &Run<'_>,
    rows: Rows,
    (schema, origins): (SchemaRef, Origins),
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send + use<> {
    let (plan, form, state) = (run.plan.clone(), run.form(), Arc::new(run.state.clone()));
    stream::iter(rows)
        .then(move |(batch, row)| {
            let (session, plan, state) = (session.clone(), plan.clone(), Arc::clone(&state));
            let (schema, origins) = (SchemaRef::clone(&schema), origins.clone());
            async move {
                let planned = plan.planned();
                let bound = parameters::bind(planned.plan(), planned.parameters(), &batch, row)?;
                let (state, bound) = session.take_effect(&plan.with_plan(bound), &state).await?;
                same_types(&schema, &result_schema(&state, &bound, form.0), row)?;
                let planning = physical_plan(&session, (&state, form), &bound, planned.ordered());
                let physical = job::apart(planning).await?;
                let streams = streams(&physical, &state, form.0, &schema)?;
                origins.add(&streams);
                Ok::<_, Error>(merged(streams))
            }
        })
        .try_flatten()
}

/// A column that has no nulls with the first row of parameters may have some with another.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields: Fields =
        schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn same_types(first: &Schema, this: &Schema, row: usize) -> Result<()> {
    let same = first.fields().len() == this.fields().len()
        && first.fields().iter().zip(this.fields()).all(|(a, b)| a.data_type() == b.data_type());
    if same {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "row {row} of the parameters gives the result other column types than the first row"
    ))
    .with_hint("cast the parameters in the statement"))
}

fn merged(streams: Vec<BatchStream>) -> stream::BoxStream<'static, Result<RecordBatch>> {
    stream::select_all(streams).boxed()
}

fn streams(
    plan: &Arc<dyn ExecutionPlan>,
    state: &SessionState,
    layout: Layout,
    schema: &SchemaRef,
) -> Result<Vec<BatchStream>> {
    let context = context(plan, state);
    let count = plan.properties().partitioning.partition_count();
    let views = Views::of(plan.as_ref());
    let mut streams = Vec::with_capacity(count.max(1));
    for partition in 0..count {
        let batches = plan.execute(partition, Arc::clone(&context)).map_err(classify)?;
        let batches = intact::watched(batches, views.as_ref());
        let stream = laid_out(batches, layout, SchemaRef::clone(schema));
        streams.push(stream.with_origin(intact::origin(views.clone())));
    }
    if streams.is_empty() {
        streams.push(BatchStream::from_batches(SchemaRef::clone(schema), Vec::new()));
    }
    Ok(streams)
}

/// Without functions: only plans that are read from bytes look for theirs by name.
fn context(plan: &Arc<dyn ExecutionPlan>, state: &SessionState) -> Arc<TaskContext> {
    let config = state.config().clone();
    let config = match straight::batch_rows(plan.as_ref(), config.batch_size()) {
        Some(rows) => config.with_batch_size(rows),
        None => config,
    };
    let (session, runtime) = (state.session_id().to_owned(), Arc::clone(state.runtime_env()));
    let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
    Arc::new(TaskContext::new(None, session, config, none.0, none.1, none.2, none.3, runtime))
}

fn laid_out(batches: SendableRecordBatchStream, layout: Layout, schema: SchemaRef) -> BatchStream {
    let target = SchemaRef::clone(&schema);
    let batches = batches.map(move |batch| layout.apply(batch.map_err(classify)?, &target));
    BatchStream::new(schema, batches.boxed())
}
