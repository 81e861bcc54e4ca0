//! Rows that several plans read one after the other, as a table: they are computed once, and kept as [`MaterializedRows`].

use bowshot_optimizer::materialized_rows::{MaterializedRows, Materializing};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use std::sync::Arc;

/// One of the parts that readers take apart.
struct Part {
    schema: SchemaRef,
    rows: Arc<MaterializedRows>,
    partition: usize,
}

bowshot_api::debug_fields!(Part { schema, partition });

/// The table of some rows, which are computed now.
///
/// # Errors
/// Those of the rows, and where neither memory nor files hold them.
pub(crate) async fn materialized_table(
    mut rows: SendableRecordBatchStream,
    schema: SchemaRef,
    context: &TaskContext,
) -> Result<Arc<dyn TableProvider>> {
    let partitions = context.session_config().target_partitions().max(1);
    let metrics = ExecutionPlanMetricsSet::new();
    let mut kept = Materializing::new(Arc::clone(&schema), partitions, context, &metrics);
    while let Some(batch) = rows.next().await {
        let columns = batch?.columns().to_vec();
        kept.add(RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    let rows = Arc::new(kept.finish()?);
    let part = |partition| -> Arc<dyn PartitionStream> {
        Arc::new(Part { schema: Arc::clone(&schema), rows: Arc::clone(&rows), partition })
    };
    let parts = (0..partitions).map(part).collect();
    Ok(Arc::new(StreamingTable::try_new(Arc::clone(&schema), parts)?))
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        Arc::clone(&self.rows).read(self.partition)
    }
}
