//! An optimizer rule that makes plans pause while queries run: see [`Throttle`].

use super::throttle::Throttle;
use bowshot_optimizer::cooperative::multiplies;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Pauses before each batch of the sources of a plan, and of operators that multiply rows. The last optimizer rule.
#[derive(Debug)]
pub(crate) struct ThrottleRule(pub(crate) Arc<Throttle>);

impl PhysicalOptimizerRule for ThrottleRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(if node.children().is_empty() || multiplies(node.as_ref()) {
                Transformed::yes(Arc::new(Throttled { input: node, throttle: Arc::clone(&self.0) }))
            } else {
                Transformed::no(node)
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "throttle"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Pauses before each batch of its input.
#[derive(Debug)]
struct Throttled {
    input: Arc<dyn ExecutionPlan>,
    throttle: Arc<Throttle>,
}

impl DisplayAs for Throttled {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Throttled {
    fn name(&self) -> &str {
        "ThrottledExec"
    }

    bowshot_api::delegate! { input: fn properties(&self) -> &Arc<PlanProperties>; }

    bowshot_optimizer::one_input!(input, |plan, input| Self { input, throttle: Arc::clone(&plan.throttle) });

    bowshot_optimizer::statistics_of_input!(|_plan, input| Arc::clone(input));

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let throttle = Arc::clone(&self.throttle);
        let batches = self.input.execute(partition, context)?.then(move |batch| {
            let throttle = Arc::clone(&throttle);
            async move {
                throttle.pass().await;
                batch
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
