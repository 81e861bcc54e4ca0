//! Runs plans on several nodes. If a node is lost before the client has a row, the plan runs again without that node. Later the client
//! gets an error and must retry, since rows may come in another order. Where nodes send rows themselves, "later" begins with FlightInfo.

use crate::distribution::{Placed, PlanOnNodes, heard};
use crate::endpoints::{Opened, Opening, ResultEndpoints, Spread};
use crate::error::classify;
use crate::execute::file_views::{self, FileViews};
use crate::execute::{self, Parallelism};
use crate::session::EngineSession;
use crate::session::query::physical_plan;
use crate::write::rows;
use bowshot_api::{BatchStream, Error, ErrorKind, Layout, Origin, Result};
use bowshot_optimizer::cooperative;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Explain, ExplainFormat, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use futures::future::FutureExt;
use futures::stream::{self, StreamExt};
use std::sync::Arc;

/// How often a plan is placed again.
const MOST_ATTEMPTS: usize = 3;

/// What a plan is made of: the state of its session, the query, in what form it goes to the client, and whether it has an order.
pub(super) type Made<'a> = (&'a SessionState, &'a LogicalPlan, (Layout, Parallelism), bool);

/// A plan that has been started.
pub(super) enum Started {
    /// Its rows come through this node.
    Here(Vec<BatchStream>),
    /// Other nodes may hand them out: its first rows have to be waited for.
    OnNodes(Opening),
}

/// Starts a plan, wherever it runs.
///
/// # Errors
/// From starting the plan.
pub(super) async fn start(
    session: &EngineSession,
    plan: &Arc<dyn ExecutionPlan>,
    (state, query, form, ordered): Made<'_>,
    (schema, spread): (&SchemaRef, Option<Spread>),
) -> Result<Started> {
    let here = || execute::streams(plan, state, form.0, schema).map(Started::Here);
    let distribution = session.distribution();
    if !distribution.is_active() {
        return here();
    }
    let placed = distribution.place(plan, state, spread.as_ref()).await;
    let Placed::OnNodes(nodes) = &placed else { return here() };
    let is_database = nodes.endpoints.is_some();
    let (state, schema) = (state.clone(), SchemaRef::clone(schema));
    let rows = started(nodes, form.0, &schema)?;
    let (session, query) = (session.clone(), query.clone());
    let (purpose, given, attempts) = (Purpose::Read, false, 1);
    let run = OnNodes {
        session,
        query,
        form,
        ordered,
        purpose,
        state,
        schema,
        spread,
        placed,
        rows,
        given,
        attempts,
    };
    Ok(match is_database {
        true => Started::OnNodes(Opening(run.open().boxed())),
        false => Started::Here(vec![run.stream().with_origin(origin_of(plan))]),
    })
}

/// The rows of a query that a statement writes, if several nodes compute them.
///
/// # Errors
/// From planning and starting it.
pub(super) async fn to_write(
    session: &EngineSession,
    state: &SessionState,
    query: &LogicalPlan,
) -> Result<Option<BatchStream>> {
    if !session.distribution().is_active() {
        return Ok(None);
    }
    let plan = rows::physical(state, query).await?;
    let mut state = state.clone();
    let config = state.config().clone().with_batch_size(rows::BATCH_ROWS);
    *state.config_mut() = config;
    let placed = session.distribution().place(&plan, &state, None).await;
    let Placed::OnNodes(nodes) = &placed else { return Ok(None) };
    let layout = Layout { views: true, dictionaries: true, ..Layout::default() };
    let (schema, form) = (plan.schema(), (layout, Parallelism::Default));
    let rows = started(nodes, layout, &schema)?;
    let (session, query) = (session.clone(), query.clone());
    let (ordered, purpose, spread, given, attempts) = (false, Purpose::Write, None, false, 1);
    let run = OnNodes {
        session,
        query,
        form,
        ordered,
        purpose,
        state,
        schema,
        spread,
        placed,
        rows,
        given,
        attempts,
    };
    Ok(Some(run.stream().with_origin(origin_of(&plan))))
}

/// What rows may be views of that this node itself reads for a plan.
fn origin_of(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn Origin>> {
    file_views::origin(FileViews::of(plan.as_ref()))
}

fn started(nodes: &PlanOnNodes, layout: Layout, schema: &SchemaRef) -> Result<BatchStream> {
    let mut streams = execute::streams_in(&nodes.context, &nodes.plan, layout, schema)?;
    match (streams.pop(), streams.is_empty()) {
        (Some(rows), true) => Ok(rows),
        _ => Err(Error::internal("a plan on several nodes has one stream")),
    }
}

/// What the rows of a plan are for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// A client.
    Read,
    /// A table or a file: nothing takes the place of what computes them.
    Write,
}

/// A plan that runs on several nodes.
struct OnNodes {
    session: EngineSession,
    query: LogicalPlan,
    form: (Layout, Parallelism),
    ordered: bool,
    purpose: Purpose,
    state: SessionState,
    schema: SchemaRef,
    /// How its rows may be handed out by other nodes.
    spread: Option<Spread>,
    placed: Placed,
    rows: BatchStream,
    /// Whether rows have gone on, or others may hand them out.
    given: bool,
    attempts: usize,
}

impl OnNodes {
    fn stream(self) -> BatchStream {
        let schema = SchemaRef::clone(&self.schema);
        let rows = stream::unfold(Some(self), |run| async move {
            let mut run = run?;
            match run.next().await {
                Some(Ok(batch)) => Some((Ok(batch), Some(run))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        });
        BatchStream::new(schema, rows.boxed())
    }

    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let error = match self.rows.next().await? {
                Ok(batch) => {
                    self.given |= batch.num_rows() > 0;
                    return Some(Ok(batch));
                }
                Err(error) => heard(error),
            };
            if let Err(error) = self.recover(error).await {
                return Some(Err(error));
            }
        }
    }

    /// Waits until there are rows for the client, wherever it finds them. From then on the plan does not run again.
    async fn open(mut self) -> Result<Opened> {
        loop {
            let Some(endpoints) = self.endpoints() else { return Ok((vec![self.stream()], None)) };
            let error = match self.ready(endpoints.as_ref()).await {
                Ok(()) => {
                    self.given = true;
                    return Ok((vec![self.stream()], Some(endpoints)));
                }
                Err(error) => heard(error),
            };
            endpoints.fail(&error).await;
            self.recover(error).await?;
        }
    }

    fn endpoints(&self) -> Option<Arc<dyn ResultEndpoints>> {
        match &self.placed {
            Placed::OnNodes(nodes) => nodes.endpoints.clone(),
            Placed::Here(_) => None,
        }
    }

    /// Waits for the endpoints; the plan may fail meanwhile.
    async fn ready(&mut self, endpoints: &dyn ResultEndpoints) -> Result<()> {
        let ready = endpoints.ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                ready = &mut ready => return ready,
                rows = self.rows.next() => match rows {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error),
                    None => return Err(Error::internal("a plan has ended before its rows were read")),
                },
            }
        }
    }

    /// Lets the plan run once more after an error, if that may help and nobody has had rows of it.
    ///
    /// # Errors
    /// The error, as the client is to see it.
    async fn recover(&mut self, error: Error) -> Result<()> {
        if !self.session.distribution().lost(&self.placed, &error).await {
            if self.given || error.kind() != ErrorKind::Internal || matches!(self.placed, Placed::Here(_)) {
                return Err(error);
            }
            // Plans may turn out not to fit together where they arrive, which nobody knows before.
            tracing::warn!(error = %error.chain(), "a plan fails on several nodes: it runs on this one");
            return self.here().await;
        }
        if self.given || self.attempts == MOST_ATTEMPTS {
            return Err(was_lost(error));
        }
        self.attempts += 1;
        tracing::warn!(attempt = self.attempts, "a node was lost: the statement is placed again");
        self.again().await
    }

    /// Plans the query again, and places it. What operators of the plan before have learned is that of rows which count for nothing.
    async fn again(&mut self) -> Result<()> {
        let plan = self.planned().await?;
        self.placed = self.session.distribution().place(&plan, &self.state, self.spread.as_ref()).await;
        match &self.placed {
            Placed::OnNodes(nodes) => self.rows = started(nodes, self.form.0, &self.schema)?,
            Placed::Here(_) => self.run_here(&plan)?,
        }
        Ok(())
    }

    /// Runs the query on this node.
    async fn here(&mut self) -> Result<()> {
        let plan = self.planned().await?;
        self.run_here(&plan)
    }

    async fn planned(&mut self) -> Result<Arc<dyn ExecutionPlan>> {
        match self.purpose {
            Purpose::Write => rows::physical(&self.state, &self.query).await,
            Purpose::Read => {
                physical_plan(&self.session, (&self.state, self.form), &self.query, self.ordered).await
            }
        }
    }

    fn run_here(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
        self.placed = Placed::Here(None);
        let streams = execute::streams(plan, &self.state, self.form.0, &self.schema)?;
        self.rows = BatchStream::new(SchemaRef::clone(&self.schema), execute::merged(streams));
        Ok(())
    }
}

fn was_lost(error: Error) -> Error {
    Error::new(ErrorKind::Unavailable, "a node of the cluster was lost while it ran a part of this statement")
        .with_hint("run the statement again; it runs on the other nodes then")
        .with_source(error)
}

/// What EXPLAIN shows, with the stages of the plan where it runs on several nodes, or why it does not. Formats for programs
/// stay as they are.
///
/// # Errors
/// From planning what is explained.
pub(super) async fn explained(
    session: &EngineSession,
    shown: Arc<dyn ExecutionPlan>,
    explain: &Explain,
    state: &SessionState,
) -> Result<Arc<dyn ExecutionPlan>> {
    let for_people = matches!(explain.explain_format, ExplainFormat::Indent | ExplainFormat::Tree);
    let Some(plans) = shown.downcast_ref::<ExplainExec>().filter(|_| for_people) else { return Ok(shown) };
    if !session.distribution().is_active() {
        return Ok(shown);
    }
    let optimised = state.optimize(&explain.plan).map_err(classify)?;
    let physical = state.query_planner().create_physical_plan(&optimised, state).await.map_err(classify)?;
    let placed =
        session.distribution().place(&cooperative::ensure(physical).map_err(classify)?, state, None).await;
    let line = match placed {
        Placed::Here(Some(reason)) => format!("Nodes: this one alone, since {reason}"),
        Placed::Here(None) => "Nodes: this one alone".to_owned(),
        Placed::OnNodes(nodes) => format!("Nodes:\n{}", nodes.shown),
    };
    let mut all = plans.stringified_plans().to_vec();
    all.push(StringifiedPlan::new(PlanType::FinalLogicalPlan, line));
    Ok(Arc::new(ExplainExec::new(shown.schema(), all, plans.verbose())))
}
