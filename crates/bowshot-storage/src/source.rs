//! DataFusion's view of the sequential formats: CSV, JSON, Avro, ORC and Arrow. One source serves them all, because each file
//! brings its own facts: order of columns, delimiter, map. Partition columns, projection and work sharing are DataFusion's.

use crate::Error;
use crate::batches::Request;
use crate::facts::FileFacts;
use crate::file::{DataFile, Lease};
use crate::format::{Compression, Format};
use crate::shared::SharedFiles;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{PhysicalExpr, apply_expression_roots};
use futures::{FutureExt, StreamExt};
use object_store::ObjectStore;
use std::sync::Arc;

/// What travels with each file of a plan.
#[derive(Debug, Clone)]
pub(crate) struct PlannedFile {
    pub(crate) data: Arc<DataFile>,
    pub(crate) facts: Arc<FileFacts>,
    pub(crate) compression: Compression,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct RowSource {
    format: Format,
    table_schema: TableSchema,
    splittable: bool,
    batch_size: usize,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
    /// Keeps the handles of the table's files.
    lease: Arc<Lease>,
    shared: SharedFiles,
}

impl RowSource {
    pub(crate) fn new(
        format: Format,
        table_schema: TableSchema,
        splittable: bool,
        lease: Arc<Lease>,
    ) -> Self {
        Self {
            format,
            lease,
            shared: SharedFiles::default(),
            projection: SplitProjection::unprojected(&table_schema),
            table_schema,
            splittable,
            batch_size: 8192,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The files whose memory rows share, if there can be any.
    pub(crate) fn shared(&self) -> Option<SharedFiles> {
        (self.format == Format::Arrow).then(|| self.shared.clone())
    }
}

impl FileSource for RowSource {
    fn create_file_opener(
        &self,
        _store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let file_schema = self.table_schema.file_schema();
        let schema = Arc::new(file_schema.project(&self.projection.file_indices)?);
        let lease = Arc::clone(&self.lease);
        let (batch_size, shared) = (self.batch_size, self.shared.clone());
        let opener = Arc::new(RowOpener { schema, batch_size, shared, _lease: lease });
        ProjectionOpener::try_new(self.projection.clone(), opener, file_schema)
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size, ..self.clone() })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection.source)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        let projection = SplitProjection::new(self.table_schema.file_schema(), &merged);
        Ok(Some(Arc::new(Self { projection, ..self.clone() })))
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        self.format.name()
    }

    fn supports_repartitioning(&self) -> bool {
        self.splittable
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.projection.source.iter(), f)
    }
}

struct RowOpener {
    schema: SchemaRef,
    batch_size: usize,
    shared: SharedFiles,
    _lease: Arc<Lease>,
}

impl FileOpener for RowOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Some(planned) = file.extension::<PlannedFile>().cloned() else {
            return internal_err!("a file of a plan came without its facts: {}", file.path());
        };
        let range = file.range.as_ref().map(|range| {
            u64::try_from(range.start).unwrap_or(0)..u64::try_from(range.end).unwrap_or(u64::MAX)
        });
        let request = Request {
            schema: Arc::clone(&self.schema),
            batch_size: self.batch_size,
            range,
            compression: planned.compression,
            shared: self.shared.clone(),
        };
        Ok(async move {
            let mut batches = planned.facts.open(&planned.data, &request)?;
            let fitted = std::iter::from_fn(move || {
                let path = planned.data.path();
                let batch = batches.next_of(path)?;
                let fit = |batch| request.fit(&batch).map_err(|error| Error::corrupt(path, error));
                Some(batch.and_then(fit).map_err(DataFusionError::from))
            });
            Ok(futures::stream::iter(fitted).boxed())
        }
        .boxed())
    }
}
