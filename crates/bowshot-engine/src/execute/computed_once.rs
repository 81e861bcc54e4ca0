//! Rows that several parts of a plan read, and that may be others the next time: whoever comes first has them computed, on a task
//! of its own, so that no reader waits for another one to be polled.

use async_trait::async_trait;
use bowshot_optimizer::computed_once::ComputedOnce;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::future::{BoxFuture, Shared};
use futures::stream::{self, StreamExt, TryStreamExt};
use futures::{FutureExt, TryFutureExt};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Readers::default())]);
        planner.create_physical_plan(plan, session).await
    }
}

/// The rows of each query of one plan.
#[derive(Debug, Default)]
struct Readers(Mutex<HashMap<u64, Arc<Rows>>>);

#[async_trait]
impl ExtensionPlanner for Readers {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(once), [input]) = (node.as_any().downcast_ref::<ComputedOnce>(), inputs) else {
            return Ok(None);
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = Arc::clone(known.entry(once.number()).or_default());
        Ok(Some(Arc::new(ComputedOnceExec::new(Arc::clone(input), rows))))
    }
}

type Computing = Shared<BoxFuture<'static, Result<Arc<Computed>, Arc<DataFusionError>>>>;

/// Rows that are not computed before somebody reads them.
#[derive(Debug, Default)]
struct Rows(OnceLock<Computing>);

/// All rows, and what they take of the query's memory.
struct Computed {
    batches: Vec<RecordBatch>,
    _memory: MemoryReservation,
}

impl Rows {
    fn computing(&self, input: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Computing {
        let begin = || {
            let task = SpawnedTask::spawn(computed(Arc::clone(input), Arc::clone(context)));
            async move {
                let ended = task.join().await;
                ended
                    .map_err(|error| internal_datafusion_err!("a query of WITH was not computed: {error}"))?
            }
            .map_err(Arc::new)
            .boxed()
            .shared()
        };
        self.0.get_or_init(begin).clone()
    }
}

async fn computed(input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Arc<Computed>> {
    let memory = MemoryConsumer::new("WITH").register(context.memory_pool());
    let mut stream = execute_stream(input, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        memory.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    Ok(Arc::new(Computed { batches, _memory: memory }))
}

/// One reader of such rows.
#[derive(Debug)]
struct ComputedOnceExec {
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<Rows>,
    properties: Arc<PlanProperties>,
}

impl ComputedOnceExec {
    fn new(input: Arc<dyn ExecutionPlan>, rows: Arc<Rows>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self { input, rows, properties: Arc::new(properties) }
    }
}

impl DisplayAs for ComputedOnceExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ComputedOnceExec")
    }
}

impl ExecutionPlan for ComputedOnceExec {
    fn name(&self) -> &'static str {
        "ComputedOnceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// With the same rows, in a recursion too: they are computed once for all of its steps.
    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, Arc::clone(&self.rows)))),
            _ => internal_err!("what is computed once is one query"),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("what is computed once has one partition");
        }
        let (input, rows) = (Arc::clone(&self.input), Arc::clone(&self.rows));
        let batches = async move {
            let computed = rows.computing(&input, &context).await.map_err(DataFusionError::Shared)?;
            let count = computed.batches.len();
            Ok::<_, DataFusionError>(stream::iter(0..count).map(move |at| {
                computed.batches.get(at).cloned().ok_or_else(|| internal_datafusion_err!("no batch {at}"))
            }))
        };
        let batches = stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
