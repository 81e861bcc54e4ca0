//! Backups of a data folder while its server serves, and the way back.
//!
//! ```text
//! data folder ─▶ hold: catalog of one moment, second names of its files ─▶ DEST.unfinished ─▶ manifest ─▶ DEST
//! DEST ─▶ every file against the manifest ─▶ catalog against files ─▶ data folder
//! DEST ─▶ catalog against files ─▶ the same folder, as a data folder (`promote`)
//! ```
//!
//! A backup is a data folder with a manifest in it: the catalog as one SQLite transaction has it, the files that some
//! version of a table has then, the entries of the Delta logs up to the same commits, the files of models. What can be
//! computed again (cached joins and results, parts of files of object stores) is not in it, and what is not committed
//! cannot be. The server is not asked: [`hold`] says why nothing that it removes meanwhile is missing.
//!
//! Of tables in an object store it has the files too, from the folder or from the store: a backup is whole by itself, and what is
//! made of it is a folder without a store.
//!
//! A folder gets its name when all of it is on disk. Whoever is killed before leaves one beside it, which the next one
//! removes; whoever fails or is stopped removes its own.

mod copy;
mod hold;
mod manifest;
mod promote;
mod restore;

pub use copy::{Backup, Copied, Share, backup};
pub use promote::{CommitMark, promote};
pub use restore::restore;

pub(crate) use hold::remove_abandoned_holds;
pub(super) use hold::{Hold, models};
pub(super) use manifest::{MANIFEST, Manifest, hashed};

use super::bucket;
use super::catalog::Catalog;
use crate::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prefix of folders that are not whole yet.
const UNFINISHED: &str = ".bowshot-unfinished-";

/// Set from outside to end what is at work soon.
pub type Stop = AtomicBool;

/// The place in an object store that has the tables of a data folder, if they are in one.
pub fn tables_address(data: &Path) -> Result<Option<String>, Error> {
    if Catalog::is_in(data) { bucket::address(&Catalog::look_into(data)?) } else { Ok(None) }
}

fn go_on(stop: &Stop) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

fn check_free(folder: &Path) -> Result<(), Error> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::Occupied { path: folder.to_path_buf() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::Occupied { path: folder.to_path_buf() })
        }
        Err(error) => Err(Error::file("list", folder, error)),
    }
}

fn around(folder: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(folder).map_err(|error| Error::file("make", folder, error))?;
    Ok(absolute.parent().map_or(absolute.clone(), Path::to_path_buf))
}
