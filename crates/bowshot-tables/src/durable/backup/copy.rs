//! From a data folder to a backup.

use super::hold::Hold;
use super::manifest::{Listed, Manifest, copied, hashed};
use super::{Stop, UNFINISHED, around, check_free, tables_address};
use crate::Error;
use crate::durable::catalog::FILE;
use crate::durable::sync_folder;
use bowshot_object_store::scratch::Scratch;
use bowshot_object_store::{ObjectFolder, private};
use chrono::{SecondsFormat, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Backup {
    /// The data folder; a server may be using it.
    pub data: PathBuf,
    pub into: PathBuf,
    /// Which files it may share.
    pub share: Share,
    /// The object store that has the tables, if they are in one: what is there alone is fetched.
    pub store: Option<ObjectFolder>,
}

/// Which files of a backup may be hard links to existing files: they take no room, and are lost with the same disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    Nothing,
    /// Files of the data folder.
    WithData,
    /// Files of an earlier backup.
    With(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The moment of the state, as RFC 3339 has it.
    pub taken: String,
    pub tables: usize,
    /// Files, the manifest not counted.
    pub files: usize,
    pub bytes: u64,
    /// Bytes of those that are shared.
    pub shared_bytes: u64,
}

/// Copies one state of a data folder, synced, and gives it its name when it is whole. Blocks.
///
/// # Errors
/// When the place is taken, something cannot be read or written, or the data folder is damaged; nothing is left then.
pub fn backup(wanted: &Backup, stop: &Stop) -> Result<Copied, Error> {
    check_free(&wanted.into)?;
    let earlier = match &wanted.share {
        Share::With(folder) => Some((folder.as_path(), Manifest::read(folder)?)),
        Share::Nothing | Share::WithData => None,
    };
    // Before the state: what was committed until now is in it.
    let taken = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let hold = Hold::take(&wanted.data, wanted.store.as_ref(), stop)?;
    if let Some(name) = hold.missing.first() {
        if let (None, Some(address)) = (&wanted.store, tables_address(&wanted.data)?) {
            let (files, first) = (hold.missing.len(), name.clone());
            return Err(Error::OnlyInStore { address, files, first });
        }
        let problem = format!("the file is missing, one of {}", hold.missing.len());
        return Err(Error::Damaged { place: name.clone(), problem });
    }
    let place = around(&wanted.into)?;
    let unfinished =
        Scratch::named(&place, UNFINISHED).map_err(|error| Error::file("write to", &place, error))?;
    let mut copying = Copying {
        from: hold.path(),
        to: unfinished.path(),
        with_data: wanted.share == Share::WithData,
        earlier,
        shared_bytes: 0,
        stop,
    };
    let mut files = BTreeMap::new();
    for name in &hold.files {
        files.insert(name.clone(), copying.file(name)?);
    }
    let shared_bytes = copying.shared_bytes;
    let manifest = Manifest::new(taken, hold.tables, files);
    manifest.write(unfinished.path())?;
    finish(unfinished, manifest.files.keys(), &wanted.into)?;
    Ok(Copied {
        tables: manifest.tables,
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        taken: manifest.taken,
        shared_bytes,
    })
}

struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
    with_data: bool,
    earlier: Option<(&'a Path, Manifest)>,
    shared_bytes: u64,
    stop: &'a Stop,
}

impl Copying<'_> {
    fn file(&mut self, name: &str) -> Result<Listed, Error> {
        let (from, to) = (self.from.join(name), self.to.join(name));
        if let Some(folder) = to.parent() {
            private::folder(folder).map_err(|error| Error::file("make", folder, error))?;
        }
        if let Some(listed) = self.of_earlier(name, &from, &to) {
            self.shared_bytes += listed.bytes;
            return Ok(listed);
        }
        if self.with_data && name != FILE {
            fs::hard_link(&from, &to).map_err(|error| Error::file("link to", &from, error))?;
            let listed = hashed(&to, self.stop)?;
            self.shared_bytes += listed.bytes;
            return Ok(listed);
        }
        copied(&from, &to, self.stop)
    }

    /// The file of the earlier backup under this name, if it is the same: names of rows and models are not used twice.
    fn of_earlier(&self, name: &str, from: &Path, to: &Path) -> Option<Listed> {
        let (folder, manifest) = self.earlier.as_ref()?;
        let is_unique =
            name.ends_with(".model") || name.ends_with(".parquet") && !name.contains("/_delta_log/");
        let listed = manifest.files.get(name).filter(|_| is_unique)?;
        let there = folder.join(name);
        let same = [from, there.as_path()].iter().all(|path| {
            fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == listed.bytes)
        });
        // On another file system it is copied.
        (same && fs::hard_link(&there, to).is_ok()).then(|| listed.clone())
    }
}

/// Makes a folder survive a crash and gives it its name.
pub(super) fn finish<'a>(
    unfinished: Scratch,
    files: impl Iterator<Item = &'a String>,
    name: &Path,
) -> Result<(), Error> {
    let root = unfinished.path();
    let mut folders: BTreeSet<PathBuf> = BTreeSet::from([root.to_path_buf()]);
    for file in files {
        let around = Path::new(file).ancestors().skip(1);
        folders.extend(around.map(|folder| root.join(folder)));
    }
    folders.iter().try_for_each(|folder| sync_folder(folder))?;
    // Takes the place of an empty folder, and of nothing else.
    fs::rename(root, name).map_err(|error| match error.kind() {
        std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists => {
            Error::Occupied { path: name.to_path_buf() }
        }
        _ => Error::file("name", name, error),
    })?;
    sync_folder(&around(name)?)
}
