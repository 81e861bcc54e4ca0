//! Scans of Parquet files that another node can make: taken apart into what DataFusion can write down and the files with
//! what tells their content, and put together again over the same files as that node sees them.
//!
//! Both nodes reach the files by the same path. A file that has another size or another time of its last change there is
//! not the one that was planned with, and fails the query like a file that was overwritten.

use arrow::datatypes::SchemaRef;
use bowshot_formats::data_file::{DataFile, HandlePool, Lease};
use bowshot_formats::decoded_columns::{ColumnCache, ColumnScan};
use bowshot_formats::file_metadata::{FactSources, FileFacts};
use bowshot_formats::parquet;
use bowshot_formats::parquet::footers::ReaderFactory;
use bowshot_formats::parquet::source::NamedSource;
use bowshot_formats::row_source::PlannedFile;
use bowshot_formats::snapshot_store::{self, SnapshotStore};
use bowshot_object_store::file_name::Compression;
use bowshot_object_store::{Error, FileIdentity};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, ParquetRowSelection};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use object_store::ObjectStore;
use object_store::path::Path as Location;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Files of other nodes' scans whose footers are remembered.
const REMEMBERED: usize = 16 << 10;

/// A scan that has been taken apart.
#[derive(Debug)]
pub struct PortableScan {
    /// DataFusion's own scan of Parquet files, without the condition. Its files are named by their places in `files`.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What rows have to fulfil, in terms of [`table_schema`].
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    pub files: Vec<PortableFile>,
    /// Whether the files are read in their order.
    pub in_order: bool,
}

/// A file and what tells its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortableFile {
    path: PathBuf,
    size: u64,
    modified: (i64, u32),
}

/// The scan taken apart; `None` for plans that are no scans of Parquet files.
///
/// # Errors
/// When a path cannot be written down, and DataFusion's own, which do not happen.
pub fn taken_apart(plan: &dyn ExecutionPlan) -> Result<Option<PortableScan>> {
    let Some((config, parquet)) = parquet_scan(plan) else { return Ok(None) };
    // DataFusion writes limits in 32 bits.
    let limited = config.limit.is_none_or(|limit| u32::try_from(limit).is_ok());
    if !limited || !parquet.table_schema().virtual_columns().is_empty() {
        return Ok(None);
    }
    let in_order = config.preserve_order;
    let (mut files, mut places) = (Vec::new(), HashMap::new());
    let mut groups = Vec::with_capacity(config.file_groups.len());
    for group in &config.file_groups {
        let mut named = Vec::with_capacity(group.len());
        for file in group.iter() {
            let Some(planned) = file.extension::<PlannedFile>() else { return Ok(None) };
            // Which rows of a file are left is known here alone.
            if file.extension::<ParquetRowSelection>().is_some() {
                return Ok(None);
            }
            let place = *places.entry(planned.data.number()).or_insert_with(|| {
                files.push(PortableFile::of(&planned.data));
                files.len() - 1
            });
            named.push(bare_file(file, place));
        }
        groups.push(FileGroup::new(named));
    }
    let mut bare = Arc::new(
        ParquetSource::new(parquet.table_schema().clone())
            .with_table_parquet_options(parquet.table_parquet_options().clone()),
    ) as Arc<dyn FileSource>;
    if let Some(projection) = parquet.projection() {
        bare = bare
            .try_pushdown_projection(projection)?
            .ok_or_else(|| internal_datafusion_err!("a scan of Parquet files takes any projection"))?;
    }
    let mut config =
        FileScanConfigBuilder::from(config.clone()).with_source(bare).with_file_groups(groups).build();
    config.object_store_url = ObjectStoreUrl::local_filesystem();
    Ok(Some(PortableScan {
        plan: DataSourceExec::from_data_source(config),
        condition: parquet.filter(),
        files,
        in_order,
    }))
}

/// The columns of the table that a scan which has been taken apart reads.
pub fn table_schema(plan: &dyn ExecutionPlan) -> Result<SchemaRef> {
    match file_scan(plan) {
        Some(config) => Ok(Arc::clone(config.file_source().table_schema().table_schema())),
        None => internal_err!("a scan that has been taken apart is a scan of files"),
    }
}

/// Whether a plan is a scan that can be taken apart.
pub fn is_portable(plan: &dyn ExecutionPlan) -> bool {
    parquet_scan(plan).is_some_and(|(_, parquet)| parquet.table_schema().virtual_columns().is_empty())
}

/// Bytes of the files, or of the parts of them, that a scan of any format reads; `None` for other plans.
pub fn scanned_bytes(plan: &dyn ExecutionPlan) -> Option<u64> {
    let config = file_scan(plan)?;
    let files = config.file_groups.iter().flat_map(|group| group.iter());
    Some(files.map(PartitionedFile::effective_size).sum())
}

fn file_scan(plan: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

/// Files of object stores are read here: another node may have other credentials for them, or none. So are files that have other
/// names for columns than their table, which is known here alone.
fn parquet_scan(plan: &dyn ExecutionPlan) -> Option<(&FileScanConfig, &ParquetSource)> {
    let config = file_scan(plan)?;
    let stays = |file: &PartitionedFile| {
        let planned = file.extension::<PlannedFile>();
        planned.is_some_and(|planned| planned.data.as_remote().is_some() || planned.named.is_some())
    };
    if config.file_groups.iter().flat_map(FileGroup::iter).any(stays) {
        return None;
    }
    let named = config.file_source().downcast_ref::<NamedSource>()?;
    Some((config, named.inner().downcast_ref::<ParquetSource>()?))
}

/// The file without what only this process knows.
fn bare_file(file: &PartitionedFile, place: usize) -> PartitionedFile {
    let mut meta = file.object_meta.clone();
    meta.location = Location::from(place.to_string());
    let mut bare = PartitionedFile::new_from_meta(meta).with_partition_values(file.partition_values.clone());
    bare.range = file.range.clone();
    bare.statistics = file.statistics.clone();
    bare
}

impl PortableFile {
    fn of(data: &DataFile) -> Self {
        Self { path: data.path().to_path_buf(), size: data.size(), modified: data.identity().modified() }
    }
}

/// A file that is open here, and what is known of it.
type Opened = (Arc<DataFile>, Arc<FileFacts>);

/// The files of other nodes' scans, as this node reads them.
#[derive(Debug)]
pub struct PortableFiles {
    sources: FactSources,
    pool: Arc<HandlePool>,
    known: Mutex<HashMap<PortableFile, Opened>>,
}

impl PortableFiles {
    /// Files that are read through `runtime`, of which so many are open at once.
    pub fn new(runtime: &RuntimeEnv, columns: &Arc<ColumnCache>, max_open_files: usize) -> Result<Self> {
        let sources = FactSources {
            sample_rows: 1,
            surprises: Arc::default(),
            last: Mutex::default(),
            store: SnapshotStore::register(runtime, columns)?,
            metadata_cache: runtime.cache_manager.get_file_metadata_cache(),
        };
        Ok(Self { sources, pool: HandlePool::new(max_open_files), known: Mutex::default() })
    }

    /// The scan over the files as they are here.
    ///
    /// # Errors
    /// When a file is not there or is another one.
    pub fn put_together(&self, scan: PortableScan) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(config) = file_scan(scan.plan.as_ref()) else {
            return internal_err!("a scan that has been taken apart is a scan of files");
        };
        let Some(parquet) = config.file_source().downcast_ref::<ParquetSource>() else {
            return internal_err!("a scan that has been taken apart is one of Parquet files");
        };
        let mut opened = Vec::with_capacity(scan.files.len());
        for file in &scan.files {
            opened.push(self.open(file)?);
        }
        let mut groups = Vec::with_capacity(config.file_groups.len());
        for group in &config.file_groups {
            let files = group.iter().map(|file| whole_file(file, &opened));
            groups.push(FileGroup::new(files.collect::<Result<_>>()?));
        }
        let store = Arc::clone(&self.sources.store);
        let cache = Arc::clone(&self.sources.metadata_cache);
        let footers = CachedParquetFileReaderFactory::new(Arc::clone(&store) as Arc<dyn ObjectStore>, cache);
        let mut parquet =
            parquet.clone().with_parquet_file_reader_factory(Arc::new(ReaderFactory(Arc::new(footers))));
        if let Some(condition) = scan.condition {
            parquet = parquet.with_predicate(condition);
        }
        let lease = Lease::new(opened.into_iter().map(|(data, _)| data).collect(), Vec::new());
        let columns = ColumnScan::of_found(store.columns());
        let source = NamedSource::new(Arc::new(parquet), Arc::new(lease), columns);
        let mut config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .with_file_groups(groups)
            .with_preserve_order(scan.in_order)
            .build();
        config.object_store_url = store.url().clone();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn open(&self, file: &PortableFile) -> Result<Opened, Error> {
        let metadata = std::fs::metadata(&file.path).map_err(|error| Error::of_known(&file.path, error))?;
        if let Some((data, facts)) = self.known.lock().get(file)
            && data.identity().has_content_of(&metadata)
        {
            return Ok((Arc::clone(data), Arc::clone(facts)));
        }
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        if identity.size != file.size || identity.modified() != file.modified {
            return Err(Error::Changed { path: file.path.clone() });
        }
        let data = DataFile::new(file.path.clone(), identity, Arc::clone(&self.pool));
        let facts = Arc::new(parquet::facts(&data, &self.sources)?);
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(file.clone(), (Arc::clone(&data), Arc::clone(&facts)));
        drop(known);
        self.sources.store.sweep();
        Ok((data, facts))
    }
}

fn whole_file(file: &PartitionedFile, opened: &[Opened]) -> Result<PartitionedFile> {
    let place = file.object_meta.location.as_ref().parse::<usize>().ok();
    let Some((data, facts)) = place.and_then(|place| opened.get(place)) else {
        return internal_err!("a scan names a file that did not come with it: {}", file.path());
    };
    let planned = PlannedFile {
        data: Arc::clone(data),
        facts: Arc::clone(facts),
        compression: Compression::None,
        named: None,
    };
    let mut whole = PartitionedFile::new_from_meta(snapshot_store::object_meta(data))
        .with_partition_values(file.partition_values.clone())
        .with_extension(planned);
    whole.range = file.range.clone();
    whole.statistics = file.statistics.clone();
    if let Some(told) = facts.told_schema() {
        whole = whole.with_arrow_schema(told);
    }
    Ok(whole)
}
