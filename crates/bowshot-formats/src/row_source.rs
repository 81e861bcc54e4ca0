//! DataFusion's view of the sequential formats: CSV, JSON, Avro, ORC and Arrow. One source serves them all, because each file
//! brings its own facts: order of columns, delimiter, map. Partition columns, projection and work sharing are DataFusion's.

use crate::batches::Request;
use crate::data_file::{DataFile, Lease};
use crate::file_metadata::FileFacts;
use crate::shared_files::SharedFiles;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bowshot_kernels::nan::rows_with_one_nan;
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Compression, Format};
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
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use object_store::ObjectStore;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Batches that are read before they are asked for, where reading waits for a network.
const AHEAD: usize = 2;

#[derive(Debug, Clone)]
pub struct PlannedFile {
    pub data: Arc<DataFile>,
    pub facts: Arc<FileFacts>,
    pub compression: Compression,
    /// The columns of the table under the names of the file, where some differ in the case of letters.
    pub named: Option<SchemaRef>,
}

#[derive(Debug, Clone)]
pub struct RowSource {
    format: Format,
    table_schema: TableSchema,
    splittable: bool,
    batch_size: usize,
    projection: SplitProjection,
    metrics: ExecutionPlanMetricsSet,
    lease: Arc<Lease>,
    shared: SharedFiles,
}

impl RowSource {
    pub fn new(format: Format, table_schema: TableSchema, splittable: bool, lease: Arc<Lease>) -> Self {
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
    pub fn shared(&self) -> Option<SharedFiles> {
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
        let places = self.projection.file_indices.clone();
        let schema = Arc::new(file_schema.project(&places)?);
        let lease = Arc::clone(&self.lease);
        let (batch_size, shared) = (self.batch_size, self.shared.clone());
        let opener = Arc::new(RowOpener { places, schema, batch_size, shared, _lease: lease });
        ProjectionOpener::try_new(self.projection.clone(), opener, file_schema)
    }

    bowshot_api::getters!(table_schema: &TableSchema);

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

    bowshot_api::getters!(metrics: &ExecutionPlanMetricsSet);

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
    /// Places in the table of the columns that are read.
    places: Vec<usize>,
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
        let named = planned.named.as_ref().map(|named| named.project(&self.places)).transpose()?;
        let schema = Arc::clone(&self.schema);
        let request = Request {
            schema: named.map_or_else(|| Arc::clone(&schema), Arc::new),
            batch_size: self.batch_size,
            range,
            compression: planned.compression,
            shared: self.shared.clone(),
        };
        Ok(async move {
            if planned.data.as_remote().is_some() {
                return Ok(on_a_thread(planned, request, schema));
            }
            Ok(futures::stream::iter(rows(planned, request, schema)?).boxed())
        }
        .boxed())
    }
}

/// The batches of a file in the shape of its table, of which the request has the names that the file has.
fn rows(
    planned: PlannedFile,
    request: Request,
    schema: SchemaRef,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send> {
    let mut batches = planned.facts.open(&planned.data, &request)?;
    Ok(std::iter::from_fn(move || {
        let path = planned.data.path();
        let batch = batches.next_of(path)?;
        let fit = |batch| {
            let fit = request.fit(&batch, &schema).and_then(rows_with_one_nan);
            fit.map_err(|error| Error::corrupt(path, error))
        };
        Some(batch.and_then(fit).map_err(DataFusionError::from))
    }))
}

/// The same from a thread that may wait for a network, a few batches ahead. It ends when nobody takes them any more.
fn on_a_thread(
    planned: PlannedFile,
    request: Request,
    schema: SchemaRef,
) -> BoxStream<'static, Result<RecordBatch>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let reader = tokio::task::spawn_blocking(move || {
        let rows = match rows(planned, request, schema) {
            Ok(rows) => rows,
            Err(error) => return drop(sender.blocking_send(Err(error))),
        };
        for batch in rows {
            if sender.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    let taken = stream::unfold(Some((receiver, reader)), |state| async move {
        let (mut receiver, reader) = state?;
        if let Some(batch) = receiver.recv().await {
            return Some((batch, Some((receiver, reader))));
        }
        // A reader that broke down must not look like one that came to the end.
        let broken = reader.await.err()?;
        Some((Err(DataFusionError::External(Box::new(broken))), None))
    });
    taken.boxed()
}
