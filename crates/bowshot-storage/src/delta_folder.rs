//! Delta tables that others write, read-only: the log decides which files count, and which of their rows.

use crate::delta_table::DeltaFolderTable;
use crate::format;
use crate::version::{FileIdentity, TableVersion};
use crate::{Error, ReadOptions, delta_paths};
use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use deltalake_core::DeltaTable;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Mutex;
use url::Url;

/// One such table, looked at again when its log has grown.
#[derive(Debug)]
pub(crate) struct DeltaFolder {
    path: PathBuf,
    session: Arc<SessionState>,
    loaded: Mutex<Option<Loaded>>,
}

#[derive(Debug)]
struct Loaded {
    newest: Option<Newest>,
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
    pub(crate) fn new(path: PathBuf, session: Arc<SessionState>) -> Self {
        Self { path, session, loaded: Mutex::default() }
    }

    /// The table of this name as its log has it now.
    ///
    /// # Errors
    /// When the log or what it names cannot be read, or asks for what this reader does not know.
    pub(crate) async fn table(&self, name: &str) -> Result<DeltaFolderTable, Error> {
        self.look(|loaded, settled| DeltaFolderTable {
            name: name.to_owned(),
            provider: Arc::clone(&loaded.provider),
            version: loaded.newest.as_ref().filter(|_| settled).map(Newest::version),
        })
        .await
    }

    /// Number of the data files.
    ///
    /// # Errors
    /// As [`Self::provider`].
    pub(crate) async fn files(&self) -> Result<usize, Error> {
        self.look(|loaded, _| loaded.files).await
    }

    /// Takes something of the table as it is now, and of whether its log was last written so long ago that every later
    /// change shows.
    async fn look<T>(&self, take: impl FnOnce(&Loaded, bool) -> T) -> Result<T, Error> {
        let mut loaded = self.loaded.lock().await;
        let (newest, settled) = newest_entry(&self.path)?;
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.newest == newest) {
            return Ok(take(loaded, settled));
        }
        let now = self.load(newest.clone()).await?;
        // An entry that came while the log was read may be in what was read, and is not what was looked at.
        let settled = settled && newest_entry(&self.path)?.0 == newest;
        Ok(take(loaded.insert(now), settled))
    }

    async fn load(&self, newest: Option<Newest>) -> Result<Loaded, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::corrupt(&self.path, error);
        let absolute = fs::canonicalize(&self.path).map_err(|error| Error::io(&self.path, error))?;
        let url = Url::from_directory_path(&absolute).map_err(|()| failed(&"its path is no URL"))?;
        let table: DeltaTable = deltalake_core::open_table(url).await.map_err(|error| failed(&error))?;
        let log = table.snapshot().map_err(|error| failed(&error))?.log_data();
        delta_paths::check(log, &absolute).map_err(|outside| failed(&outside))?;
        let files = table.get_file_uris().map_err(|error| failed(&error))?.count();
        let building = table.table_provider().with_session(Arc::clone(&self.session)).build();
        let provider = building.await.map_err(|error| failed(&error))?;
        Ok(Loaded { newest, provider: Arc::new(provider), files })
    }
}

/// The last entry of a log: entries have numbers of one length, and are never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Newest {
    path: PathBuf,
    /// Another one where the table was removed and made again.
    identity: FileIdentity,
}

impl Newest {
    fn version(&self) -> TableVersion {
        TableVersion::of(std::iter::once((self.path.as_path(), &self.identity)), &ReadOptions::default())
    }
}

/// The last entry of a table's log, and whether it was written so long ago that every later change shows.
fn newest_entry(path: &Path) -> Result<(Option<Newest>, bool), Error> {
    let log = path.join("_delta_log");
    let failed = |error: io::Error| Error::io(&log, error);
    let mut newest = None;
    for entry in fs::read_dir(&log).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        let is_json = entry.extension().is_some_and(|ending| ending == "json");
        let hidden = entry.file_name().is_none_or(format::is_ignored);
        if is_json && !hidden && newest.as_ref().is_none_or(|newest| entry > *newest) {
            newest = Some(entry);
        }
    }
    let Some(path) = newest else { return Ok((None, false)) };
    let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    let mut identity = FileIdentity::new(&metadata, SystemTime::now());
    let settled = std::mem::replace(&mut identity.settled, true);
    Ok((Some(Newest { path, identity }), settled))
}
