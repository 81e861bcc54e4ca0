//! The table that DataFusion sees: a snapshot, and the plan that scans it.

use crate::Error;
use crate::entry::TableEntry;
use crate::format::Format;
use crate::named::NamedSource;
use crate::partition;
use crate::snapshot::{Snapshot, SnapshotFile};
use crate::source::{PlannedFile, RowSource};
use crate::store::{self, SnapshotStore};
use crate::version::TableVersion;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue, project_schema};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_datasource::compute_all_files_statistics;
use object_store::ObjectStore;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files whose handles a scan opens ahead, so that a file replaced in the meantime is still read as it was planned.
const OPENED_AHEAD: usize = 256;

/// Plans made longer ago than this look at the files again when they run: a prepared statement must see new files.
const PINNED: Duration = Duration::from_secs(2);

/// A table made of files, pinned to what its files were when it was looked up.
#[derive(Debug)]
pub struct FileTable {
    entry: Arc<TableEntry>,
    snapshot: Arc<Snapshot>,
    looked_up: Instant,
    store: Arc<SnapshotStore>,
}

impl FileTable {
    pub(crate) fn new(entry: Arc<TableEntry>, snapshot: Arc<Snapshot>, store: Arc<SnapshotStore>) -> Self {
        Self { entry, snapshot, looked_up: Instant::now(), store }
    }

    /// The version of the table that this object stands for. A scan within two seconds reads exactly this version.
    pub fn version(&self) -> TableVersion {
        self.snapshot.version
    }

    /// The format of the table's files.
    pub fn format(&self) -> Format {
        self.snapshot.format
    }

    async fn snapshot_to_scan(&self) -> Result<Arc<Snapshot>, Error> {
        if self.looked_up.elapsed() < PINNED {
            return Ok(Arc::clone(&self.snapshot));
        }
        let current = self.entry.current().await?;
        if current.schema == self.snapshot.schema {
            Ok(current)
        } else {
            Err(Error::Reshaped { name: self.entry.definition.name.clone() })
        }
    }
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.snapshot.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let snapshot = self.snapshot_to_scan().await?;
        let values: Vec<&[ScalarValue]> =
            snapshot.files.iter().map(|file| file.partition_values.as_slice()).collect();
        let kept = partition::keep(&snapshot.partition_fields, &values, filters, state.execution_props())?;
        let files = snapshot.files.iter().zip(kept).filter(|(_, kept)| *kept).map(|(file, _)| file);
        // A file without rows costs an open call and nothing else, but a text file without columns has nothing to read.
        let files: Vec<&SnapshotFile> = files.filter(|file| file.facts.rows != Some(0)).collect();
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&snapshot.schema, projection)?)));
        }
        let lease = snapshot.lease();
        for file in files.iter().take(OPENED_AHEAD) {
            file.data.open()?;
        }
        let planned: Vec<PartitionedFile> = files
            .iter()
            .map(|file| {
                let lease = Arc::clone(&lease);
                planned_file(file, lease)
            })
            .collect();
        let schema = TableSchema::builder(Arc::clone(&snapshot.file_schema))
            .with_table_partition_cols(snapshot.partition_fields.clone())
            .build();
        let source = match snapshot.format {
            Format::Parquet => self.parquet_source(state, schema),
            format => {
                let splittable = splittable(&snapshot, &files, state).await?;
                Arc::new(RowSource::new(format, schema, splittable))
            }
        };
        let partitions = state.config().target_partitions();
        let groups = FileGroup::new(planned).split_files(partitions);
        let table_schema = Arc::clone(&snapshot.schema);
        let (groups, statistics) = compute_all_files_statistics(groups, table_schema, true, false)?;
        let compressed = files.iter().any(|file| file.compression != crate::format::Compression::None);
        let mut config = FileScanConfigBuilder::new(self.store.url().clone(), source)
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit);
        if compressed {
            // Only its being compressed matters here: such files are not cut. Each file knows its own compression.
            config = config.with_file_compression_type(
                datafusion::datasource::file_format::file_compression_type::FileCompressionType::GZIP,
            );
        }
        Ok(DataSourceExec::from_data_source(config.build()))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let decided = |filter: &&Expr| partition::decides(&self.snapshot.partition_fields, filter);
        Ok(filters
            .iter()
            .map(|filter| {
                if decided(filter) {
                    TableProviderFilterPushDown::Exact
                } else {
                    TableProviderFilterPushDown::Inexact
                }
            })
            .collect())
    }
}

impl FileTable {
    fn parquet_source(&self, state: &dyn Session, schema: TableSchema) -> Arc<dyn FileSource> {
        let mut options = TableParquetOptions::new();
        options.global = state.config_options().execution.parquet.clone();
        options.global.schema_force_view_types = false;
        let hint = options.global.metadata_size_hint;
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let store = Arc::clone(&self.store) as Arc<dyn ObjectStore>;
        let mut source = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::new(CachedParquetFileReaderFactory::new(store, cache)));
        if let Some(hint) = hint {
            source = source.with_metadata_size_hint(hint);
        }
        Arc::new(NamedSource(Arc::new(source)))
    }
}

fn planned_file(file: &SnapshotFile, lease: Arc<crate::file::Lease>) -> PartitionedFile {
    let planned = PlannedFile {
        data: Arc::clone(&file.data),
        facts: Arc::clone(&file.facts),
        compression: file.compression,
        _lease: lease,
    };
    let mut partitioned = PartitionedFile::new_from_meta(store::object_meta(&file.data))
        .with_partition_values(file.partition_values.clone())
        .with_extension(planned);
    partitioned.statistics = Some(Arc::clone(&file.statistics));
    if let crate::facts::Detail::Parquet { views: true, .. } = file.facts.detail {
        // The schema written into the file asks for views; the reader is told to make plain arrays at once.
        partitioned = partitioned.with_arrow_schema(Arc::clone(&file.facts.columns));
    }
    partitioned
}

/// Whether the scan may cut the files into ranges. Small files are not cut anyway, so nobody looks into them.
async fn splittable(snapshot: &Arc<Snapshot>, files: &[&SnapshotFile], state: &dyn Session) -> Result<bool> {
    let options = state.config_options();
    let smallest = options.optimizer.repartition_file_min_size as u64;
    let total: u64 = files.iter().map(|file| file.data.size()).sum();
    if !options.optimizer.repartition_file_scans
        || state.config().target_partitions() < 2
        || total < smallest
        || files.iter().any(|file| file.compression != crate::format::Compression::None)
    {
        return Ok(false);
    }
    let snapshot = Arc::clone(snapshot);
    let answer = tokio::task::spawn_blocking(move || {
        for file in &snapshot.files {
            if !file.facts.splittable(&file.data)? {
                return Ok(false);
            }
        }
        Ok::<_, Error>(true)
    });
    match answer.await {
        Ok(answer) => Ok(answer?),
        Err(error) => Err(datafusion::error::DataFusionError::External(Box::new(error))),
    }
}
