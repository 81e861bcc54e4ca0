//! A scan of rows that are views of something that may change: a mapped file of a cache. Each batch goes on after a look
//! whether it is still what it was; what operators do with batches later, [`FileViews`](crate::execute::file_views::FileViews) watches.

use bowshot_api::Origin;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// A scan that checks before each batch that the mapped file is unchanged.
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
    bowshot_api::getters!(name: &str);

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    bowshot_optimizer::one_input!(scan, |plan, input| Self::new(plan.name, input, Arc::clone(&plan.origin)));

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
