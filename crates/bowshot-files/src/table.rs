//! The table that DataFusion sees: a snapshot, and the plan that scans it.

use crate::entry::TableEntry;
use crate::partition;
use crate::snapshot::Snapshot;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use bowshot_formats::decoded_columns::ColumnScan;
use bowshot_formats::parquet::columns;
use bowshot_formats::parquet::source::{NamedSource, parquet_source};
use bowshot_formats::row_source::RowSource;
use bowshot_formats::snapshot_store::SnapshotStore;
use bowshot_formats::table_version::{TableVersion, Versioned};
use bowshot_lakehouse::LakeTable;
use bowshot_lakehouse::delta::table::DeltaFolderTable;
use bowshot_object_store::Error;
use bowshot_object_store::file_name::{Compression, Format};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue, project_schema};
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use std::sync::Arc;
use std::time::Instant;

/// Files whose handles a scan opens ahead, so that a file replaced in the meantime is still read as it was planned.
const OPENED_AHEAD: usize = 256;

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

    /// The version of the table that this object stands for. A scan reads exactly this version
    /// until [`crate::StorageOptions::pinned`] has passed.
    pub fn version(&self) -> TableVersion {
        self.snapshot.version
    }

    /// The format of the table's files.
    pub fn format(&self) -> Format {
        self.snapshot.format
    }

    async fn snapshot_to_scan(&self) -> Result<Arc<Snapshot>, Error> {
        if self.is_pinned() {
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

impl Versioned for FileTable {
    fn name(&self) -> &str {
        &self.entry.definition.name
    }

    fn settled_version(&self) -> Option<TableVersion> {
        let settled = self.snapshot.files.iter().all(|file| file.data.is_settled());
        settled.then_some(self.snapshot.version)
    }

    fn is_pinned(&self) -> bool {
        self.looked_up.elapsed() < self.entry.pinned()
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
        if let Some(file) = snapshot.files.first() {
            let asked = project_schema(&snapshot.schema, projection)?;
            columns::check(asked.fields().iter().map(AsRef::as_ref), file.data.path())?;
        }
        let kept = kept_files(&snapshot, filters, state)?;
        if kept.is_empty() {
            return Ok(Arc::new(EmptyExec::new(project_schema(&snapshot.schema, projection)?)));
        }
        let lease = snapshot.lease();
        for place in kept.iter().take(OPENED_AHEAD) {
            if let Some(file) = snapshot.files.get(*place) {
                file.data.open_ahead()?;
            }
        }
        let schema = TableSchema::builder(Arc::clone(&snapshot.file_schema))
            .with_table_partition_cols(snapshot.partition_fields.clone())
            .build();
        let source: Arc<dyn FileSource> = match snapshot.format {
            Format::Parquet => {
                let columns = ColumnScan::of_found(self.store.columns());
                Arc::new(NamedSource::new(parquet_source(&self.store, state, schema), lease, columns))
            }
            format => {
                let splittable = limit.is_none() && splittable(&snapshot, &kept, state).await?;
                Arc::new(RowSource::new(format, schema, splittable, lease))
            }
        };
        let groups = snapshot.groups(&kept, state.config().target_partitions())?;
        let (groups, statistics) = groups.as_ref();
        let config = FileScanConfigBuilder::new(self.store.url().clone(), source)
            .with_file_groups(groups.clone())
            .with_statistics(statistics.clone())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit);
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

/// Places of the files that may hold rows that pass the filters.
fn kept_files(snapshot: &Snapshot, filters: &[Expr], state: &dyn Session) -> Result<Vec<usize>> {
    let values: Vec<&[ScalarValue]> =
        snapshot.files.iter().map(|file| file.partition_values.as_slice()).collect();
    let kept = partition::keep(&snapshot.partition_fields, &values, filters, state.execution_props())?;
    let files = snapshot.files.iter().zip(kept).enumerate();
    Ok(files
        .filter(|(_, (file, kept))| *kept && file.facts.rows != Some(0))
        .map(|(place, _)| place)
        .collect())
}

/// Whether the scan may cut the files into ranges. Nobody looks into files that would not be cut: small ones, and so
/// many that each partition has some.
async fn splittable(snapshot: &Arc<Snapshot>, kept: &[usize], state: &dyn Session) -> Result<bool> {
    let options = state.config_options();
    let partitions = state.config().target_partitions();
    let files = || kept.iter().filter_map(|place| snapshot.files.get(*place));
    let total: u64 = files().map(|file| file.data.size()).sum();
    if !options.optimizer.repartition_file_scans
        || partitions < 2
        || kept.len() >= 2 * partitions
        || total < options.optimizer.repartition_file_min_size as u64
        || files().any(|file| file.compression != Compression::None)
    {
        return Ok(false);
    }
    let files: Vec<_> = files().map(|file| (Arc::clone(&file.data), Arc::clone(&file.facts))).collect();
    let answer = tokio::task::spawn_blocking(move || {
        for (data, facts) in &files {
            if !facts.splittable(data)? {
                return Ok(false);
            }
        }
        Ok::<_, Error>(true)
    });
    match answer.await {
        Ok(answer) => Ok(answer?),
        Err(error) => Err(DataFusionError::External(Box::new(error))),
    }
}

/// What a table knows of its version, if it is one of files.
pub fn versioned(provider: &dyn TableProvider) -> Option<&dyn Versioned> {
    let files = provider.downcast_ref::<FileTable>().map(|table| table as &dyn Versioned);
    let delta = || provider.downcast_ref::<DeltaFolderTable>().map(|table| table as &dyn Versioned);
    let lake = || provider.downcast_ref::<LakeTable>().map(|table| table as &dyn Versioned);
    files.or_else(delta).or_else(lake)
}
