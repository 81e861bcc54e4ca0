//! Authorised plan → running streams, as a session runs a query: the parameters are bound, what is known already is given
//! instead of being computed, and what is computed is planned.

use crate::authorize::AuthorizedPlan;
use crate::endpoints::{Handout, Spread};
use crate::error::classify;
use crate::execute::file_views::Origins;
use crate::execute::progress::ProgressMeter;
use crate::execute::statistics::exact_rows;
use crate::execute::{Execution, Parallelism, merged, split_scan, streams};
use crate::plan::parameters;
use crate::reuse::{Answer, Computed, Query};
use crate::session::EngineSession;
use crate::session::cacheable_plan::Bound;
use crate::session::distributed_query::{self, Started};
use crate::session::literal_query;
use crate::session::sorted_joins;
use bowshot_api::{BatchStream, Error, Layout, Result};
use bowshot_optimizer::cooperative;
use bowshot_policy::snapshot::input::StreamedTable;
use bowshot_types::result_metadata::result_schema;
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::StringifiedPlan;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use futures::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

/// Rows from which on it is worth that several nodes hand them out, where their number is known.
const FEWEST_ROWS: u64 = 100_000;

/// Prepares a plan without parameters.
pub(crate) async fn prepare(session: &EngineSession, run: &Run<'_>) -> Result<Execution> {
    let planned = run.plan.planned();
    parameters::check_none(planned.parameters())?;
    let (state, plan) = session.take_effect(run.plan, &run.state).await?;
    one(session, run, Bound { state: &state, plan: &plan, values: None, layout: run.layout }).await
}

/// Gives the result of one plan whose parameters have values: what is kept of it, or what is computed.
async fn one(session: &EngineSession, run: &Run<'_>, bound: Bound<'_>) -> Result<Execution> {
    let Bound { state, plan, .. } = bound;
    if !session.has_literals(run.plan, bound) {
        session.leave_connection().await;
    }
    let ordered = run.plan.planned().ordered();
    let from_views = Box::pin(session.read_from_views(plan, run.plan.pinned(), state)).await;
    if let Some(plan) = &from_views {
        session.note_answers(plan, run.plan.pinned());
    }
    let plan = from_views.as_ref().unwrap_or(plan);
    let asked = session.asked(run.plan, run.layout);
    let query = Query { plan, state, form: run.form(), asked, purpose: session.purpose() };
    let recorder = match session.reuse().answer(query).await {
        Answer::Known(execution) => return Ok(execution),
        Answer::Wanted(recorder) => Some(recorder),
        Answer::Unknown => None,
    };
    let (physical, schema) = match &from_views {
        // With the schema that clients were told before.
        Some(plan) => {
            let physical = physical_plan(session, (state, run.form()), plan, ordered).await?;
            (physical, result_schema(state, bound.plan, run.layout))
        }
        None => {
            let (optimised, schema) = session.optimized(run.plan, bound)?;
            if recorder.is_none()
                && let Some(row) = literal_query::row(&optimised, run.layout, &schema)?
            {
                let (streams, progress) = (vec![row], ProgressMeter::default());
                return Ok(Execution { schema, streams, ordered, rows: Some(1), progress, opening: None });
            }
            let made = physical_plan_of(session, (state, run.form()), (plan, optimised), ordered);
            (made.await?, schema)
        }
    };
    let rows = exact_rows(physical.as_ref());
    let progress = ProgressMeter::new(&physical);
    let input = run.plan.pinned().input();
    // Rows that come along with a statement come once, and to this node.
    let streams = match input {
        None => {
            let made = (state, plan, run.form(), ordered);
            match distributed_query::start(
                session,
                &physical,
                made,
                (&schema, run.spread(session, &schema, rows)),
            )
            .await?
            {
                Started::Here(streams) => sorted_joins::guarded(session, &physical, made, streams),
                // Nothing is kept of rows that do not come by here.
                Started::OnNodes(opening) => {
                    let (streams, opening) = (Vec::new(), Some(opening));
                    return Ok(Execution { schema, streams, ordered, rows, progress, opening });
                }
            }
        }
        Some(_) => streams(&physical, state, run.layout, &schema)?,
    };
    let streams = streams.into_iter().map(|stream| located(stream, input)).collect();
    let streams = match recorder {
        Some(record) => record(Computed { streams, schema: SchemaRef::clone(&schema), ordered, rows }),
        None => streams,
    };
    Ok(Execution { schema, streams, ordered, rows, progress, opening: None })
}

/// The stream, whose errors say which rows of the client were at work.
fn located(stream: BatchStream, input: Option<&Arc<StreamedTable>>) -> BatchStream {
    let Some(input) = input.cloned() else { return stream };
    let (schema, origin) = (stream.schema(), stream.origin().cloned());
    let batches = stream.map(move |batch| batch.map_err(|error| input.located(error)));
    BatchStream::new(schema, batches.boxed()).with_origin(origin)
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
    let values = parameters::values(planned.plan(), expected, first, 0)?;
    let first_plan = run.plan.with_plan(parameters::bind_values(planned.plan(), values.clone())?);
    let (state, plan) = session.take_effect(&first_plan, &run.state).await?;
    if rest.is_empty() {
        let bound = Bound { state: &state, plan: &plan, values: Some(&values), layout: run.layout };
        return one(session, run, bound).await;
    }
    session.leave_connection().await;
    let schema = nullable(&result_schema(&state, &plan, run.layout));
    let physical = physical_plan(session, (&state, run.form()), &plan, planned.ordered()).await?;
    let progress = ProgressMeter::new(&physical);
    let (head, origins) = (streams(&physical, &state, run.layout, &schema)?, Origins::default());
    origins.add(&head);
    let tail = tail(session.clone(), run, rest, (SchemaRef::clone(&schema), origins.clone()));
    let stream = BatchStream::new(SchemaRef::clone(&schema), merged(head).chain(tail).boxed());
    let stream = stream.with_origin(Some(Arc::new(origins)));
    Ok(Execution { schema, streams: vec![stream], ordered: true, rows: None, progress, opening: None })
}

/// The physical plan of a query, with what is there already in the place of what would compute it.
///
/// # Errors
/// From planning.
pub(super) async fn physical_plan(
    session: &EngineSession,
    (state, form): (&SessionState, (Layout, Parallelism)),
    plan: &LogicalPlan,
    ordered: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let optimising = tracing::info_span!(target: bowshot_api::TRACES, "optimise");
    let optimised = optimising.in_scope(|| state.optimize(plan)).map_err(classify)?;
    physical_plan_of(session, (state, form), (plan, optimised), ordered).await
}

/// The same of a plan that is optimised.
async fn physical_plan_of(
    session: &EngineSession,
    (state, form): (&SessionState, (Layout, Parallelism)),
    (plan, optimised): (&LogicalPlan, LogicalPlan),
    ordered: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let optimised = session.reuse().substitute(optimised, state, session.purpose()).await;
    let physical = state.query_planner().create_physical_plan(&optimised, state).await.map_err(classify)?;
    let physical = match plan {
        LogicalPlan::Explain(explain) => {
            let shown = session.reuse().explained(physical, explain, (state, form));
            let shown = session.with_key_lookup(shown, explain);
            plainly(distributed_query::explained(session, shown, explain, state).await?)
        }
        _ => physical,
    };
    let options = state.config_options();
    let physical = if ordered {
        physical
    } else {
        split_scan::split(physical, options.execution.target_partitions, options)?
    };
    cooperative::ensure(physical).map_err(classify)
}

/// What EXPLAIN shows, with the names that tables have.
fn plainly(shown: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let Some(plans) = shown.downcast_ref::<ExplainExec>() else { return shown };
    let named = |plan: &StringifiedPlan| {
        StringifiedPlan::new(plan.plan_type.clone(), bowshot_sql::rewrite::unmarked(&plan.plan))
    };
    let all = plans.stringified_plans().iter().map(named).collect();
    Arc::new(ExplainExec::new(shown.schema(), all, plans.verbose()))
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
    /// In what form the result goes to the client; who hands it out does not change it.
    fn form(&self) -> (Layout, Parallelism) {
        let parallelism = match self.parallelism {
            Parallelism::Nodes { streams: Some(streams), .. } => Parallelism::Streams(streams),
            Parallelism::Nodes { streams: None, .. } => Parallelism::Default,
            parallelism => parallelism,
        };
        (self.layout, parallelism)
    }

    /// How other nodes may hand the rows out, if they may and it is worth it.
    fn spread(&self, session: &EngineSession, schema: &SchemaRef, rows: Option<u64>) -> Option<Spread> {
        let Parallelism::Nodes { most, query, .. } = self.parallelism else { return None };
        if self.plan.planned().ordered() || most < 2 || rows.is_some_and(|rows| rows < FEWEST_ROWS) {
            return None;
        }
        let (principal, layout) = (session.principal.clone(), self.layout);
        let handout = Handout { query, principal, layout, schema: SchemaRef::clone(schema) };
        Some(Spread { handout, most })
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
                let physical = bowshot_query_task::run_planning(planning).await?;
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
    Err(Error::invalid(format!("parameter row {row} gives the result other column types than the first one"))
        .with_hint("cast the parameters in the statement"))
}
