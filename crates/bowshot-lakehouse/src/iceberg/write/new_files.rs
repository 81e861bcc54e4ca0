//! Files of a table that no snapshot names yet. They are removed when this is dropped, unless a snapshot may name them by then.

use crate::table_folder::TableFolder;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_object_store::{ObjectFolder, Upload};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes collected before they go to the system.
const BUFFER_BYTES: usize = 1 << 20;

/// New files that are removed on drop unless they were committed. Names are below the folder of the table.
#[derive(Debug)]
pub(in super::super) struct NewFiles {
    folder: WriteFolder,
    names: Vec<String>,
    /// Whether a snapshot may name them by now.
    is_shared: bool,
}

#[derive(Debug)]
enum WriteFolder {
    Local(PathBuf),
    Remote(ObjectFolder),
}

#[derive(Debug)]
pub(super) enum Sink {
    Local(BufWriter<File>),
    Remote(Box<Upload>),
    /// What was written belongs to somebody else.
    Taken,
}

impl NewFiles {
    pub(in super::super) fn new(folder: &TableFolder) -> Result<Self> {
        let folder = match folder {
            TableFolder::Local(path) => WriteFolder::Local(path.clone()),
            TableFolder::Remote(folder) => WriteFolder::Remote(folder.objects()?),
        };
        Ok(Self { folder, names: Vec::new(), is_shared: false })
    }

    /// Begins a file under a name that is free. Blocks.
    pub(super) fn begin(&mut self, name: &str) -> Result<Sink> {
        let sink = match &self.folder {
            WriteFolder::Local(folder) => {
                let path = folder.join(name);
                let file = new_file(&path).map_err(|error| failed(&path, &error))?;
                Sink::Local(BufWriter::with_capacity(BUFFER_BYTES, file))
            }
            WriteFolder::Remote(folder) => Sink::Remote(Box::new(folder.begin(name)?)),
        };
        self.names.push(name.to_owned());
        Ok(sink)
    }

    /// Makes the file survive a crash. Blocks.
    pub(super) fn finish(&self, sink: Sink) -> Result<()> {
        let (file, folder) = match (sink, &self.folder) {
            (Sink::Remote(upload), _) => return upload.finish(|| Ok(())),
            (Sink::Local(buffer), WriteFolder::Local(folder)) => (buffer.into_inner(), folder),
            (Sink::Local(_) | Sink::Taken, _) => {
                return Err(Error::internal("a file of a table was finished twice"));
            }
        };
        let file = file.map_err(|error| failed(folder, error.error()))?;
        file.sync_all().map_err(|error| failed(folder, &error))
    }

    /// A whole file. Blocks.
    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut sink = self.begin(name)?;
        sink.write_all(bytes).map_err(|error| failed(Path::new(name), &error))?;
        self.finish(sink)
    }

    /// Makes the names of files on disk survive a crash. Blocks.
    pub(super) fn sync(&self) -> Result<()> {
        let WriteFolder::Local(folder) = &self.folder else { return Ok(()) };
        let mut parents: Vec<PathBuf> =
            self.names.iter().filter_map(|name| Some(folder.join(name).parent()?.to_path_buf())).collect();
        parents.sort_unstable();
        parents.dedup();
        parents.iter().try_for_each(|parent| {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(|error| failed(parent, &error))
        })
    }

    /// Removes files, of which some may be gone already. Blocks.
    pub(super) fn remove(&self, names: &[String]) -> Result<()> {
        match &self.folder {
            WriteFolder::Local(folder) => names
                .iter()
                .try_for_each(|name| match fs::remove_file(folder.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                })
                .map_err(|error| {
                    let message = format!("a file of `{}` cannot be removed: {error}", folder.display());
                    Error::new(ErrorKind::Unavailable, message).with_source(error)
                }),
            WriteFolder::Remote(folder) => folder.remove(names),
        }
    }

    pub(super) fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
    }

    /// Leaves all files but those of these names where they are.
    pub(super) fn keep_all_but(&mut self, useless: Vec<String>) {
        (self.names, self.is_shared) = (useless, false);
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        let names = std::mem::take(&mut self.names);
        if names.is_empty() || self.is_shared {
            return;
        }
        if let Err(error) = self.remove(&names) {
            tracing::warn!(files = names.len(), %error, "files of a table that no snapshot names could not be removed");
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.write(bytes),
            Self::Remote(upload) => upload.write(bytes),
            Self::Taken => Err(io::Error::other("the file is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Local(file) => file.flush(),
            Self::Remote(upload) => upload.flush(),
            Self::Taken => Ok(()),
        }
    }
}

/// Other programs read the files of the table, so that they have the rights that the process gives to new files.
fn new_file(path: &Path) -> io::Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new().create_new(true).write(true).open(path)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("`{}` cannot be written: {error}", path.display()))
        .with_hint("the statement was not committed; run it again when the table's folder is writable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_only_where_a_snapshot_may_name_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = TableFolder::Local(folder.path().to_path_buf());
        let mut files = NewFiles::new(&place).unwrap();
        files.put("data/a", b"a").unwrap();
        files.put("metadata/b", b"b").unwrap();
        files.sync().unwrap();
        assert!(files.put("data/a", b"again").is_err());
        assert_eq!(fs::read(folder.path().join("data/a")).unwrap(), b"a");
        files.keep_all_but(vec!["metadata/b".to_owned()]);
        drop(files);
        assert!(folder.path().join("data/a").exists() && !folder.path().join("metadata/b").exists());
        let mut files = NewFiles::new(&place).unwrap();
        files.put("data/d", b"d").unwrap();
        files.set_shared(true);
        drop(files);
        assert!(folder.path().join("data/d").exists());
        let mut files = NewFiles::new(&place).unwrap();
        files.put("data/c", b"c").unwrap();
        drop(files);
        assert!(!folder.path().join("data/c").exists());
    }
}
