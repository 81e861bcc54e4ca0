//! Holds the catalog of a data folder, or of a backup, and its files against one another. Changes nothing.
//!
//! ```text
//! catalog.rs       the catalog in itself: SQLite's own check, definitions, rows that it holds
//! files.rs         files of rows and of models: there, of the size, footer, rows, columns, bytes
//! log.rs           Delta logs: ours, and not ahead of the catalog
//! orphan_files.rs  what nobody refers to
//! ```
//!
//! A fault is something that loses rows, keeps the server from starting or from answering, or deceives other readers. A
//! remark is what the server puts right by itself.

mod catalog;
mod files;
mod log;
mod orphan_files;

use super::backup::{Hold, MANIFEST, Manifest, Stop, hashed, tables_address};
use super::catalog::{Catalog, FILE};
use crate::Error;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::Path;

/// The file that the server of a data folder has locked.
const LOCK_FILE: &str = "bowshot.lock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Size and footer.
    Footers,
    /// Every value of every row.
    Rows,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A file below the folder, or a table.
    pub place: String,
    pub problem: String,
    pub remedy: &'static str,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// A data folder that no server uses.
    #[default]
    Stopped,
    /// A data folder that a server uses: what nobody refers to was not looked for, since it may be at work on it.
    Running,
    Backup,
}

#[derive(Debug, Clone, Default)]
pub struct Found {
    pub kind: Kind,
    pub faults: Vec<Fault>,
    /// What the server puts right by itself.
    pub remarks: Vec<String>,
    pub tables: usize,
    /// Files of rows and models.
    pub files: usize,
    /// Rows of the newest versions.
    pub rows: u64,
    /// Files that are in an object store alone. They were not looked at.
    pub in_store: usize,
}

impl Found {
    fn fault(&mut self, place: impl Into<String>, problem: impl Into<String>, remedy: &'static str) {
        self.faults.push(Fault { place: place.into(), problem: problem.into(), remedy });
    }
}

const ANOTHER_BACKUP: &str = "the backup cannot be relied on: take another one, and look at the disk";
const WHOLE_FOLDER: &str = "stop the server and bring the whole folder back with `bowshot restore`";

/// Verifies a data folder, stopped or in use, or a backup. Blocks.
///
/// # Errors
/// When it is neither of them, or cannot be looked at.
pub fn verify(folder: &Path, depth: Depth, stop: &Stop) -> Result<Found, Error> {
    if Manifest::is_in(folder) {
        return of_backup(folder, depth, stop);
    }
    if !Catalog::is_in(folder) {
        return without_catalog(folder);
    }
    // Who cannot read it is told so below.
    let store = tables_address(folder).unwrap_or_default();
    // Kept until the end: no server begins to change what is being looked at.
    match lock(folder)? {
        Lock::Held => of_running(folder, depth, store.as_deref(), stop),
        Lock::Free(_lock) => {
            let mut found = examine(folder, depth, store.as_deref(), stop)?;
            if Catalog::look_into(folder).is_ok() {
                orphan_files::look(folder, &mut found)?;
            }
            Ok(found)
        }
    }
}

/// Verifies a folder that nobody changes, but for what nobody refers to. Files may be in a store instead.
pub(super) fn examine(folder: &Path, depth: Depth, store: Option<&str>, stop: &Stop) -> Result<Found, Error> {
    let mut found = Found::default();
    // What cannot be read as a whole has no parts that could be looked at.
    if let Some(known) = catalog::look(folder, &mut found) {
        found.tables = known.tables.len();
        files::look((folder, store), &known, (depth, stop), &mut found)?;
        log::look((folder, store), &known, &mut found);
    }
    Ok(found)
}

fn of_backup(folder: &Path, depth: Depth, stop: &Stop) -> Result<Found, Error> {
    let manifest = match Manifest::read(folder) {
        Ok(manifest) => manifest,
        Err(error) => {
            let mut found = Found { kind: Kind::Backup, ..Found::default() };
            found.fault(MANIFEST, error.to_string(), ANOTHER_BACKUP);
            return Ok(found);
        }
    };
    let mut broken = BTreeSet::new();
    let mut faults = Found::default();
    for (name, listed) in &manifest.files {
        let path = folder.join(name);
        let problem = match hashed(&path, stop) {
            Ok(found) if found == *listed => continue,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Ok(found) if found.bytes == listed.bytes => {
                "its bytes are not those that were written".to_owned()
            }
            Ok(found) => format!("it has {} bytes, {} were written", found.bytes, listed.bytes),
            Err(_) if fs::symlink_metadata(&path).is_err() => "it is missing".to_owned(),
            Err(error) => error.to_string(),
        };
        broken.insert(name.clone());
        faults.fault(name, problem, ANOTHER_BACKUP);
    }
    let known = |name: &str| name == MANIFEST || manifest.files.contains_key(name);
    for name in orphan_files::all_files(folder)?.into_iter().filter(|name| !known(name)) {
        faults.fault(name, "it is not in the manifest", "move it away: it is no part of the backup");
    }
    let mut found =
        if broken.contains(FILE) { Found::default() } else { examine(folder, depth, None, stop)? };
    // What is known to be broken is told once.
    found.faults.retain(|fault| !broken.contains(&fault.place));
    found.faults.splice(0..0, faults.faults);
    found.kind = Kind::Backup;
    Ok(found)
}

/// A server is at work: one state of the folder is held and looked at.
fn of_running(folder: &Path, depth: Depth, store: Option<&str>, stop: &Stop) -> Result<Found, Error> {
    let hold = match Hold::take(folder, None, stop) {
        Ok(hold) => hold,
        Err(error @ Error::Catalog { .. }) => {
            let mut found = Found { kind: Kind::Running, ..Found::default() };
            found.fault(FILE, error.to_string(), WHOLE_FOLDER);
            return Ok(found);
        }
        Err(error) => return Err(error),
    };
    Ok(Found { kind: Kind::Running, ..examine(hold.path(), depth, store, stop)? })
}

/// Without a catalog nothing is known of tables.
fn without_catalog(folder: &Path) -> Result<Found, Error> {
    if !folder.join("tables").is_dir() {
        return Err(Error::NoData { path: folder.to_path_buf() });
    }
    let mut found = Found::default();
    found.fault(FILE, "it is missing, so that nobody knows which tables there are", WHOLE_FOLDER);
    Ok(found)
}

enum Lock {
    Held,
    /// By us, if there is anything to lock.
    Free(Option<File>),
}

fn lock(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(LOCK_FILE);
    // Without the file no server was ever there. Shared, so that two may look at once.
    let Ok(file) = File::open(&path) else { return Ok(Lock::Free(None)) };
    match file.try_lock_shared() {
        Ok(()) => Ok(Lock::Free(Some(file))),
        Err(TryLockError::WouldBlock) => Ok(Lock::Held),
        Err(TryLockError::Error(error)) => Err(Error::file("lock", &path, error)),
    }
}
