//! The folder of durable tables: created if needed, tested, and locked for one server.

use crate::config::DataFolder;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use bowshot_object_store::private;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const LOCK_FILE: &str = "bowshot.lock";

/// Locks the folder as long as it lives.
#[derive(Debug)]
pub(crate) struct LockedFolder {
    folder: Option<PathBuf>,
    _lock: Option<File>,
}

impl LockedFolder {
    /// The folder, if tables can be durable.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

pub(crate) fn take(folder: Option<&DataFolder>) -> Result<LockedFolder> {
    match folder {
        None | Some(DataFolder::Memory) => Ok(LockedFolder { folder: None, _lock: None }),
        Some(DataFolder::At(path)) => {
            Ok(LockedFolder { folder: Some(path.clone()), _lock: Some(lock(path)?) })
        }
    }
}

/// Whether the folder can be locked, without changes, for `bowshot check`.
pub(crate) fn examine(folder: Option<&DataFolder>) -> Result<()> {
    match folder {
        Some(DataFolder::At(path)) if path.exists() && !path.is_dir() => Err(not_a_folder(path).into()),
        _ => Ok(()),
    }
}

/// Unreadable names of the catalog with reasons, for `bowshot check`.
pub(crate) fn broken(folder: Option<&DataFolder>) -> Result<Vec<(String, String)>> {
    match folder {
        Some(DataFolder::At(path)) => Ok(bowshot_tables::examine(path).map_err(bowshot_api::Error::from)?),
        None | Some(DataFolder::Memory) => Ok(Vec::new()),
    }
}

fn lock(path: &Path) -> Result<File> {
    if path.exists() && !path.is_dir() {
        return Err(not_a_folder(path).into());
    }
    private::folder(path).with_context(|| format!("cannot make the data folder `{}`", path.display()))?;
    // Syncs the parent, so that a new folder survives a crash.
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)
            .and_then(|parent| parent.sync_all())
            .with_context(|| format!("cannot sync the folder `{}`", parent.display()))?;
    }
    let file = File::options()
        .mode(0o600)
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK_FILE))
        .with_context(|| format!("cannot write to the data folder `{}`", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another server uses the data folder `{}`", path.display()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock the data folder `{}`", path.display()))
        }
    }
}

fn not_a_folder(path: &Path) -> Usage {
    Usage::new(format!("`{}` is not a folder", path.display()))
        .with_hint("name a folder, or `memory`, with `--data`")
}
