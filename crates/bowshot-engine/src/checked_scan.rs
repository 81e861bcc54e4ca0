//! A scan of rows that are views of something that may change: a mapped file of a cache. Each batch goes on after a look
//! whether it is still what it was; what operators do with batches later, [`Views`](crate::intact::Views) watches.

use bowshot_api::Origin;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct CheckedScan {
    name: &'static str,
    scan: Arc<dyn ExecutionPlan>,
    origin: Arc<dyn Origin>,
}

impl CheckedScan {
    /// A scan whose rows are views of `origin`, shown by this name.
    pub fn new(name: &'static str, scan: Arc<dyn ExecutionPlan>, origin: Arc<dyn Origin>) -> Self {
        Self { name, scan, origin }
    }

    /// What the rows are views of that a plan itself, without its inputs, reads.
    pub(crate) fn origin_of(plan: &dyn ExecutionPlan) -> Option<Arc<dyn Origin>> {
        plan.downcast_ref::<Self>().map(|scan| Arc::clone(&scan.origin))
    }
}

impl DisplayAs for CheckedScan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExecutionPlan for CheckedScan {
    fn name(&self) -> &str {
        self.name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.scan]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(scan), true) => Ok(Arc::new(Self::new(self.name, scan, Arc::clone(&self.origin)))),
            _ => internal_err!("a checked scan is one scan"),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let origin = Arc::clone(&self.origin);
        let batches = self.scan.execute(partition, context)?;
        let batches = batches.map(move |batch| {
            origin.check().map_err(|error| DataFusionError::External(Box::new(error)))?;
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
