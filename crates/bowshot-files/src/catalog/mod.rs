//! The catalog: which sources give which tables, looked at again while the server runs.

mod lakes;

use crate::ad_hoc_files::{FilePlace, NamedFiles};
use crate::discovery::{self, Source};
use crate::entry::{Definition, TableEntry, Timing};
use crate::exchange::{FileRows, Shape, Wanted};
use crate::listing::ListingLimits;
use crate::table::FileTable;
use crate::{SourceSpec, StorageOptions};
use async_trait::async_trait;
use bowshot_formats::data_file::HandlePool;
use bowshot_formats::decoded_columns::ColumnCache;
use bowshot_formats::excel::WorkbookCache;
use bowshot_formats::file_metadata::FactSources;
use bowshot_formats::inspection::Workshop;
use bowshot_formats::listed_file::ListedFile;
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::rejects::Reject;
use bowshot_formats::snapshot_file::SnapshotFile;
use bowshot_formats::snapshot_store::SnapshotStore;
use bowshot_formats::table_summary::TableSummary;
use bowshot_lakehouse::{DuckLake, delta};
use bowshot_object_store::secrets::{InForce, same};
use bowshot_object_store::{Error, Remotes, is_remote, pause};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::TableType;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// All tables of the configured sources.
#[derive(Debug)]
pub struct FileCatalog {
    sources: Vec<Source>,
    options: StorageOptions,
    limits: ListingLimits,
    workshop: Arc<Workshop>,
    books: WorkbookCache,
    tables: Mutex<Tables>,
    places: Arc<Vec<FilePlace>>,
    /// Tables of files that statements have named, from the one that was named first.
    named: Mutex<VecDeque<Arc<TableEntry>>>,
    /// Lakes, which others keep open.
    lakes: Mutex<Vec<Weak<DuckLake>>>,
}

/// Tables of named files that are kept: their files are looked at once for several statements.
const MAX_NAMED: usize = 256;

/// How long is waited for a store to say which tables it has.
const STORE_PATIENCE: Duration = Duration::from_secs(3);

type Entries = Arc<BTreeMap<String, Arc<TableEntry>>>;

#[derive(Debug)]
struct Tables {
    entries: Entries,
    next_check: Instant,
    /// The secrets by which the stores were listed.
    in_force: Option<Arc<InForce>>,
}

impl FileCatalog {
    /// Finds the tables of the sources. Fails for a path that does not exist, holds only files that are no data, or whose
    /// name another source has; a broken file is the problem of its own table only.
    ///
    /// The catalog registers an object store of its own with `runtime` and uses its caches, so `runtime` must be the
    /// one that queries run with. Decoded columns of Parquet files are kept in `columns`.
    pub fn open(
        sources: Vec<SourceSpec>,
        options: StorageOptions,
        runtime: &RuntimeEnv,
        columns: &Arc<ColumnCache>,
    ) -> Result<Arc<Self>, bowshot_api::Error> {
        let limits = ListingLimits { max_files: options.max_files_per_table, max_depth: options.max_depth };
        let store = SnapshotStore::register(runtime, columns).map_err(|error| {
            bowshot_api::Error::internal("the runtime refuses the store of the files").with_source(error)
        })?;
        let metadata_cache = runtime.cache_manager.get_file_metadata_cache();
        let workshop = Arc::new(Workshop {
            sources: FactSources {
                sample_rows: options.sample_rows.max(1),
                surprises: Arc::default(),
                last: Mutex::default(),
                store,
                metadata_cache,
            },
            pool: HandlePool::new(options.max_open_files),
            threads: options.scan_threads,
            delta: delta::session(runtime),
        });
        let books = WorkbookCache::default();
        let in_force = options.remotes.as_ref().and_then(|remotes| remotes.in_force());
        let sources = with_stores(sources, options.remotes.as_deref())?;
        expect_all(&sources);
        discovery::check(&sources, limits, &books)?;
        let tables = Tables { entries: Entries::default(), next_check: Instant::now(), in_force };
        let tables = Mutex::new(tables);
        let places = Arc::new(places(&sources, &options));
        let named = Mutex::default();
        let lakes = Mutex::default();
        let catalog =
            Arc::new(Self { sources, options, limits, workshop, books, tables, places, named, lakes });
        catalog.entries();
        Ok(catalog)
    }

    /// Reads headers and footers of all tables, and says what is there and what is wrong. Blocks; to be called on a
    /// thread of a runtime that may.
    pub fn describe(&self) -> Vec<TableSummary> {
        let mut summaries = Vec::new();
        self.describe_each(|summary| {
            summaries.push(summary);
            ControlFlow::Continue(())
        });
        summaries
    }

    /// The same, told table by table while they are looked at: there may be many, or large ones.
    pub fn describe_each(&self, mut told: impl FnMut(TableSummary) -> ControlFlow<()>) {
        for entry in self.entries().values() {
            if told(summary(entry)).is_break() {
                return;
            }
        }
        for summary in self.lakes().iter().flat_map(|lake| lake.describe()) {
            if told(summary).is_break() {
                return;
            }
        }
    }

    /// Names and paths of all tables, without a look into their files.
    pub fn list(&self) -> Vec<(String, PathBuf)> {
        let of_one = |entry: &Arc<TableEntry>| (entry.definition.name.clone(), entry.definition.path.clone());
        let mut names: Vec<_> = self.entries().values().map(of_one).collect();
        names.extend(self.lakes().iter().flat_map(|lake| lake.names()));
        names
    }

    /// Files in the served folders that are no table because their endings tell no format; the first hundred of them.
    pub fn left_out(&self) -> Vec<PathBuf> {
        discovery::left_out(&self.sources, self.limits)
    }

    /// The same of the files that statements have named lately.
    pub fn describe_named(&self) -> Vec<TableSummary> {
        let named = self.named.lock().clone();
        named.iter().map(|entry| summary(entry)).collect()
    }

    /// The tables as DataFusion's schema, read-only. Errors of tables are [`bowshot_api::Error`]s inside
    /// `DataFusionError::External`; [`bowshot_object_store::find_error`] finds them.
    pub fn schema_provider(self: &Arc<Self>) -> Arc<dyn SchemaProvider> {
        Arc::new(FileSchema(Arc::clone(self)))
    }

    /// The table of files that a statement names, below the places that the operator has opened. `name` stands for the
    /// paths and the options together: it is the table's name.
    ///
    /// # Errors
    /// `Invalid` for what is no path, `NotFound` for what is not there, and what the files say.
    pub async fn named(
        self: &Arc<Self>,
        name: &str,
        paths: Vec<String>,
        options: ReadOptions,
    ) -> Result<Arc<dyn TableProvider>, bowshot_api::Error> {
        let entry = self.named_entry(name, paths, options)?;
        let snapshot = entry.current().await?;
        let store = Arc::clone(&self.workshop.sources.store);
        Ok(Arc::new(FileTable::new(entry, snapshot, store)))
    }

    /// What a path or pattern means in each of the places that the operator has opened, in their order.
    pub fn whole_paths(&self, path: &str) -> Vec<String> {
        self.places.iter().filter_map(|place| place.whole(path)).collect()
    }

    /// The files of a path or pattern as they are now; none where nothing is there yet. Blocks while it looks.
    ///
    /// # Errors
    /// As [`FileCatalog::named`], but for what is not there.
    pub fn find_files(
        &self,
        pattern: &str,
        options: &ReadOptions,
    ) -> Result<Vec<ListedFile>, bowshot_api::Error> {
        let (places, remotes) = (Arc::clone(&self.places), self.options.remotes.as_deref());
        let files = NamedFiles::new(places, remotes, vec![pattern.to_owned()])?;
        match files.list(self.limits, options) {
            Err(Error::NotServed { .. } | Error::Missing { .. } | Error::Empty { .. }) => Ok(Vec::new()),
            found => Ok(found?),
        }
    }

    /// The rows of one of these files, as COPY reads them. Blocks.
    ///
    /// # Errors
    /// What the file says.
    pub fn copied_rows(
        &self,
        file: &ListedFile,
        (shape, options): (Shape, &ReadOptions),
        wanted: &Wanted,
    ) -> Result<FileRows, bowshot_api::Error> {
        FileRows::of(file.data(&self.workshop.pool), shape, options, wanted)
    }

    fn named_entry(
        &self,
        name: &str,
        paths: Vec<String>,
        options: ReadOptions,
    ) -> Result<Arc<TableEntry>, Error> {
        let mut named = self.named.lock();
        if let Some(known) = named.iter().find(|entry| entry.definition.name == name) {
            return Ok(Arc::clone(known));
        }
        let path = PathBuf::from(paths.join(", "));
        let files = NamedFiles::new(Arc::clone(&self.places), self.options.remotes.as_deref(), paths)?;
        let named_files = Some(Arc::new(files));
        let definition = Definition {
            name: name.to_owned(),
            path,
            parts: None,
            named: named_files,
            remote: None,
            options,
            problem: None,
        };
        let entry = Arc::new(self.new_entry(definition));
        if named.len() >= MAX_NAMED {
            named.pop_front();
        }
        named.push_back(Arc::clone(&entry));
        Ok(entry)
    }

    fn entries(&self) -> Entries {
        let mut tables = self.tables.lock();
        if Instant::now() >= tables.next_check {
            let started = Instant::now();
            let mut entries = BTreeMap::new();
            for definition in discovery::definitions(&self.sources, self.limits, &self.books) {
                let kept = tables.entries.get(&definition.name).filter(|entry| {
                    entry.definition.path == definition.path
                        && entry.definition.parts == definition.parts
                        && entry.definition.options == definition.options
                        && entry.definition.problem.is_none()
                        && definition.problem.is_none()
                        && entry.is_what_it_was()
                });
                let entry = match kept {
                    Some(entry) => Arc::clone(entry),
                    None => Arc::new(self.new_entry(definition)),
                };
                entries.insert(entry.definition.name.clone(), entry);
            }
            tables.entries = Arc::new(entries);
            tables.next_check = Instant::now() + pause(self.options.refresh, started);
        }
        Arc::clone(&tables.entries)
    }

    fn new_entry(&self, definition: Definition) -> TableEntry {
        let refresh = match &self.options.remotes {
            Some(remotes) if definition.is_remote() => remotes.refresh(),
            _ => self.options.refresh,
        };
        let timing = Timing { refresh, pinned: self.options.pinned };
        TableEntry::new(definition, timing, self.limits, Arc::clone(&self.workshop))
    }

    /// [`Self::find`] without listing folders on the caller's thread.
    async fn find_later(self: &Arc<Self>, name: &str) -> Option<Arc<TableEntry>> {
        self.list_with_other_secrets().await;
        let due = {
            let tables = self.tables.lock();
            Instant::now() >= tables.next_check
        };
        if due {
            let catalog = Arc::clone(self);
            let listed = tokio::task::spawn_blocking(move || catalog.entries()).await;
            if let Some(found) = find_in(&listed.ok()?, name) {
                return Some(found);
            }
        } else if let Some(found) = self.find(name) {
            return Some(found);
        }
        self.find_in_stores(name).await
    }

    /// Which tables stores have that have no names may be told only now, or no more, when secrets were made or dropped.
    async fn list_with_other_secrets(&self) {
        let now = self.options.remotes.as_ref().and_then(|remotes| remotes.in_force());
        let are_same = || {
            let tables = self.tables.lock();
            same(tables.in_force.as_ref(), now.as_ref())
        };
        if are_same() {
            return;
        }
        self.list_due().await;
        self.tables.lock().in_force = now;
    }

    /// Lists the stores whose last listing is too old; whether there were any.
    async fn list_due(&self) -> bool {
        let stores = self.sources.iter().filter(|source| source.spec.name.is_none());
        let due: Vec<_> =
            stores.filter_map(|source| source.remote.as_ref()).filter(|store| store.is_due()).collect();
        if due.is_empty() {
            return false;
        }
        futures::future::join_all(due.into_iter().map(|store| store.expected(STORE_PATIENCE))).await;
        self.tables.lock().next_check = Instant::now();
        true
    }

    /// A table that is not known may be in a store that has not been listed for a while.
    async fn find_in_stores(self: &Arc<Self>, name: &str) -> Option<Arc<TableEntry>> {
        if !self.list_due().await {
            return None;
        }
        let catalog = Arc::clone(self);
        let listed = tokio::task::spawn_blocking(move || catalog.entries()).await;
        find_in(&listed.ok()?, name)
    }

    /// The object stores of the server.
    pub fn remotes(&self) -> Option<&Arc<Remotes>> {
        self.options.remotes.as_ref()
    }

    fn find(&self, name: &str) -> Option<Arc<TableEntry>> {
        find_in(&self.entries(), name)
    }
}

/// The sources with the stores that they are in.
fn with_stores(sources: Vec<SourceSpec>, remotes: Option<&Remotes>) -> bowshot_api::Result<Vec<Source>> {
    let of_one = |spec: SourceSpec| {
        let remote = match remotes {
            _ if !is_remote(&spec.path) => None,
            Some(remotes) => Some(remotes.source(&spec.path)?),
            None => return Err(bowshot_api::Error::unsupported("this server reads no object stores")),
        };
        Ok(Source { spec, remote, layout: OnceLock::new() })
    };
    sources.into_iter().map(of_one).collect()
}

/// Waits a moment for the stores whose tables have no names yet; one that does not answer is looked at again later.
fn expect_all(sources: &[Source]) {
    let stores = sources.iter().filter(|source| source.spec.name.is_none());
    std::thread::scope(|scope| {
        for store in stores.filter_map(|source| source.remote.as_ref()) {
            scope.spawn(|| store.expect(STORE_PATIENCE));
        }
    });
}

/// Where the files are that statements may name.
fn places(sources: &[Source], options: &StorageOptions) -> Vec<FilePlace> {
    match &options.read_folder {
        _ if !options.read_by_path => Vec::new(),
        Some(folder) => FilePlace::new(folder).into_iter().collect(),
        None => sources.iter().filter_map(|source| FilePlace::new(&source.spec.path)).collect(),
    }
}

/// The table of that name; names are found whatever their case, if only one fits.
fn find_in(entries: &Entries, name: &str) -> Option<Arc<TableEntry>> {
    if let Some(entry) = entries.get(name) {
        return Some(Arc::clone(entry));
    }
    let folded = name.to_lowercase();
    let mut fitting = entries.values().filter(|entry| entry.definition.name.to_lowercase() == folded);
    match (fitting.next(), fitting.next()) {
        (Some(entry), None) => Some(Arc::clone(entry)),
        _ => None,
    }
}

fn summary(entry: &TableEntry) -> TableSummary {
    let mut summary = TableSummary {
        name: entry.definition.name.clone(),
        format: "",
        files: 0,
        bytes: 0,
        path: entry.definition.path.clone(),
        read_as: None,
        rejects: Vec::new(),
        problem: None,
    };
    let runtime = tokio::runtime::Handle::current();
    if let Ok(Some(foreign)) = runtime.block_on(entry.foreign()) {
        match runtime.block_on(foreign.files()) {
            Ok(files) => summary.files = files,
            Err(error) => summary.problem = Some(bowshot_api::Error::from(error).to_string()),
        }
        summary.format = foreign.format();
        return summary;
    }
    match entry.look() {
        Ok(snapshot) => {
            summary.format = snapshot.format.name();
            summary.files = snapshot.files.len();
            summary.bytes = snapshot.bytes();
            summary.read_as = snapshot.files.first().and_then(|file| file.facts.story());
            summary.rejects = snapshot.files.iter().flat_map(rejected).collect();
        }
        Err(error) => summary.problem = Some(bowshot_api::Error::from(error).to_string()),
    }
    summary
}

/// The catalog behind a schema, if the tables of it are made of files.
pub fn file_catalog(schema: &dyn SchemaProvider) -> Option<&Arc<FileCatalog>> {
    schema.downcast_ref::<FileSchema>().map(|files| &files.0)
}

fn rejected(file: &SnapshotFile) -> Vec<(PathBuf, Reject)> {
    let path = file.data.path();
    file.facts.rejects().into_iter().map(|reject| (path.to_path_buf(), reject)).collect()
}

#[derive(Debug)]
struct FileSchema(Arc<FileCatalog>);

#[async_trait]
impl SchemaProvider for FileSchema {
    fn table_names(&self) -> Vec<String> {
        self.0.entries().keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(entry) = self.0.find_later(name).await else {
            return Ok(None);
        };
        if let Some(foreign) = entry.foreign().await? {
            let found = foreign.table(&entry.definition.name, None).await;
            return Ok(Some(found.map_err(|error| error.of_table(&entry.definition.name))?));
        }
        let snapshot = entry.current().await?;
        let store = Arc::clone(&self.0.workshop.sources.store);
        Ok(Some(Arc::new(FileTable::new(entry, snapshot, store))))
    }

    /// Without opening the table: one broken file must not keep the others from being listed.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>, DataFusionError> {
        Ok(self.0.find_later(name).await.map(|_| TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.find(name).is_some()
    }
}
