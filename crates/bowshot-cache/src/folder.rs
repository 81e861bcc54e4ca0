//! The folder of the cached joins: made if need be, told from folders of other programs, and held by one server. What the
//! cache has left there is removed at the start, so it must not be a folder that holds anything else.

use crate::Error;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Says whose the folder is; locked as long as somebody uses it.
const MARK: &str = "bowshot-cache.lock";
/// What file systems have in their uppermost folder.
const OF_FILE_SYSTEMS: &str = "lost+found";

/// Holds a folder until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    _lock: File,
}

impl Claim {
    /// Takes a folder.
    ///
    /// # Errors
    /// [`Error::Foreign`] if it holds files of others, [`Error::Held`] if another server uses it, [`Error::Disk`] if it
    /// cannot be made or written.
    pub(crate) fn take(folder: &Path) -> Result<Self, Error> {
        let disk = |source| Error::Disk { path: folder.to_path_buf(), source };
        private(folder).map_err(disk)?;
        let mark = folder.join(MARK);
        if !mark.exists()
            && let Some(file) = foreign(folder).map_err(disk)?
        {
            return Err(Error::Foreign { folder: folder.to_path_buf(), file });
        }
        let lock = File::options().create(true).truncate(false).write(true).open(&mark).map_err(disk)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::Held { folder: folder.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(disk(error)),
        }
    }
}

/// Makes a folder that nobody else may look into, if it is not there.
pub(crate) fn private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Makes a file that nobody else may read, whatever the folder says.
///
/// # Errors
/// What the file system says.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).truncate(true).write(true).open(path)
}

/// Something in a folder that was not marked yet, if there is anything: names alone do not tell whose it is.
fn foreign(folder: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != OF_FILE_SYSTEMS {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_others_are_left_alone() {
        for name in
            ["rows.arrow", "20211231.arrow", "20211231.json", "history.json", "notes.txt", "12.parquet"]
        {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join(name), "theirs").expect("a file");
            assert!(matches!(Claim::take(folder.path()), Err(Error::Foreign { .. })), "{name}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(OF_FILE_SYSTEMS)).expect("a folder");
        drop(Claim::take(folder.path()).expect("free"));
        for name in ["12.arrow", "12.json", "history.json", "13.begun"] {
            fs::write(folder.path().join(name), "ours").expect("a file");
        }
        assert!(Claim::take(folder.path()).is_ok(), "what comes later is ours");
    }

    #[test]
    fn one_server_has_a_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = Claim::take(folder.path()).expect("free");
        assert!(matches!(Claim::take(folder.path()), Err(Error::Held { .. })));
        drop(held);
        assert!(Claim::take(folder.path()).is_ok());
    }
}
