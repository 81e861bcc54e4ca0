//! Delta tables that others write, read-only: the log decides which files count, and which of their rows.

mod decimal_partition_values;
pub(crate) mod deletion_vector_check;
mod empty_partition_values;
mod local;
pub(crate) mod log;
mod objects;
pub(crate) mod paths;
pub mod table;

use crate::change_feed::{self, Building, ChangeRange, Changes, ChangesTable, Commit, Feed, Shape, Wanted};
use crate::delta::decimal_partition_values::Decimals;
use crate::delta::deletion_vector_check::Checked;
use crate::delta::empty_partition_values::WithoutEmptyTexts;
use crate::delta::local::DeltaLocal;
use crate::delta::log::{Log, LogEntry};
use crate::delta::objects::Registered;
use crate::delta::paths::Root;
use crate::delta::table::DeltaFolderTable;
use crate::table_folder::{Failure, FolderView, TableFolder};
use arrow::datatypes::{Fields, SchemaRef};
use bowshot_api::ErrorKind;
use bowshot_formats::inspection::{KnownFiles, Workshop};
use bowshot_formats::read_options::ReadOptions;
use bowshot_formats::table_version::{AsOf, TableVersion};
use bowshot_object_store::Error;
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use deltalake_core::DeltaTable;
use deltalake_core::kernel::Snapshot;
use deltalake_core::logstore::{StorageConfig, default_logstore, logstore_with};
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;
use url::Url;

const MAX_EARLIER: usize = 4;

/// One such table, looked at again when its log has grown.
#[derive(Debug)]
pub struct DeltaFolder {
    folder: TableFolder,
    workshop: Arc<Workshop>,
    max_files: usize,
    /// Set for a table in an object store.
    objects: Option<Registered>,
    state: Mutex<State>,
    /// Files of the changes that were read last.
    changed: Arc<parking_lot::Mutex<KnownFiles>>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Loaded>,
    /// By the last entries of their logs, the one that was asked for last at the end.
    earlier: VecDeque<Loaded>,
    failed: Option<Failure>,
}

#[derive(Debug)]
struct Loaded {
    newest: Option<LogEntry>,
    provider: Arc<dyn TableProvider>,
    vectors: Arc<Checked>,
    files: usize,
    /// What the log says of it, or what of that is not known.
    shape: Result<Arc<Shape>, String>,
}

struct Range {
    view: FolderView,
    commits: Vec<Commit>,
    /// What the table was before the first of them, or with it where it has not changed that; if it is needed and known.
    before: Option<Arc<Shape>>,
    now: Arc<Shape>,
    columns: SchemaRef,
}

/// What reading such tables needs of the engine.
pub fn session(runtime: &RuntimeEnv) -> Arc<SessionState> {
    let mut config = SessionConfig::new();
    // Plain strings from the scan to the wire, as everywhere.
    config.options_mut().execution.parquet.schema_force_view_types = false;
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(Arc::new(runtime.clone()));
    Arc::new(builder.with_default_features().build())
}

impl DeltaFolder {
    /// A range of changes has at most `max_files` files.
    pub(crate) fn new(folder: TableFolder, workshop: Arc<Workshop>, max_files: usize) -> Self {
        let objects = match &folder {
            TableFolder::Local(_) => None,
            TableFolder::Remote(_) => Registered::new(workshop.delta.runtime_env()).ok(),
        };
        Self { folder, workshop, max_files, objects, state: Mutex::default(), changed: Arc::default() }
    }

    /// The table of this name as its log has it now, or had it in an earlier state.
    ///
    /// # Errors
    /// When the log or what it names cannot be read, or asks for what this reader does not know; `NoState` for a state that is not
    /// kept.
    pub(crate) async fn table(&self, name: &str, as_of: Option<AsOf>) -> Result<DeltaFolderTable, Error> {
        let mut state = self.state.lock().await;
        let name = name.to_owned();
        let Some(as_of) = as_of else {
            let (loaded, settled) = self.look(&mut state).await?;
            let version = loaded.newest.as_ref().filter(|_| settled).map(version);
            return Ok(loaded.table(name, version));
        };
        // What is computed of it is not kept: versions are those of the current state.
        self.earlier(&mut state, as_of, name).await
    }

    pub(crate) async fn changes(&self, range: ChangeRange) -> Result<Changes, Error> {
        let mut feed = self.feed(range).await;
        // What a listing shows may be gone by now, as in `look`.
        if let TableFolder::Remote(folder) = &self.folder
            && matches!(feed, Err(Error::Changed { .. } | Error::Feed { kind: ErrorKind::NotFound, .. }))
        {
            folder.spoil();
            feed = self.feed(range).await;
        }
        let feed = Arc::new(feed?);
        let (same_columns, store) = (feed.same_columns, Arc::clone(&self.workshop.sources.store));
        Ok(Changes { table: Arc::new(ChangesTable { feed, store }), same_columns })
    }

    async fn feed(&self, range: ChangeRange) -> Result<Feed, Error> {
        let wanted = Wanted::default();
        // Until somebody has it, or has gone.
        let _waiting = wanted.wait();
        let range = self.range(range, &wanted).await?;
        let (workshop, changed) = (Arc::clone(&self.workshop), Arc::clone(&self.changed));
        let build = move || {
            // Who comes meanwhile looks at the files anew.
            let mut files = std::mem::take(&mut *changed.lock());
            let Range { view, commits, before, now, columns } = &range;
            let columns: &Fields = columns.fields();
            let building = Building { folder: view, workshop: &workshop, now, columns, wanted: &wanted };
            let feed = building.feed(commits, before.as_deref(), &mut files);
            *changed.lock() = files;
            feed
        };
        self.blocking(build).await.map_err(|error| match error {
            Error::Missing { path } | Error::Gone { path } => removed(&path),
            other => other,
        })
    }

    /// The commits of a range, and what the table is now and was when it began. Others may look at the table meanwhile.
    async fn range(&self, range: ChangeRange, wanted: &Wanted) -> Result<Range, Error> {
        let mut state = self.state.lock().await;
        let (loaded, _) = self.look(&mut state).await?;
        let now = loaded.shape.clone().map_err(|unknown| self.unknown(unknown))?;
        let (columns, newest) = (loaded.provider.schema(), loaded.newest.as_ref().map(|entry| entry.number));
        let (view, log) = self.log().await?;
        if view.is_renewed() {
            *state = State::default();
        }
        drop(state);
        let newest = newest.ok_or_else(|| log.not_kept(0))?;
        let (pool, limits) = (Arc::clone(&self.workshop.pool), (self.max_files, wanted.clone()));
        let read = move || {
            let Some(meant) = log.range(range, newest)? else { return Ok((log, Vec::new(), None)) };
            let commits = change_feed::read(&log, meant, &pool, (limits.0, &limits.1))?;
            let needed = commits.first().and_then(Commit::needs);
            let entry = needed.map(|number| log.entry_at(AsOf::Version(number)));
            Ok((log, commits, entry))
        };
        let (log, commits, entry) = self.blocking(read).await?;
        let loaded = match entry {
            None => return Ok(Range { view, commits, before: None, now, columns }),
            Some(Ok(entry)) => self.load_earlier(&view, &log, entry).await,
            Some(Err(error)) => Err(error),
        };
        let before = match loaded {
            Ok(loaded) => Some(loaded.shape.map_err(|unknown| self.unknown(unknown))?),
            // The commit says itself what its own rows are; what those are that go with it, nobody knows any more.
            Err(Error::NoState { .. }) if commits.first().is_some_and(Commit::has_columns) => None,
            Err(error) => return Err(error),
        };
        Ok(Range { view, commits, before, now, columns })
    }

    fn unknown(&self, detail: String) -> Error {
        Error::Unsupported { path: self.folder.path(), detail }
    }

    pub(crate) async fn files(&self) -> Result<usize, Error> {
        let mut state = self.state.lock().await;
        Ok(self.look(&mut state).await?.0.files)
    }

    /// The table now, and whether its log is settled. An outdated listing of a store is renewed once.
    async fn look<'s>(&self, state: &'s mut State) -> Result<(&'s Loaded, bool), Error> {
        if let Some(error) = state.failed.as_ref().and_then(|failed| failed.believed(&self.folder)) {
            return Err(error);
        }
        state.failed = None;
        let mut looked = self.look_once(state).await;
        if let TableFolder::Remote(folder) = &self.folder
            && matches!(looked, Err(Error::Changed { .. } | Error::Gone { .. } | Error::Missing { .. }))
        {
            folder.spoil();
            looked = self.look_once(state).await;
        }
        state.failed = looked.as_ref().err().and_then(|error| Failure::of(&self.folder, error));
        let settled = looked?;
        match &state.current {
            Some(loaded) => Ok((loaded, settled)),
            None => Err(Error::corrupt(&self.folder.path(), "its state is gone")),
        }
    }

    async fn look_once(&self, state: &mut State) -> Result<bool, Error> {
        let (view, log) = self.log().await?;
        if view.is_renewed() {
            *state = State::default();
        }
        let newest = log.newest();
        if state.current.as_ref().is_some_and(|loaded| loaded.is_of(newest.as_ref())) {
            return Ok(log.settled);
        }
        let now = self.load(&view, newest.clone(), None).await?;
        state.current = Some(now);
        // An entry that came while the log was read may be in what was read, and is not what was looked at.
        Ok(log.settled && self.log().await?.1.newest() == newest)
    }

    async fn earlier(&self, state: &mut State, as_of: AsOf, name: String) -> Result<DeltaFolderTable, Error> {
        let (view, log) = self.log().await?;
        if view.is_renewed() {
            *state = State::default();
        }
        let (entry, log) = self.aside(move || Ok((log.entry_at(as_of)?, log))).await?;
        let place = state.earlier.iter().position(|loaded| loaded.newest.as_ref() == Some(&entry));
        let known = place.and_then(|place| state.earlier.remove(place));
        let loaded = match known.filter(|loaded| loaded.is_of(Some(&entry))) {
            Some(loaded) => loaded,
            None => self.load_earlier(&view, &log, entry).await?,
        };
        let table = loaded.table(name, None);
        if state.earlier.len() >= MAX_EARLIER {
            state.earlier.pop_front();
        }
        state.earlier.push_back(loaded);
        Ok(table)
    }

    async fn load_earlier(&self, view: &FolderView, log: &Log, entry: LogEntry) -> Result<Loaded, Error> {
        let number = entry.number;
        let loaded = self.load(view, Some(entry), Some(number)).await;
        // Of a log whose beginning was removed, states before the first checkpoint cannot be made any more.
        loaded.map_err(|error| match error {
            Error::Corrupt { .. } if !log.reaches(number) => log.not_kept(number),
            other => other,
        })
    }

    async fn log(&self) -> Result<(FolderView, Log), Error> {
        let folder = self.folder.clone();
        let see = move || {
            let view = folder.view()?;
            let log = log::read(&view)?;
            Ok((view, log))
        };
        self.aside(see).await
    }

    /// Does what waits for a network where it may.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if matches!(self.folder, TableFolder::Local(_)) {
            return work();
        }
        self.blocking(work).await
    }

    /// Does what takes its time where it may.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let interrupted = |error: tokio::task::JoinError| Error::Interrupted {
            path: self.folder.path(),
            detail: error.to_string(),
        };
        tokio::task::spawn_blocking(work).await.map_err(interrupted)?
    }

    async fn load(
        &self,
        view: &FolderView,
        newest: Option<LogEntry>,
        number: Option<u64>,
    ) -> Result<Loaded, Error> {
        let path = self.folder.path();
        let failed = |error: &dyn std::fmt::Display| {
            let of_store = self.objects.as_ref().and_then(|store| store.objects.fault());
            of_store.unwrap_or_else(|| Error::corrupt(&path, error))
        };
        let local = Arc::new(DeltaLocal::default());
        let (mut table, root) = match view {
            FolderView::Local(root) => (of_folder(root, &path, &local)?, Root::Folder(root)),
            FolderView::Remote(view) => {
                let store = self.objects.as_ref().ok_or_else(|| failed(&"it has no store"))?;
                store.objects.show(view);
                (of_store(store), Root::Store)
            }
        };
        let mut loading = table.update_incremental(number).await;
        if loading.is_err()
            && let Some(decimals) = decimal_partitions(&table, number).await
        {
            match &self.objects {
                Some(store) => store.objects.write_in_full(decimals),
                None => local.write_in_full(decimals),
            }
            loading = table.update_incremental(number).await;
        }
        loading.map_err(|error| match failed(&error) {
            Error::Corrupt { detail, .. } if detail.contains("nsupported table features") => {
                self.unknown(detail)
            }
            other => other,
        })?;
        let snapshot = table.snapshot().map_err(|error| failed(&error))?;
        paths::check(snapshot.log_data(), root).map_err(|outside| Error::corrupt(&path, outside))?;
        let shape = Shape::of_library(snapshot.metadata(), snapshot.protocol()).map(Arc::new);
        let vectors = deletion_vector_check::named(snapshot.log_data(), root)
            .map_err(|outside| Error::corrupt(&path, outside))?;
        let vectors = match vectors.is_empty() {
            true => Checked::default(),
            false => {
                let view = view.clone();
                self.blocking(move || deletion_vector_check::check(&vectors, &view)).await?
            }
        };
        let files = table.get_file_uris().map_err(|error| failed(&error))?.count();
        let empty = |value: Option<String>| value.is_some_and(|text| text.is_empty());
        let partitions = snapshot.metadata().partition_columns().to_vec();
        let has_empty = !partitions.is_empty()
            && snapshot.log_data().iter().any(|file| file.partition_values_map().into_values().any(empty));
        let building = table.table_provider().with_session(Arc::clone(&self.workshop.delta)).build();
        let mut provider: Arc<dyn TableProvider> = Arc::new(building.await.map_err(|error| failed(&error))?);
        if has_empty {
            provider = Arc::new(WithoutEmptyTexts { inner: provider, partitions });
        }
        Ok(Loaded { newest, provider, vectors: Arc::new(vectors), files, shape })
    }
}

impl Loaded {
    /// Whether it is what a log with this last entry says, and the vectors are those that were looked at.
    fn is_of(&self, newest: Option<&LogEntry>) -> bool {
        self.newest.as_ref() == newest && self.vectors.still().is_ok()
    }

    fn table(&self, name: String, version: Option<TableVersion>) -> DeltaFolderTable {
        let (provider, vectors) = (Arc::clone(&self.provider), Arc::clone(&self.vectors));
        DeltaFolderTable { name, provider, vectors, version }
    }
}

fn removed(path: &Path) -> Error {
    let detail = "it was removed, and the queried changes are in it".to_owned();
    let hint = "VACUUM removes files of earlier versions: query later ones, or raise `delta.deletedFileRetentionDuration` of the table";
    change_feed::refused(path, ErrorKind::NotFound, detail, hint)
}

/// The decimal columns that the files of a table are grouped by, if there are any, and its columns can be read at all.
async fn decimal_partitions(table: &DeltaTable, number: Option<u64>) -> Option<Decimals> {
    let snapshot = Snapshot::try_new(table.log_store().as_ref(), number).await.ok()?;
    let shape = Shape::of_library(snapshot.metadata(), snapshot.protocol()).ok()?;
    Some(Decimals(shape.decimal_partitions())).filter(|decimals| !decimals.0.is_empty())
}

fn of_folder(root: &Path, path: &Path, files: &Arc<DeltaLocal>) -> Result<DeltaTable, Error> {
    let url =
        Url::from_directory_path(root).map_err(|()| Error::corrupt(path, "its path is not a valid URL"))?;
    let files = Arc::clone(files) as Arc<dyn ObjectStore>;
    let log = logstore_with(files, &url, StorageConfig::default());
    Ok(DeltaTable::new(log.map_err(|error| Error::corrupt(path, error))?))
}

fn of_store(store: &Registered) -> DeltaTable {
    let whole = Arc::clone(&store.objects) as Arc<dyn ObjectStore>;
    let below = Arc::new(PrefixStore::new(Arc::clone(&whole), store.prefix()));
    DeltaTable::new(default_logstore(below, whole, &store.url, &StorageConfig::default()))
}

fn version(newest: &LogEntry) -> TableVersion {
    TableVersion::of(std::iter::once((newest.path.as_path(), &newest.identity)), &ReadOptions::default())
}
