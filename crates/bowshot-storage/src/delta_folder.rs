//! Delta tables that others write, read-only: the log decides which files count, and which of their rows.

use crate::delta_log::{self, Log, LogEntry};
use crate::delta_objects::Registered;
use crate::delta_paths::{self, Root};
use crate::delta_table::DeltaFolderTable;
use crate::table_folder::{FolderView, TableFolder};
use crate::tables::durable::AsOf;
use crate::version::TableVersion;
use crate::{Error, ReadOptions};
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use deltalake_core::DeltaTable;
use deltalake_core::logstore::{StorageConfig, default_logstore};
use deltalake_core::table::builder::DeltaTableBuilder;
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use url::Url;

/// Earlier states that are remembered.
const MAX_EARLIER: usize = 4;
/// How long it is believed that a table in an object store cannot be read.
const FAILURE_BELIEVED: Duration = Duration::from_secs(1);

/// One such table, looked at again when its log has grown.
#[derive(Debug)]
pub(crate) struct DeltaFolder {
    folder: TableFolder,
    session: Arc<SessionState>,
    /// Set for a table in an object store.
    objects: Option<Registered>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Loaded>,
    /// By the last entries of their logs, the one that was asked for last at the end.
    earlier: VecDeque<Loaded>,
    failed: Option<(Instant, Error)>,
}

#[derive(Debug)]
struct Loaded {
    newest: Option<LogEntry>,
    provider: Arc<dyn TableProvider>,
    files: usize,
}

/// What reading such tables needs of the engine.
pub(crate) fn session(runtime: &RuntimeEnv) -> Arc<SessionState> {
    let mut config = SessionConfig::new();
    // Plain strings from the scan to the wire, as everywhere.
    config.options_mut().execution.parquet.schema_force_view_types = false;
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(Arc::new(runtime.clone()));
    Arc::new(builder.with_default_features().build())
}

impl DeltaFolder {
    pub(crate) fn new(folder: TableFolder, session: Arc<SessionState>) -> Self {
        let objects = match &folder {
            TableFolder::Local(_) => None,
            TableFolder::Remote(_) => Registered::new(session.runtime_env()).ok(),
        };
        Self { folder, session, objects, state: Mutex::default() }
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
            return Ok(DeltaFolderTable { name, provider: Arc::clone(&loaded.provider), version });
        };
        let provider = self.earlier(&mut state, as_of).await?;
        // What is computed of it is not kept: versions are those of the current state.
        Ok(DeltaFolderTable { name, provider, version: None })
    }

    /// Number of the data files.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) async fn files(&self) -> Result<usize, Error> {
        let mut state = self.state.lock().await;
        Ok(self.look(&mut state).await?.0.files)
    }

    /// The table as it is now, and whether its log was last written so long ago that every later change shows. What a listing of a
    /// store shows may be gone by the time at which it is read: then it is listed once more.
    async fn look<'s>(&self, state: &'s mut State) -> Result<(&'s Loaded, bool), Error> {
        if let Some((since, error)) = &state.failed
            && since.elapsed() < FAILURE_BELIEVED
        {
            return Err(error.clone());
        }
        state.failed = None;
        let mut looked = self.look_once(state).await;
        if let TableFolder::Remote(folder) = &self.folder
            && matches!(looked, Err(Error::Changed { .. } | Error::Gone { .. } | Error::Missing { .. }))
        {
            folder.spoil();
            looked = self.look_once(state).await;
        }
        if let (Err(error), TableFolder::Remote(_)) = (&looked, &self.folder) {
            state.failed = Some((Instant::now(), error.clone()));
        }
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
        if state.current.as_ref().is_some_and(|loaded| loaded.newest == newest) {
            return Ok(log.settled);
        }
        let now = self.load(&view, newest.clone(), None).await?;
        state.current = Some(now);
        // An entry that came while the log was read may be in what was read, and is not what was looked at.
        Ok(log.settled && self.log().await?.1.newest() == newest)
    }

    async fn earlier(&self, state: &mut State, as_of: AsOf) -> Result<Arc<dyn TableProvider>, Error> {
        let (view, log) = self.log().await?;
        if view.is_renewed() {
            *state = State::default();
        }
        let (entry, log) = self.aside(move || Ok((log.entry_at(as_of)?, log))).await?;
        let place = state.earlier.iter().position(|loaded| loaded.newest.as_ref() == Some(&entry));
        let loaded = match place.and_then(|place| state.earlier.remove(place)) {
            Some(loaded) => loaded,
            None => {
                let number = entry.number;
                let loaded = self.load(&view, Some(entry), Some(number)).await;
                // Of a log whose beginning was removed, states before the first checkpoint cannot be made any more.
                loaded.map_err(|error| match error {
                    Error::Corrupt { .. } if !log.reaches(number) => log.not_kept(number),
                    other => other,
                })?
            }
        };
        let provider = Arc::clone(&loaded.provider);
        if state.earlier.len() >= MAX_EARLIER {
            state.earlier.pop_front();
        }
        state.earlier.push_back(loaded);
        Ok(provider)
    }

    /// The folder and its log as they are now.
    async fn log(&self) -> Result<(FolderView, Log), Error> {
        let folder = self.folder.clone();
        let see = move || {
            let view = folder.view()?;
            let log = delta_log::read(&view)?;
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
        let (mut table, root) = match view {
            FolderView::Local(root) => (of_folder(root, &path)?, Root::Folder(root)),
            FolderView::Remote(view) => {
                let store = self.objects.as_ref().ok_or_else(|| failed(&"it has no store"))?;
                store.objects.show(view);
                (of_store(store), Root::Store)
            }
        };
        let loading = match number {
            None => table.load().await,
            Some(number) => table.load_version(number).await,
        };
        loading.map_err(|error| failed(&error))?;
        let log = table.snapshot().map_err(|error| failed(&error))?.log_data();
        delta_paths::check(log, root).map_err(|outside| Error::corrupt(&path, outside))?;
        let files = table.get_file_uris().map_err(|error| failed(&error))?.count();
        let building = table.table_provider().with_session(Arc::clone(&self.session)).build();
        let provider = building.await.map_err(|error| failed(&error))?;
        Ok(Loaded { newest, provider: Arc::new(provider), files })
    }
}

fn of_folder(root: &Path, path: &Path) -> Result<DeltaTable, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::corrupt(path, error);
    let url = Url::from_directory_path(root).map_err(|()| failed(&"its path is no URL"))?;
    let builder = DeltaTableBuilder::from_url(url).map_err(|error| failed(&error))?;
    builder.build().map_err(|error| failed(&error))
}

fn of_store(store: &Registered) -> DeltaTable {
    let whole = Arc::clone(&store.objects) as Arc<dyn ObjectStore>;
    let below = Arc::new(PrefixStore::new(Arc::clone(&whole), store.prefix()));
    DeltaTable::new(default_logstore(below, whole, &store.url, &StorageConfig::default()))
}

fn version(newest: &LogEntry) -> TableVersion {
    TableVersion::of(std::iter::once((newest.path.as_path(), &newest.identity)), &ReadOptions::default())
}
