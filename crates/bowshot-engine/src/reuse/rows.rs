//! Cached rows as a table that a plan can scan.

use super::codes;
use async_trait::async_trait;
use bowshot_cache::Loaded;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// Rows of a batch that goes on: the keys and states of a grouping query stay in the processor's cache, and a message to a
/// client has a good size.
const BATCH_ROWS: usize = 16 << 10;

/// See the module. The batches go on in slices, without a copy.
pub(super) struct CachedRows {
    rows: Loaded,
    schema: SchemaRef,
}

impl CachedRows {
    pub(super) fn new(rows: Loaded) -> Self {
        let schema = codes::shown_schema(&rows.schema);
        Self { rows, schema }
    }

    /// The rows with the texts that their codes stand for.
    pub(super) fn loaded(&self) -> &Loaded {
        &self.rows
    }
}

impl fmt::Debug for CachedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedRows").field("batches", &self.rows.batches.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for CachedRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batches = self.rows.batches.iter().map(|batch| codes::shown(batch, &self.schema));
        let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
        let batches: Vec<RecordBatch> = batches.iter().flat_map(slices).collect();
        let partitions = state.config().target_partitions().clamp(1, batches.len().max(1));
        let share = batches.len().div_ceil(partitions).max(1);
        let mut parts: Vec<Vec<RecordBatch>> = batches.chunks(share).map(<[_]>::to_vec).collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        let source = MemorySourceConfig::try_new(&parts, self.schema(), projection.cloned())?;
        let scan = DataSourceExec::from_data_source(source.with_limit(limit));
        Ok(if self.rows.is_mapped() { Arc::new(Checked { scan, rows: self.rows.clone() }) } else { scan })
    }
}

fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    (0..rows.max(1)).step_by(BATCH_ROWS).map(move |at| batch.slice(at, BATCH_ROWS.min(rows - at)))
}

/// A scan of rows that are views of a file. Each batch goes on after a look whether the file is still what it was, and so
/// does the end: lost pages read as zeros.
#[derive(Debug)]
struct Checked {
    scan: Arc<dyn ExecutionPlan>,
    rows: Loaded,
}

impl DisplayAs for Checked {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Checked {
    fn name(&self) -> &str {
        "CachedFileExec"
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
            (Some(scan), true) => Ok(Arc::new(Self { scan, rows: self.rows.clone() })),
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
        let (rows, end) = (self.rows.clone(), self.rows.clone());
        let checked =
            |rows: &Loaded| rows.check().map_err(|error| DataFusionError::External(Box::new(error)));
        let batches = self.scan.execute(partition, context)?;
        let batches = batches.map(move |batch| checked(&rows).and(batch));
        let end = stream::once(async move { checked(&end) }).filter_map(|end| async { end.err().map(Err) });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.chain(end))))
    }
}
