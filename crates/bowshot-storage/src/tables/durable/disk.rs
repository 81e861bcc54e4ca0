//! The folder of the tables' files, and how things get there for good.

use super::file::StoredFile;
use crate::facts::FactSources;
use crate::file::HandlePool;
use crate::private;
use crate::store::SnapshotStore;
use crate::tables::{Error, StoreOptions};
use datafusion::execution::runtime_env::RuntimeEnv;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Files that Bowshot has written begin with this; others in a table's folder are left alone.
const PREFIX: &str = "bowshot-";

/// See the module.
#[derive(Debug)]
pub(in crate::tables) struct Disk {
    tables: PathBuf,
    pub(super) sources: FactSources,
    pub(super) pool: Arc<HandlePool>,
    users: Mutex<HashMap<PathBuf, Users>>,
    /// Tables whose folders are there for good.
    made: Mutex<HashSet<Uuid>>,
}

/// Who reads a file.
#[derive(Debug, Default)]
struct Users {
    count: usize,
    /// The last one removes it.
    doomed: bool,
}

impl Disk {
    /// The folder of tables in the data folder, made if need be. Files are read through `runtime`.
    pub(in crate::tables) fn open(
        folder: &Path,
        runtime: &RuntimeEnv,
        options: &StoreOptions,
    ) -> Result<Arc<Self>, Error> {
        let store = SnapshotStore::register(runtime, &options.columns)
            .map_err(|error| Error::Catalog { doing: "cannot be opened", reason: error.to_string() })?;
        let metadata_cache = runtime.cache_manager.get_file_metadata_cache();
        let tables = folder.join("tables");
        make_folder(&tables)?;
        Ok(Arc::new(Self {
            tables,
            sources: FactSources {
                sample_rows: 1,
                surprises: Arc::default(),
                last: Mutex::default(),
                store,
                metadata_cache,
            },
            pool: HandlePool::new(options.max_open_files),
            users: Mutex::default(),
            made: Mutex::default(),
        }))
    }

    pub(in crate::tables) fn store(&self) -> &Arc<SnapshotStore> {
        &self.sources.store
    }

    /// The folder of a table, which is a Delta table.
    pub(super) fn folder(&self, table: Uuid) -> PathBuf {
        self.tables.join(table.to_string())
    }

    /// The folder of a table, made if need be so that it survives a crash.
    pub(super) fn made_folder(&self, table: Uuid) -> Result<PathBuf, Error> {
        let folder = self.folder(table);
        let mut made = lock(&self.made);
        if !made.contains(&table) || !folder.is_dir() {
            make_folder(&folder)?;
            sync_folder(&self.tables)?;
            made.insert(table);
        }
        Ok(folder)
    }

    /// A path for new rows of a table, in a folder that is there.
    pub(super) fn new_file(&self, table: Uuid) -> Result<PathBuf, Error> {
        let folder = self.made_folder(table)?;
        Ok(folder.join(format!("{PREFIX}{}.parquet", Uuid::new_v4())))
    }

    /// A file that belongs to a table since an earlier commit. It is looked at when it is read.
    pub(super) fn kept_file(
        self: &Arc<Self>,
        table: Uuid,
        name: &str,
        rows: usize,
        bytes: u64,
    ) -> StoredFile {
        StoredFile::kept(Arc::clone(self), self.folder(table).join(name), rows, bytes)
    }

    /// Somebody may read this file from now on.
    pub(super) fn enter(&self, path: &Path) {
        lock(&self.users).entry(path.to_path_buf()).or_default().count += 1;
    }

    /// One reader less. The last one removes a file that belongs to no table.
    pub(super) fn leave(&self, path: &Path, kept: bool) {
        let mut users = lock(&self.users);
        let Some(those) = users.get_mut(path) else { return };
        those.count -= 1;
        those.doomed |= !kept;
        if those.count > 0 {
            return;
        }
        let doomed = those.doomed;
        users.remove(path);
        drop(users);
        if doomed && let Err(error) = remove_file(path) {
            tracing::warn!(%error, "a file that nobody needs is removed at the next start");
        }
    }

    /// Removes a file, now or when its last reader is done.
    pub(super) fn doom(&self, path: &Path) -> Result<(), Error> {
        if let Some(users) = lock(&self.users).get_mut(path) {
            users.doomed = true;
            return Ok(());
        }
        remove_file(path)
    }

    /// A file that was to go belongs to a table again.
    pub(super) fn revive(&self, path: &Path) {
        if let Some(users) = lock(&self.users).get_mut(path) {
            users.doomed = false;
        }
    }

    /// Whether somebody may read files of a table.
    pub(super) fn is_used(&self, table: Uuid) -> bool {
        let folder = self.folder(table);
        lock(&self.users).keys().any(|path| path.starts_with(&folder))
    }

    /// Removes the folder of a table that is not there any more.
    pub(super) fn remove_folder(&self, table: Uuid) -> Result<(), Error> {
        let folder = self.folder(table);
        lock(&self.made).remove(&table);
        match fs::remove_dir_all(&folder) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::file("remove", &folder, error)),
        }
    }

    /// Whether there are folders of tables.
    pub(in crate::tables) fn has_tables(&self) -> Result<bool, Error> {
        let is_table = |path: &PathBuf| {
            path.file_name().is_some_and(|name| Uuid::parse_str(&name.to_string_lossy()).is_ok())
        };
        Ok(listed(&self.tables)?.iter().any(is_table))
    }

    /// Removes what writers that were killed have left: our files that no segment names, and folders of tables that
    /// were dropped or never committed. Gives the number of things removed. Fails, before it removes anything, for a
    /// table that was committed and that nobody knows.
    pub(super) fn remove_orphans(
        &self,
        tables: &HashSet<Uuid>,
        dropped: &HashSet<Uuid>,
        files: &HashSet<PathBuf>,
    ) -> Result<usize, Error> {
        let mut orphans = Vec::new();
        for folder in listed(&self.tables)? {
            let id = folder.file_name().and_then(|name| Uuid::parse_str(&name.to_string_lossy()).ok());
            let Some(id) = id else { continue };
            if tables.contains(&id) {
                orphans.extend(orphans_of(&folder, files)?);
            } else if dropped.contains(&id) || !is_committed(&folder)? {
                orphans.push(folder);
            } else {
                return Err(Error::OldCatalog { path: folder });
            }
        }
        for path in &orphans {
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if let Err(error) = removed {
                tracing::warn!(path = %path.display(), %error, "a file that nobody needs stays");
            }
        }
        Ok(orphans.len())
    }
}

/// Our files in the folder of a table and its log that are not among these.
fn orphans_of(folder: &Path, files: &HashSet<PathBuf>) -> Result<Vec<PathBuf>, Error> {
    let log = folder.join("_delta_log");
    let in_log = if log.is_dir() { listed(&log)? } else { Vec::new() };
    let is_orphan = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.trim_start_matches('.').starts_with(PREFIX) && !files.contains(path)
    };
    Ok(listed(folder)?.into_iter().chain(in_log).filter(is_orphan).collect())
}

/// The log of a table is written after its first commit.
fn is_committed(folder: &Path) -> Result<bool, Error> {
    let log = folder.join("_delta_log");
    let is_entry = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    Ok(log.is_dir() && listed(&log)?.iter().any(is_entry))
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file("remove", path, error)),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::file("list", folder, error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

pub(in crate::tables) fn make_folder(folder: &Path) -> Result<(), Error> {
    private::folder(folder).map_err(|error| Error::file("make", folder, error))
}

/// Makes the names in a folder survive a crash of the machine.
pub(in crate::tables) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Error::file("sync", folder, error))
}

/// Puts a whole file under a name that must be free: nobody ever sees a part of it. Gives false if the name is taken.
pub(super) fn put_new(path: &Path, content: &[u8]) -> Result<bool, Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let beside = folder.join(format!(".{PREFIX}{}.tmp", Uuid::new_v4()));
    let written = private::new_file(&beside).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    // A link fails where a rename would replace.
    let linked = written.and_then(|()| match fs::hard_link(&beside, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    });
    let removed = fs::remove_file(&beside);
    let linked = linked.map_err(|error| Error::file("write", path, error))?;
    removed.map_err(|error| Error::file("remove", &beside, error))?;
    sync_folder(folder)?;
    Ok(linked)
}
