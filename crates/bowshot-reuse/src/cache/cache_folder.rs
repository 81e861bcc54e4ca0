//! The folder of the cache: created if needed, marked as ours, and locked by one server. Files that a cache has left there are removed at the
//! start, so a folder with other files is refused.

use crate::cache::Error;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Marks the folder as ours; locked while a server uses it.
const MARK: &str = "bowshot-cache.lock";
/// A folder of file systems, which is ignored.
const OF_FILE_SYSTEMS: &str = "lost+found";

/// Holds a folder until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: File,
    /// Kept open, so that its inode is not reused.
    folder: File,
}

impl Claim {
    pub(crate) fn take(folder: &Path) -> Result<Self, Error> {
        let disk = |source| Error::Disk { path: folder.to_path_buf(), source };
        private(folder).map_err(disk)?;
        let mark = folder.join(MARK);
        if !mark.exists()
            && let Some(file) = foreign(folder).map_err(disk)?
        {
            return Err(Error::Foreign { folder: folder.to_path_buf(), file });
        }
        Self::mark(folder)
    }

    fn mark(folder: &Path) -> Result<Self, Error> {
        let disk = |source| Error::Disk { path: folder.to_path_buf(), source };
        let mark = folder.join(MARK);
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.create(true).truncate(false).write(true).open(mark).map_err(disk)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { lock, folder: File::open(folder).map_err(disk)? }),
            Err(TryLockError::WouldBlock) => Err(Error::Held { folder: folder.to_path_buf() }),
            Err(TryLockError::Error(error)) => Err(disk(error)),
        }
    }

    /// Takes the folder again if it, or its mark, was removed or replaced.
    pub(crate) fn renew(&mut self, folder: &Path) -> Result<(), Error> {
        if !is_at(&self.folder, folder) {
            *self = Self::take(folder)?;
        } else if !is_at(&self.lock, &folder.join(MARK)) {
            *self = Self::mark(folder)?;
        }
        Ok(())
    }
}

/// Whether an open file still has the path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (ours, there) = (file.metadata().map(number), fs::metadata(path).map(number));
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

/// On other systems open files cannot be removed.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

/// Creates a private folder if it does not exist.
pub(crate) fn private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).truncate(true).write(true).open(path)
}

/// Writes a private file in place of one that may be there.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let begun = path.with_extension("begun");
    create(&begun)?.write_all(content)?;
    fs::rename(&begun, path)
}

/// An entry of an unmarked folder, if there is any: names alone do not show whose it is.
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
}
