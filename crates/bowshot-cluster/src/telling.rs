//! Parts as pieces of work: with the limits of a statement, and with errors that say all. On their way between nodes, errors
//! that DataFusion does not know become texts.

use bowshot_engine::distribution::told;
use bowshot_engine::Engine;
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

/// The work of one part: what it takes of memory counts, and steps within it end when nobody wants its rows any more.
pub(crate) struct OfPart(Arc<QueryTask>);

impl OfPart {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self(engine.job("a part of another node's plan", None))
    }
}

impl Drop for OfPart {
    fn drop(&mut self) {
        self.0.stop(Stop::Over);
    }
}

/// The plan of a task that tells its errors. How rows are handed out stays on top, and is put there by whoever asks for them.
pub(crate) fn telling(event: WorkerPlanRewriteEvent<'_>) -> Result<WorkerPlanRewriteEventResponse> {
    let plan = event.plan;
    let hands_out = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>();
    let plan = match plan.children().as_slice() {
        [child] if hands_out => {
            let child = Telling::around(Arc::clone(child));
            let same = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(vec![child], same)?
        }
        _ => Telling::around(plan),
    };
    Ok(WorkerPlanRewriteEventResponse::new(plan))
}

/// An operator that is another one in everything but its errors.
#[derive(Debug)]
struct Telling(Arc<dyn ExecutionPlan>);

impl Telling {
    fn around(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        // These are looked for by what they are.
        let known = plan.is_network_boundary() || plan.name() == "ChildrenIsolatorUnionExec";
        if known { plan } else { Arc::new(Self(plan)) }
    }
}

impl DisplayAs for Telling {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(format, f)
    }
}

impl ExecutionPlan for Telling {
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
        let part = context.session_config().get_extension::<OfPart>();
        let mut rows = self.0.execute(partition, context).map_err(told)?;
        let schema = rows.schema();
        let rows = stream::poll_fn(move |cx| {
            let Some(OfPart(job)) = part.as_deref() else { return rows.poll_next_unpin(cx) };
            if let Err(error) = job.check() {
                return Poll::Ready(Some(Err(DataFusionError::External(Box::new(error)))));
            }
            pin!(job.inside(rows.next())).poll(cx)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.map_err(told))))
    }
}
