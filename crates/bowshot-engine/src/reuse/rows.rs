//! Cached rows as a table that a plan can scan.

use super::codes;
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Origin};
use bowshot_cache::{Loaded, Store};
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
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// Rows of a batch that goes on: the keys and states of a grouping query stay in the processor's cache, and a message to a
/// client has a good size.
const BATCH_ROWS: usize = 16 << 10;

/// See the module. The batches go on in slices, without a copy.
pub(super) struct CachedRows {
    rows: Loaded,
    schema: SchemaRef,
    id: u64,
    store: Arc<Store>,
}

impl CachedRows {
    /// The rows of the join of this number in the store.
    pub(super) fn new(rows: Loaded, id: u64, store: &Arc<Store>) -> Self {
        let schema = codes::shown_schema(&rows.schema);
        Self { rows, schema, id, store: Arc::clone(store) }
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
        if !self.rows.is_mapped() {
            return Ok(scan);
        }
        let rows = MappedRows { rows: self.rows.clone(), id: self.id, store: Arc::clone(&self.store) };
        Ok(Arc::new(MappedScan { scan, rows }))
    }
}

fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    (0..rows.max(1)).step_by(BATCH_ROWS).map(move |at| batch.slice(at, BATCH_ROWS.min(rows - at)))
}

/// Rows of a cached join that are views of its file.
#[derive(Debug, Clone)]
pub(crate) struct MappedRows {
    rows: Loaded,
    id: u64,
    store: Arc<Store>,
}

impl MappedRows {
    /// Those that a plan itself, without its inputs, reads.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        plan.downcast_ref::<MappedScan>().map(|scan| scan.rows.clone())
    }
}

impl Origin for MappedRows {
    /// The cache forgets the join; asked again, the query computes it. As long as nobody has seen a row the session asks.
    fn check(&self) -> Result<(), Error> {
        self.rows.check().map_err(|error| {
            self.store.remove_broken(self.id, &error);
            let told = "a file of the join cache was changed while the query read it";
            Error::new(ErrorKind::Conflict, told).with_hint("run the query again").with_source(error)
        })
    }
}

/// A scan of such rows. Each batch goes on after a look whether the file is still what it was; what operators do with them
/// later, `intact.rs` watches.
#[derive(Debug)]
struct MappedScan {
    scan: Arc<dyn ExecutionPlan>,
    rows: MappedRows,
}

impl DisplayAs for MappedScan {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for MappedScan {
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
            _ => internal_err!("a mapped scan is one scan"),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.rows.clone();
        let batches = self.scan.execute(partition, context)?;
        let batches = batches.map(move |batch| {
            rows.check().map_err(|error| DataFusionError::External(Box::new(error)))?;
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
