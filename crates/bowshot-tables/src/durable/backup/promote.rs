//! A backup becomes a data folder, without a copy of it.

use super::copy::Copied;
use super::manifest::{MANIFEST, Manifest};
use super::{Stop, around, check_free, restore};
use crate::Error;
use crate::durable::catalog::FILE;
use crate::durable::sync_folder;
use crate::durable::verify::{Depth, examine};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

/// Makes a backup a data folder by giving it another name, when its catalog and files fit one another. Their bytes were compared
/// when they were copied. On another file system it is restored, and stays. Blocks.
///
/// # Errors
/// When the place is taken, something cannot be read or written, or the backup is damaged; then it is still a backup.
pub fn promote(from: &Path, data: &Path, stop: &Stop) -> Result<Copied, Error> {
    check_free(data)?;
    let manifest = Manifest::read(from)?;
    let found = examine(from, Depth::Footers, None, stop)?;
    if let Some(fault) = found.faults.into_iter().next() {
        return Err(Error::Damaged { place: fault.place, problem: fault.problem });
    }
    match fs::rename(from, data) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::CrossesDevices => return restore(from, data, stop),
        Err(error) => return Err(Error::file("name", data, error)),
    }
    // A data folder that still has it is served as well; it would be taken for a backup by `verify`.
    let list = data.join(MANIFEST);
    fs::remove_file(&list).map_err(|error| Error::file("remove", &list, error))?;
    sync_folder(data)?;
    sync_folder(&around(data)?)?;
    sync_folder(&around(from)?)?;
    Ok(Copied {
        tables: manifest.tables,
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        taken: manifest.taken,
        shared_bytes: 0,
    })
}

/// What a commit changes of a data folder: sizes and times of the catalog and of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitMark([Option<(u64, SystemTime)>; 2]);

impl CommitMark {
    pub fn read(data: &Path) -> Self {
        let mark = |found: Metadata| Some((found.len(), found.modified().ok()?));
        let read = |name: String| fs::metadata(data.join(name)).ok().and_then(mark);
        Self([read(FILE.to_owned()), read(format!("{FILE}-wal"))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_the_catalog_changes_the_mark() {
        let data = tempfile::tempdir().expect("folder");
        let empty = CommitMark::read(data.path());
        fs::write(data.path().join(FILE), "x").expect("writes");
        let catalog = CommitMark::read(data.path());
        fs::write(data.path().join(format!("{FILE}-wal")), "x").expect("writes");
        assert!(empty != catalog && catalog != CommitMark::read(data.path()));
        assert_eq!(catalog, CommitMark([catalog.0[0], None]));
    }
}
