//! Tasks of other nodes' plans run with the limits of a statement, and encode errors that DataFusion does not know as texts.

use bowshot_engine::Engine;
use bowshot_engine::distribution::told;
use bowshot_query_task::{QueryTask, Stop};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use datafusion_distributed::{
    BroadcastExec, NetworkBoundaryExt, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// The job of one task: counts its memory, and ends its steps when its rows are not wanted any more.
pub(crate) struct TaskJob(Arc<QueryTask>);

impl TaskJob {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self(engine.job("a part of another node's plan", None))
    }
}

impl Drop for TaskJob {
    fn drop(&mut self) {
        self.0.stop(Stop::Over);
    }
}

/// Wraps the plan of a task. A repartition or broadcast for the consumer stays on top.
pub(crate) fn wrap_task(event: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
    let plan = event.plan;
    let hands_out = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>();
    let plan = match plan.children().as_slice() {
        [child] if hands_out => {
            let child = ErrorPropagation::around(Arc::clone(child));
            let same = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(vec![child], same)?
        }
        _ => ErrorPropagation::around(plan),
    };
    Ok(WorkerPlanRewriteEventResponse::new(plan))
}

/// An operator that changes only the errors of another one.
#[derive(Debug)]
struct ErrorPropagation(Arc<dyn ExecutionPlan>);

impl ErrorPropagation {
    fn around(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        // datafusion-distributed finds these by their type.
        let known = plan.is_network_boundary() || plan.name() == "ChildrenIsolatorUnionExec";
        if known { plan } else { Arc::new(Self(plan)) }
    }
}

impl DisplayAs for ErrorPropagation {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(format, f)
    }
}

impl ExecutionPlan for ErrorPropagation {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, recompute)?)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(f)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let part = context.session_config().get_extension::<TaskJob>();
        let mut rows = self.0.execute(partition, context).map_err(told)?;
        let schema = rows.schema();
        let rows = stream::poll_fn(move |cx| {
            let Some(TaskJob(job)) = part.as_deref() else { return rows.poll_next_unpin(cx) };
            if let Err(error) = job.check() {
                return Poll::Ready(Some(Err(DataFusionError::External(Box::new(error)))));
            }
            pin!(job.inside(rows.next())).poll(cx)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.map_err(told))))
    }
}
