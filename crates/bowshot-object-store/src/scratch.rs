//! A folder for what ends with the process: a new one for each, beside those of other processes, and those of processes that
//! were killed are removed first. A lock tells who lives.
//!
//! ```text
//! BASE/bowshot-spill-ID.lock   locked as long as the process lives
//! BASE/bowshot-spill-ID/       what it puts there
//! ```

use crate::private;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

const PREFIX: &str = "bowshot-spill-";
const LOCK: &str = "lock";

/// A temporary folder of this process. Dropping it removes the folder.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes a folder in `base`, which is made if need be, and removes those that nobody uses any more.
    pub fn take(base: &Path) -> io::Result<Self> {
        Self::named(base, PREFIX)
    }

    /// The same under another prefix.
    pub fn named(base: &Path, prefix: &str) -> io::Result<Self> {
        private::folder(base)?;
        let removed = remove_abandoned(base, prefix);
        if removed > 0 {
            tracing::debug!(removed, "removed files that killed processes left");
        }
        let path = base.join(format!("{prefix}{}", Uuid::new_v4()));
        let lock_path = path.with_extension(LOCK);
        let lock = private::new_file(&lock_path)?;
        lock.try_lock()?;
        private::folder(&path)?;
        Ok(Self { path, lock_path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.lock_path);
    }
}

/// Removes what processes that were killed have left in `base` under a prefix; gives their number.
pub fn remove_abandoned(base: &Path, prefix: &str) -> usize {
    let Ok(entries) = fs::read_dir(base) else { return 0 };
    let locks = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && path.extension().is_some_and(|ending| ending == LOCK)
    });
    let is_abandoned =
        |path: &PathBuf| File::options().write(true).open(path).is_ok_and(|lock| lock.try_lock().is_ok());
    let abandoned: Vec<PathBuf> = locks.filter(is_abandoned).collect();
    abandoned.iter().for_each(|lock| remove(&lock.with_extension(""), lock));
    abandoned.len()
}

/// The folder first: without its lock nobody would find it again.
fn remove(path: &Path, lock: &Path) {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(lock),
    };
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "cannot remove an unused folder");
    }
}

/// Whether a folder lies in memory instead of on a disk, as far as the system says.
pub fn is_in_memory(path: &Path) -> bool {
    let Ok(mounts) = fs::read_to_string("/proc/self/mounts") else { return false };
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    is_ram(&mounts, &path)
}

/// Free bytes for this user on the file system of a folder, or of the nearest folder above that exists.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let absolute = std::path::absolute(path).ok()?;
    let there = absolute.ancestors().find(|folder| folder.exists())?;
    let about = rustix::fs::statvfs(there).ok()?;
    about.f_bavail.checked_mul(about.f_frsize)
}

/// The kind of file system that a folder lies on, as the system calls it.
pub fn file_system(path: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let absolute = std::path::absolute(path).ok()?;
    let there = absolute.ancestors().find(|folder| folder.exists())?.canonicalize().ok()?;
    mounted(&mounts, &there).map(|(_, kind)| kind.to_owned())
}

fn is_ram(mounts: &str, path: &Path) -> bool {
    mounted(mounts, path).is_some_and(|(_, kind)| matches!(kind, "tmpfs" | "ramfs"))
}

/// Length of the place and kind of the file system that a path lies on.
fn mounted<'a>(mounts: &'a str, path: &Path) -> Option<(usize, &'a str)> {
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let place = words.next()?.replace("\\040", " ");
        let kind = words.next()?;
        path.starts_with(&place).then_some((place.len(), kind))
    });
    // Of several in one place the last one counts.
    places.max_by_key(|(length, _)| *length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dead_processes_left_goes_and_what_is_used_stays() {
        let base = tempfile::tempdir().unwrap();
        let used = Scratch::take(base.path()).unwrap();
        fs::write(used.path().join("x"), "x").unwrap();
        let dead = base.path().join("bowshot-spill-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("y"), "y").unwrap();
        fs::write(dead.with_extension(LOCK), "").unwrap();
        fs::create_dir(base.path().join("bowshot-spill-foreign")).unwrap();
        let next = Scratch::take(base.path()).unwrap();
        assert!(used.path().join("x").exists() && next.path().exists() && !dead.exists());
        assert!(base.path().join("bowshot-spill-foreign").exists());
        let path = next.path().to_path_buf();
        drop(next);
        assert!(!path.exists() && !path.with_extension(LOCK).exists());
    }

    #[test]
    fn the_mount_around_a_folder_tells() {
        let mounts = "overlay / overlay rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/sda /tmp/disk ext4 rw 0 0\n";
        assert!(is_ram(mounts, Path::new("/tmp/x")));
        assert!(!is_ram(mounts, Path::new("/tmp/disk/x")));
        assert!(!is_ram(mounts, Path::new("/var/tmp")));
        assert!(!is_ram(mounts, Path::new("/tmpx")));
    }
}
