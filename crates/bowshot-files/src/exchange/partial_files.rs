//! Files that are still being written, under hidden names. A lock marks those with a live writer; others are left by killed servers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const PREFIX: &str = ".bowshot-";
const SUFFIX: &str = ".tmp";
/// Entries of the folder and those below that are looked at.
const MAX_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 16;

/// Makes a file that is there for nobody else, and locks it.
pub(super) fn begin(folder: &Path) -> io::Result<(PathBuf, File)> {
    let path = folder.join(format!("{PREFIX}{}{SUFFIX}", Uuid::new_v4()));
    let file = File::options().write(true).create_new(true).open(&path)?;
    // Where the file system knows no locks, the file is taken for one that nobody writes, at a start of another server.
    if let Err(error) = file.try_lock() {
        tracing::debug!(path = %path.display(), %error, "a file on its way out is not locked");
    }
    Ok((path, file))
}

/// Removes what servers have left that were killed. To be called at the start.
pub fn remove_unfinished(folder: &Path) {
    let (mut removed, mut seen) = (0_usize, 0_usize);
    let mut folders = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && is_ours(&entry.file_name().to_string_lossy()) {
                removed += usize::from(removed_if_abandoned(&entry.path()));
            }
        }
        if seen > MAX_ENTRIES {
            tracing::warn!("the exchange folder is too large to be searched for unfinished files");
            break;
        }
    }
    if removed > 0 {
        tracing::info!(removed, "unfinished files of servers that were killed are removed");
    }
}

fn is_ours(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    id.is_some_and(|id| Uuid::parse_str(id).is_ok())
}

fn removed_if_abandoned(path: &Path) -> bool {
    let abandoned = File::options().write(true).open(path).is_ok_and(|file| file.try_lock().is_ok());
    abandoned && fs::remove_file(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_nobody_writes_go() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let (dead, file) = begin(&below).unwrap();
        drop(file);
        let (alive, _file) = begin(root.path()).unwrap();
        let foreign = root.path().join(".bowshot-notes.tmp");
        fs::write(&foreign, "x").unwrap();
        remove_unfinished(root.path());
        assert!(!dead.exists() && alive.exists() && foreign.exists());
    }
}
