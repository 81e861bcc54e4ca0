//! The folder of a table with its own metadata, on this machine or in an object store. Readers name files relative to the folder;
//! paths in the metadata that lead elsewhere are refused.

use bowshot_formats::data_file::HandlePool;
use bowshot_formats::inspection::KnownFiles;
use bowshot_formats::listed_file::ListedFile;
use bowshot_object_store::file_name::{Compression, Format, Kind};
use bowshot_object_store::secrets::{InForce, same};
use bowshot_object_store::{Error, FileIdentity, RemoteFile, RemoteFolder, RemoteView};
use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long it is believed that a table in an object store cannot be read.
const FAILURE_BELIEVED: Duration = Duration::from_secs(1);

/// The folder over time.
#[derive(Debug, Clone)]
pub enum TableFolder {
    Local(PathBuf),
    Remote(RemoteFolder),
}

/// The folder at one moment.
#[derive(Debug, Clone)]
pub(crate) enum FolderView {
    /// Without links in its path.
    Local(PathBuf),
    Remote(RemoteView),
}

/// That a table in an object store could not be read. It is believed for a moment, and not any more when there are other secrets.
#[derive(Debug)]
pub(crate) struct Failure {
    since: Instant,
    error: Error,
    in_force: Option<Arc<InForce>>,
}

impl Failure {
    /// What is to be believed of a folder; nothing of one on this machine.
    pub(crate) fn of(folder: &TableFolder, error: &Error) -> Option<Self> {
        let TableFolder::Remote(remote) = folder else { return None };
        Some(Self { since: Instant::now(), error: error.clone(), in_force: remote.in_force() })
    }

    /// The error, as long as it is believed.
    pub(crate) fn believed(&self, folder: &TableFolder) -> Option<Error> {
        let TableFolder::Remote(remote) = folder else { return None };
        let counts = self.since.elapsed() < FAILURE_BELIEVED
            && same(self.in_force.as_ref(), remote.in_force().as_ref());
        counts.then(|| self.error.clone())
    }
}

impl TableFolder {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Local(path) => path.clone(),
            Self::Remote(folder) => folder.path(),
        }
    }

    /// The folder as it is now. Blocks.
    pub(crate) fn view(&self) -> Result<FolderView, Error> {
        match self {
            Self::Local(path) => {
                let whole = fs::canonicalize(path).map_err(|error| Error::io(path, error))?;
                Ok(FolderView::Local(whole))
            }
            Self::Remote(folder) => folder.view().map(FolderView::Remote),
        }
    }
}

impl FolderView {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Local(root) if name.is_empty() => root.clone(),
            Self::Local(root) => root.join(name),
            Self::Remote(view) => view.path(name),
        }
    }

    /// Whether nothing that was made of earlier views is to be used.
    pub(crate) fn is_renewed(&self) -> bool {
        matches!(self, Self::Remote(view) if view.is_renewed)
    }

    /// The name from the folder on, of a path or an address as others write it.
    pub(crate) fn name_of<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::Local(root) => {
                let rest = of_this_machine(path)?.strip_prefix(root.to_str()?)?;
                // The root of the file system ends in a slash itself.
                let is_part = rest.starts_with('/') || root.as_os_str() == "/";
                is_part.then_some(Cow::Borrowed(rest))
            }
            Self::Remote(view) => view.name_of(path).map(Cow::Owned),
        }
    }

    /// Names directly in a folder below. Blocks.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, Error> {
        let path = match self {
            Self::Remote(view) => return Ok(view.names(folder)),
            Self::Local(_) => self.path(folder),
        };
        let failed = |error| Error::io(&path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    /// A file as it is now. Blocks.
    pub(crate) fn find(&self, name: &str) -> Result<ListedFile, Error> {
        self.find_all(&[name]).pop().unwrap_or_else(|| Err(Error::Missing { path: self.path(name) }))
    }

    pub(crate) fn find_all(&self, names: &[&str]) -> Vec<Result<ListedFile, Error>> {
        match self {
            Self::Local(_) => names.iter().map(|name| local(self.path(name))).collect(),
            Self::Remote(view) => {
                let files = view.files(names).into_iter();
                files.map(|file| file.map(|file| found_remote(&file))).collect()
            }
        }
    }

    /// The same, but known files are not asked for again in a store: a file of these formats never changes.
    pub(crate) fn find_unless_known(
        &self,
        names: &[String],
        known: &KnownFiles,
    ) -> Result<Vec<ListedFile>, Error> {
        let known_as = |name: &String| {
            let is_asked_for = matches!(self, Self::Remote(view) if !view.is_listed());
            let (data, _) = known.get(&self.path(name)).filter(|_| is_asked_for)?;
            Some(found(data.path().to_path_buf(), *data.identity(), data.as_remote().cloned()))
        };
        let there: Vec<Option<ListedFile>> = names.iter().map(known_as).collect();
        let open = names.iter().zip(&there).filter(|(_, known)| known.is_none());
        let open: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
        let mut asked = self.find_all(&open).into_iter();
        let missing = |name: &String| Err(Error::Missing { path: self.path(name) });
        let files = there.into_iter().zip(names);
        files
            .map(|(file, name)| file.map_or_else(|| asked.next().unwrap_or_else(|| missing(name)), Ok))
            .collect()
    }

    /// All bytes of a file that has at most so many. Blocks.
    pub(crate) fn read(&self, name: &str, most: u64, pool: &Arc<HandlePool>) -> Result<Vec<u8>, Error> {
        let data = self.find(name)?.data(pool);
        if data.size() > most {
            return Err(Error::corrupt(data.path(), "it is too large"));
        }
        let mut bytes = Vec::new();
        let mut reader = data.reader(0);
        let fault = reader.fault();
        let read = reader.read_to_end(&mut bytes);
        data.close();
        match read {
            Ok(_) => Ok(bytes),
            Err(error) => Err(fault.get().cloned().unwrap_or_else(|| Error::io(data.path(), error))),
        }
    }
}

fn local(path: PathBuf) -> Result<ListedFile, Error> {
    let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    if !metadata.is_file() {
        return Err(Error::NotRegular { path });
    }
    Ok(found(path, FileIdentity::new(&metadata, SystemTime::now()), None))
}

fn found_remote(file: &Arc<RemoteFile>) -> ListedFile {
    let identity = FileIdentity::of_remote(file.key(), file.content());
    found(file.path().to_path_buf(), identity, Some(Arc::clone(file)))
}

fn found(path: PathBuf, identity: FileIdentity, remote: Option<Arc<RemoteFile>>) -> ListedFile {
    let kind =
        Kind { format: Format::Parquet, compression: Compression::None, tabs: false, stem: String::new() };
    ListedFile { shown: shown(&path), path, folders: Vec::new(), kind, identity, remote }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The path of `file:/path`, `file:///path` and of what has no scheme.
pub(crate) fn of_this_machine(name: &str) -> Option<&str> {
    let path = match name.strip_prefix("file:") {
        Some(rest) => rest.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(rest),
        None => name,
    };
    (path.starts_with('/') && !path.starts_with("//")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_at_the_folder() {
        let folder = FolderView::Local(PathBuf::from("/data/t"));
        for (path, wanted) in [
            ("/data/t/data/x.parquet", Some("/data/x.parquet")),
            ("file:///data/t/x", Some("/x")),
            ("file:/data/t/x", Some("/x")),
            ("/data/t", None),
            ("/data/table2/x", None),
            ("file://host/data/t/x", None),
            ("//data/t/x", None),
            ("data/t/x", None),
            ("s3://data/t/x", None),
        ] {
            assert_eq!(folder.name_of(path).as_deref(), wanted, "{path}");
        }
    }

    #[test]
    fn small_files_are_read_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("x"), "hello").unwrap();
        let view = TableFolder::Local(place.path().to_path_buf()).view().unwrap();
        let pool = HandlePool::new(4);
        assert_eq!(view.read("x", 5, &pool).unwrap(), b"hello");
        assert!(view.read("x", 4, &pool).is_err() && view.read("y", 4, &pool).is_err());
        assert_eq!(view.names("").unwrap(), ["x"]);
        assert!(matches!(view.find(""), Err(Error::NotRegular { .. })));
    }
}
