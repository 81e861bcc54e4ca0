//! The folder of the tables' files, and how things get there for good.

use super::bucket::Bucket;
use super::file::{Slot, StoredFile};
use crate::{Error, StoreOptions};
use bowshot_formats::data_file::HandlePool;
use bowshot_formats::file_metadata::FactSources;
use bowshot_formats::snapshot_store::SnapshotStore;
use bowshot_object_store::private;
use datafusion::execution::runtime_env::RuntimeEnv;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;
use uuid::Uuid;

/// Files that Bowshot has written begin with this; others in a table's folder are left alone.
pub(super) const PREFIX: &str = "bowshot-";

#[derive(Debug)]
pub(crate) struct Disk {
    tables: PathBuf,
    pub(super) sources: FactSources,
    pub(super) pool: Arc<HandlePool>,
    users: Mutex<HashMap<PathBuf, Users>>,
    /// Tables whose folders are there for good.
    made: Mutex<HashSet<Uuid>>,
    /// Where the files are for good, if that is not here.
    bucket: OnceLock<Arc<Bucket>>,
}

/// A file of rows of which the store has the same.
#[derive(Debug)]
pub(super) struct LocalCopy {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// When it was last read, or written, since 1970.
    pub(super) used_ms: u64,
}

#[derive(Debug, Default)]
struct Users {
    count: usize,
    slot: Arc<Slot>,
    /// The last one removes it.
    doomed: bool,
}

impl Disk {
    /// The folder of tables in the data folder, made if need be. Files are read through `runtime`.
    pub(crate) fn open(
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
            bucket: OnceLock::new(),
        }))
    }

    pub(crate) fn store(&self) -> &Arc<SnapshotStore> {
        &self.sources.store
    }

    /// The files of tables are in a store from now on. To be said once, before any of them is read.
    pub(crate) fn keep_in(&self, bucket: Arc<Bucket>) {
        let _ = self.bucket.set(bucket);
    }

    pub(crate) fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.bucket.get()
    }

    /// The name of a file in the store: `ID/FILE`.
    pub(super) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(&self.tables).unwrap_or(path).to_string_lossy().into_owned()
    }

    pub(super) fn folder(&self, table: Uuid) -> PathBuf {
        self.tables.join(table.to_string())
    }

    /// The folder of a table, made if need be so that it survives a crash.
    pub(super) fn made_folder(&self, table: Uuid) -> Result<PathBuf, Error> {
        let folder = self.folder(table);
        let mut made = self.made.lock();
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

    /// Somebody may read this file from now on. Gives what all its readers share.
    pub(super) fn enter(&self, path: &Path) -> Arc<Slot> {
        let mut users = self.users.lock();
        let those = users.entry(path.to_path_buf()).or_default();
        those.count += 1;
        Arc::clone(&those.slot)
    }

    /// One reader less. The last one removes a file that belongs to no table.
    pub(super) fn leave(&self, path: &Path, kept: bool) {
        let mut users = self.users.lock();
        let Some(those) = users.get_mut(path) else { return };
        those.count -= 1;
        those.doomed |= !kept;
        if those.count > 0 {
            return;
        }
        let doomed = those.doomed;
        users.remove(path);
        drop(users);
        if doomed && let Err(error) = self.remove(path) {
            tracing::warn!(%error, "a file that nobody needs is removed at the next start");
        }
    }

    /// Removes a file, now or when its last reader is done.
    pub(super) fn doom(&self, path: &Path) -> Result<(), Error> {
        if let Some(users) = self.users.lock().get_mut(path) {
            users.doomed = true;
            return Ok(());
        }
        self.remove(path)
    }

    /// Removes a file here, and in the background from the store.
    fn remove(&self, path: &Path) -> Result<(), Error> {
        if let Some(bucket) = self.bucket() {
            bucket.forget_file(self.name_of(path));
        }
        remove_file(path)
    }

    /// A file that was to go belongs to a table again.
    pub(super) fn revive(&self, path: &Path) {
        if let Some(users) = self.users.lock().get_mut(path) {
            users.doomed = false;
        }
    }

    pub(super) fn is_used(&self, table: Uuid) -> bool {
        let folder = self.folder(table);
        self.users.lock().keys().any(|path| path.starts_with(&folder))
    }

    /// Names of the files of a table that somebody may read, or is writing.
    pub(super) fn used_names(&self, table: Uuid) -> HashSet<String> {
        let folder = self.folder(table);
        let users = self.users.lock();
        let names = users.keys().filter(|path| path.starts_with(&folder)).filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    pub(super) fn copies(&self) -> Result<Vec<LocalCopy>, Error> {
        let mut copies = Vec::new();
        for folder in listed(&self.tables)? {
            let is_table =
                folder.file_name().is_some_and(|name| Uuid::parse_str(&name.to_string_lossy()).is_ok());
            // One of a table that was dropped meanwhile is gone.
            let Ok(files) = listed(&folder) else { continue };
            for path in files.into_iter().filter(|_| is_table) {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                let is_ours = name.is_some_and(|name| name.starts_with(PREFIX));
                let about = path.metadata().ok().filter(|about| is_ours && about.is_file());
                let Some(about) = about else { continue };
                let written = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let written_ms =
                    written.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                let read_ms = self.users.lock().get(&path).map_or(0, |users| users.slot.used_ms());
                let used_ms = written_ms.max(read_ms);
                copies.push(LocalCopy { bytes: about.len(), used_ms, path });
            }
        }
        Ok(copies)
    }

    pub(super) fn is_read(&self, path: &Path) -> bool {
        self.users.lock().get(path).is_some_and(|users| users.slot.is_read())
    }

    /// Removes a file that the store has, unless a query reads it. Gives whether it is gone.
    pub(super) fn remove_copy(&self, path: &Path) -> Result<bool, Error> {
        // As a reader, so that whoever comes now waits, and then finds it gone.
        let slot = self.enter(path);
        let removed = slot.give_up(|| remove_file(path));
        self.leave(path, true);
        removed
    }

    pub(super) fn remove_folder(&self, table: Uuid) -> Result<(), Error> {
        let folder = self.folder(table);
        self.made.lock().remove(&table);
        match fs::remove_dir_all(&folder) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::file("remove", &folder, error)),
        }
    }

    pub(crate) fn has_tables(&self) -> Result<bool, Error> {
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
pub(super) fn is_committed(folder: &Path) -> Result<bool, Error> {
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

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::file("list", folder, error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

pub(crate) fn make_folder(folder: &Path) -> Result<(), Error> {
    private::folder(folder).map_err(|error| Error::file("make", folder, error))
}

/// Makes the names in a folder survive a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
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
