//! Rows that several parts of a plan read: whoever comes first has them computed, on a task of its own, so that no reader waits for
//! another one to be polled. They are kept in the query's memory, or in files where that does not hold them.

use async_trait::async_trait;
use bowshot_optimizer::common_subplans::{self, SharedWork};
use bowshot_optimizer::estimated_rows;
use bowshot_optimizer::fused_groups::{self, Groups, Scanned};
use bowshot_optimizer::fused_totals;
use bowshot_optimizer::materialized_cte::ComputedOnce;
use bowshot_optimizer::materialized_rows::{MaterializedRows, Materializing};
use datafusion::catalog::Session;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, Statistics, internal_datafusion_err, internal_err};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::future::{BoxFuture, Shared};
use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{FutureExt, TryFutureExt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// DataFusion's planner, which plans what is computed once as well.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = session.config_options().extensions.get::<SharedWork>();
        let shares = matches!(wanted, Some(SharedWork { subplans: true, .. }));
        let shared = if shares { common_subplans::share(plan)? } else { None };
        let plan = shared.as_ref().unwrap_or(plan);
        let fused = if shares { fused_totals::fuse(plan)? } else { None };
        let plan = fused.as_ref().unwrap_or(plan);
        let grouped = if shares { grouped_together(plan, session).await? } else { None };
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Readers::default())]);
        planner.create_physical_plan(grouped.as_ref().unwrap_or(plan), session).await
    }
}

/// The plan with groups of the same joins computed together, where the tables are as large as that takes.
async fn grouped_together(plan: &LogicalPlan, session: &dyn Session) -> Result<Option<LogicalPlan>> {
    let mut worthwhile = Vec::new();
    for groups in fused_groups::find(plan)? {
        let (mut alike, mut different) = (0.0, 0.0);
        for Scanned { scan, differs } in groups.scans() {
            let table = source_as_provider(&scan.source)?;
            let rows = table.scan(session, scan.projection.as_ref(), &scan.filters, None).await?;
            let rows = estimated_rows(&rows);
            // Rows of which nothing is known may be many.
            let sum = if differs { &mut different } else { &mut alike };
            *sum += rows.unwrap_or(if differs { f64::INFINITY } else { 0.0 });
        }
        if Groups::is_worthwhile(alike, different) {
            worthwhile.push(groups);
        }
    }
    if worthwhile.is_empty() { Ok(None) } else { fused_groups::fuse(plan.clone(), &worthwhile).map(Some) }
}

/// The rows of each query of one plan.
#[derive(Debug, Default)]
struct Readers(Mutex<HashMap<u64, Arc<Rows>>>);

impl Readers {
    fn rows(&self, once: &ComputedOnce, partitions: usize) -> Arc<Rows> {
        let mut known = self.0.lock();
        let place = known.len() + 1;
        let partitions = if once.in_order() { 1 } else { partitions.max(1) };
        let rows = || Arc::new(Rows { place, partitions, computing: OnceLock::new() });
        Arc::clone(known.entry(once.number()).or_insert_with(rows))
    }
}

#[async_trait]
impl ExtensionPlanner for Readers {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(once), [input]) = (node.as_any().downcast_ref::<ComputedOnce>(), inputs) else {
            return Ok(None);
        };
        let rows = self.rows(once, session.config_options().execution.target_partitions);
        Ok(Some(Arc::new(ComputedOnceExec::new(Arc::clone(input), rows))))
    }
}

type Computing = Shared<BoxFuture<'static, Result<Arc<MaterializedRows>, Arc<DataFusionError>>>>;

/// Rows that are not computed before somebody reads them.
#[derive(Debug)]
struct Rows {
    /// Which ones of the plan they are, from 1.
    place: usize,
    /// Into how many partitions each reader takes them apart.
    partitions: usize,
    computing: OnceLock<Computing>,
}

impl Rows {
    fn computing(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Computing {
        let begin = || {
            let kept = Materializing::new(input.schema(), self.partitions, context, metrics);
            let task = SpawnedTask::spawn(computed(Arc::clone(input), Arc::clone(context), kept));
            async move {
                let ended = task.join().await;
                ended
                    .map_err(|error| internal_datafusion_err!("a query of WITH was not computed: {error}"))?
            }
            .map_err(Arc::new)
            .boxed()
            .shared()
        };
        self.computing.get_or_init(begin).clone()
    }
}

async fn computed(
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    mut kept: Materializing,
) -> Result<Arc<MaterializedRows>> {
    let mut stream = execute_stream(input, context)?;
    while let Some(batch) = stream.next().await {
        kept.add(batch?)?;
    }
    kept.finish().map(Arc::new)
}

/// One reader of such rows.
#[derive(Debug)]
struct ComputedOnceExec {
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<Rows>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ComputedOnceExec {
    fn new(input: Arc<dyn ExecutionPlan>, rows: Arc<Rows>) -> Self {
        // Nothing is said of order and values: what is read may be the rows of another reader's plan.
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(rows.partitions),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { input, rows, metrics: ExecutionPlanMetricsSet::new(), properties: Arc::new(properties) }
    }
}

impl DisplayAs for ComputedOnceExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputedOnceExec: query={}", self.rows.place)
    }
}

impl ExecutionPlan for ComputedOnceExec {
    fn name(&self) -> &'static str {
        "ComputedOnceExec"
    }

    bowshot_api::getters!(properties: &Arc<PlanProperties>);

    fn required_input_distribution(&self) -> Vec<Distribution> {
        match self.rows.partitions {
            1 => vec![Distribution::SinglePartition],
            _ => vec![Distribution::UnspecifiedDistribution],
        }
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    // With the same rows, in a recursion too: they are computed once for all of its steps.
    bowshot_optimizer::one_input!(input, |plan, input| Self::new(input, Arc::clone(&plan.rows)));

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, _partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match (inputs, args.partition()) {
            ([input], None) => Ok(Arc::clone(input)),
            _ => Ok(Arc::new(Statistics::new_unknown(&self.schema()))),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.rows.partitions {
            return internal_err!("what is computed once has no partition {partition}");
        }
        let (input, rows, metrics) = (Arc::clone(&self.input), Arc::clone(&self.rows), self.metrics.clone());
        let batches = async move {
            let computing = rows.computing(&input, &context, &metrics);
            let kept = computing.await.map_err(DataFusionError::Shared)?;
            Ok::<_, DataFusionError>(kept.read(partition))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
