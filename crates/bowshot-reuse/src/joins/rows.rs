//! Cached rows as a table for a scan.

use super::codes;
use crate::cache::{JoinStore, Loaded};
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Origin};
use bowshot_engine::internals::CheckedScan;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
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
    store: Arc<JoinStore>,
}

impl CachedRows {
    pub(super) fn new(rows: Loaded, id: u64, store: &Arc<JoinStore>) -> Self {
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
        Ok(Arc::new(CheckedScan::new("CachedFileExec", scan, Arc::new(rows))))
    }
}

fn slices(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    (0..rows.max(1)).step_by(BATCH_ROWS).map(move |at| batch.slice(at, BATCH_ROWS.min(rows - at)))
}

/// Rows of a cached join that are views of its file.
#[derive(Debug, Clone)]
struct MappedRows {
    rows: Loaded,
    id: u64,
    store: Arc<JoinStore>,
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
