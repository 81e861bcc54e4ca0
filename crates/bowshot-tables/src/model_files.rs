//! Files of models, each under the SHA-256 of its bytes: in the data folder if there is one, else in memory. Which model a
//! file belongs to, the notes of the snapshot say; here are only bytes. A file is on disk before a note names it, and
//! stays for a while after no note does, for those who still work with an earlier snapshot.

use super::Error;
use super::durable::{make_folder, sync_folder};
use bowshot_object_store::private;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// Bytes of all files in memory.
const MEMORY_BYTES: usize = 1 << 30;
const ENDING: &str = "model";

#[derive(Debug)]
pub struct ModelFiles {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Folder(PathBuf),
    Memory(Mutex<HashMap<String, Kept>>),
}

#[derive(Debug)]
struct Kept {
    bytes: Arc<[u8]>,
    since: Instant,
}

impl ModelFiles {
    pub(super) fn in_memory() -> Self {
        Self { place: Place::Memory(Mutex::default()) }
    }

    pub(super) fn open(data: &Path) -> Result<Self, Error> {
        let folder = data.join("models");
        make_folder(&folder)?;
        sync_folder(data)?;
        Ok(Self { place: Place::Folder(folder) })
    }

    /// Keeps a file, and gives the SHA-256 that it is found by. Blocks until it is on disk.
    pub fn put(&self, bytes: Vec<u8>) -> Result<String, Error> {
        let name = sha256(&bytes);
        match &self.place {
            Place::Folder(folder) => write(folder, &name, &bytes)?,
            Place::Memory(kept) => {
                let mut kept = kept.lock();
                let there: usize = kept.values().map(|kept| kept.bytes.len()).sum();
                if !kept.contains_key(&name) && there.saturating_add(bytes.len()) > MEMORY_BYTES {
                    return Err(Error::TooMuch(format!(
                        "the models in memory would have more than {MEMORY_BYTES} bytes"
                    )));
                }
                kept.insert(name.clone(), Kept { bytes: bytes.into(), since: Instant::now() });
            }
        }
        Ok(name)
    }

    /// The bytes of a file; `None` if it is not there, or has changed. Blocks.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Arc<[u8]>>, Error> {
        match &self.place {
            Place::Memory(kept) => Ok(kept.lock().get(name).map(|kept| Arc::clone(&kept.bytes))),
            Place::Folder(folder) => {
                let path = path_of(folder, name);
                match fs::read(&path) {
                    Ok(bytes) if sha256(&bytes) == name => Ok(Some(bytes.into())),
                    Ok(_) => Ok(None),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(Error::file("read", &path, error)),
                }
            }
        }
    }

    /// Removes the files that nobody names and that are older than `age`. What cannot be removed stays for the next time.
    pub fn sweep(&self, named: &HashSet<String>, age: Duration) {
        match &self.place {
            Place::Memory(kept) => {
                kept.lock().retain(|name, kept| named.contains(name) || kept.since.elapsed() < age);
            }
            Place::Folder(folder) => {
                let Ok(entries) = fs::read_dir(folder) else { return };
                for entry in entries.flatten() {
                    let (path, metadata) = (entry.path(), entry.metadata());
                    let name = path.file_stem().unwrap_or_default().to_string_lossy();
                    let old = |written: SystemTime| written.elapsed().is_ok_and(|passed| passed >= age);
                    let is_old =
                        age.is_zero() || metadata.and_then(|metadata| metadata.modified()).is_ok_and(old);
                    if is_ours(&path) && is_old && !named.contains(name.as_ref()) {
                        remove(&path);
                    }
                }
            }
        }
    }
}

/// Writes a whole file under its name, also in the place of an existing one, which then is new and complete.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let beside = folder.join(format!("{}.{ENDING}", Uuid::new_v4()));
    let written = private::new_file(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path_of(folder, name))
    });
    if let Err(error) = written {
        remove(&beside);
        return Err(Error::file("write", &path_of(folder, name), error));
    }
    sync_folder(folder)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a file of a model that nobody needs stays");
        }
        _ => {}
    }
}

fn is_ours(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (tempfile::TempDir, [ModelFiles; 2]) {
        let folder = tempfile::tempdir().expect("a folder");
        let files = ModelFiles::open(folder.path()).expect("opens");
        (folder, [files, ModelFiles::in_memory()])
    }

    #[test]
    fn files_are_found_by_their_hash_until_nobody_names_them() {
        let (_folder, places) = both();
        for files in places {
            let one = files.put(b"abc".to_vec()).expect("is kept");
            assert_eq!(one, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
            let other = files.put(b"other".to_vec()).expect("is kept");
            let named = HashSet::from([one.clone()]);
            files.sweep(&named, Duration::from_secs(60));
            assert!(files.get(&other).expect("reads").is_some(), "it is young");
            files.sweep(&named, Duration::ZERO);
            assert!(files.get(&other).expect("reads").is_none());
            assert_eq!(files.get(&one).expect("reads").as_deref(), Some(b"abc".as_slice()));
        }
    }

    #[test]
    fn a_file_that_was_changed_is_none() {
        let (folder, [files, _]) = both();
        let name = files.put(b"abc".to_vec()).expect("is kept");
        let path = folder.path().join("models").join(format!("{name}.model"));
        fs::write(&path, b"abd").expect("writes");
        assert!(files.get(&name).expect("reads").is_none());
        files.put(b"abc".to_vec()).expect("is kept");
        assert!(files.get(&name).expect("reads").is_some(), "written anew");
    }
}
