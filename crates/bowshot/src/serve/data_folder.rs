//! The folder of durable tables. Nothing durable exists yet: a folder that is named is made, tried and locked, so that
//! what works today keeps working when tables move in; a folder that nobody named is not made.

use crate::config::DataFolder;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use std::fs::{File, TryLockError};
use std::path::Path;

const LOCK_FILE: &str = "bowshot.lock";

/// Keeps other servers out of the folder for as long as it lives.
#[derive(Debug)]
pub(crate) struct Held {
    _lock: Option<File>,
}

/// Takes the folder of the configuration.
pub(crate) fn take(folder: Option<&DataFolder>) -> Result<Held> {
    match folder {
        None | Some(DataFolder::Memory) => Ok(Held { _lock: None }),
        Some(DataFolder::At(path)) => Ok(Held { _lock: Some(lock(path)?) }),
    }
}

/// Whether the folder could be taken, changing nothing: for `bowshot check`.
pub(crate) fn examine(folder: Option<&DataFolder>) -> Result<()> {
    match folder {
        Some(DataFolder::At(path)) if path.exists() && !path.is_dir() => Err(not_a_folder(path).into()),
        _ => Ok(()),
    }
}

fn lock(path: &Path) -> Result<File> {
    if path.exists() && !path.is_dir() {
        return Err(not_a_folder(path).into());
    }
    std::fs::create_dir_all(path)
        .with_context(|| format!("cannot make the data folder `{}`", path.display()))?;
    let file = File::options()
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
