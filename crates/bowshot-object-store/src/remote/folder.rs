//! A folder of a bucket for the server's own files. Calls block, up to the configured timeout. Names are relative to the folder, with
//! `/` between their parts. A new file appears complete or not at all, and replaces nothing.

use super::client::{Client, Shared, Stores};
use super::fault::Fault;
use super::file::{RemoteFile, SEQUENTIAL_BYTES};
use super::io::Io;
use super::store_pool::StorePool;
use super::upload::Upload;
use crate::{Error as FileError, private};
use bowshot_api::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::future::join_all;
use object_store::path::Path as Location;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const MAX_LISTED: usize = 500_000;
/// Objects that are removed at the same time, and with one wait.
const PARALLEL: usize = 8;
const REMOVED_TOGETHER: usize = 256;
/// Bytes of an object that is read in one piece.
const MAX_SMALL_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone)]
pub struct ObjectFolder {
    client: Arc<Client>,
    base: Location,
    /// Shorter than the time of the settings.
    limit: Option<Duration>,
}

/// A small object, with what tells its content from a later one.
#[derive(Debug, Clone)]
pub struct Small {
    pub bytes: Bytes,
    pub version: UpdateVersion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub size: u64,
}

impl ObjectFolder {
    pub(super) fn new(client: Arc<Client>, base: Location) -> Self {
        Self { client, base, limit: None }
    }

    /// The same, waiting no longer than this for each answer.
    pub fn within(&self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self.clone() }
    }

    /// `s3://bucket/prefix`
    pub fn address(&self) -> String {
        match self.base.as_ref() {
            "" => self.client.root.clone(),
            base => format!("{}/{base}", self.client.root),
        }
    }

    pub fn address_of(&self, name: &str) -> String {
        format!("{}/{name}", self.address())
    }

    /// A small object; `None` if there is none of that name.
    pub fn get(&self, name: &str) -> Result<Option<Small>> {
        let location = self.location(name);
        let got = self.ask(|client| async move {
            let way = client.way(&location)?;
            let answer = way.stores.patient.get_opts(&location, GetOptions::default()).await;
            let answer = answer.map_err(|error| way.fault(&error))?;
            if answer.meta.size > MAX_SMALL_BYTES {
                return Err(Fault::Strange("a file is larger than its limit"));
            }
            let (e_tag, version) = (answer.meta.e_tag.clone(), answer.meta.version.clone());
            let bytes = answer.bytes().await.map_err(|error| way.fault(&error))?;
            Ok(Small { bytes, version: UpdateVersion { e_tag, version } })
        });
        match got {
            Ok(small) => Ok(Some(small)),
            Err(Fault::Missing) => Ok(None),
            Err(fault) => Err(self.failed("read", name, &fault)),
        }
    }

    /// Makes a small object under a name that must be free; false if it is taken, by us if the first answer was lost.
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.put(name, bytes, PutMode::Create)
    }

    /// Puts another content in the place of exactly this one; false if it is another one by now.
    pub fn replace(&self, name: &str, bytes: Vec<u8>, version: UpdateVersion) -> Result<bool> {
        self.put(name, bytes, PutMode::Update(version))
    }

    /// Puts a content there, whatever was there before.
    pub fn overwrite(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.put(name, bytes, PutMode::Overwrite).map(drop)
    }

    fn put(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<bool> {
        let location = self.location(name);
        let put = self.ask(|client| async move {
            let options = PutOptions { mode, ..PutOptions::default() };
            let way = client.way(&location)?;
            let put = way.stores.patient.put_opts(&location, PutPayload::from(bytes), options).await;
            put.map(drop).map_err(|error| way.fault(&error))
        });
        match put {
            Ok(()) => Ok(true),
            Err(Fault::Exists | Fault::Changed) => Ok(false),
            Err(fault) => Err(self.failed("write", name, &fault)),
        }
    }

    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        let (client, location) = (Arc::clone(&self.client), self.location(name));
        // Counted and bounded by the client.
        let found = self.client.shared.io.wait(async move { client.head(&location).await });
        match found.and_then(|found| found) {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Fault::Missing) => Ok(None),
            Err(fault) => Err(self.failed("read", name, &fault)),
        }
    }

    /// All objects below a folder; of all when it is empty.
    pub fn list(&self, below: &str) -> Result<Vec<Listed>> {
        self.list_some(below, MAX_LISTED)
    }

    pub fn is_empty(&self) -> Result<bool> {
        let (client, prefix) = (Arc::clone(&self.client), self.base.clone());
        let found = self.client.shared.io.wait(async move { client.list(&prefix, 0).await });
        let found = found.and_then(|found| found).map_err(|fault| self.failed("list", "", &fault))?;
        Ok(found.is_empty())
    }

    fn list_some(&self, below: &str, limit: usize) -> Result<Vec<Listed>> {
        let (client, prefix) = (Arc::clone(&self.client), self.location(below));
        let found = self.client.shared.io.wait(async move { client.list(&prefix, limit).await });
        let found = found.and_then(|found| found).map_err(|fault| self.failed("list", below, &fault))?;
        if found.len() > limit {
            return Err(self.failed("list", below, &Fault::Strange("it has too many files")));
        }
        let named = found.iter().filter_map(|meta| {
            let name = self.name_of(&meta.location)?;
            Some(Listed { name, size: meta.size })
        });
        Ok(named.collect())
    }

    /// Names of the folders directly in this one.
    pub fn folders(&self) -> Result<Vec<String>> {
        let prefix = self.base.clone();
        let found = self.ask(|client| async move {
            let way = client.way(&prefix)?;
            let prefix = Some(&prefix).filter(|prefix| !prefix.as_ref().is_empty());
            way.stores.patient.list_with_delimiter(prefix).await.map_err(|error| way.fault(&error))
        });
        let found = found.map_err(|fault| self.failed("list", "", &fault))?;
        Ok(found.common_prefixes.iter().filter_map(|folder| self.name_of(folder)).collect())
    }

    /// Removes objects; those that are not there any more are no errors.
    pub fn remove(&self, names: &[String]) -> Result<()> {
        for some in names.chunks(REMOVED_TOGETHER) {
            let locations: Vec<Location> = some.iter().map(|name| self.location(name)).collect();
            let removed = self.ask(|client| async move {
                for few in locations.chunks(PARALLEL) {
                    let mut removing = Vec::with_capacity(few.len());
                    for location in few {
                        removing.push(removed(&client, location));
                    }
                    join_all(removing).await.into_iter().collect::<std::result::Result<(), Fault>>()?;
                }
                Ok(())
            });
            let first = some.first().map(String::as_str).unwrap_or_default();
            removed.map_err(|fault| self.failed("remove", first, &fault))?;
        }
        Ok(())
    }

    /// A file under a name that nobody else has, to be written part by part.
    pub fn begin(&self, name: &str) -> Result<Upload> {
        Upload::begin(Arc::clone(&self.client), self.location(name), &self.address_of(name), false)
    }

    /// Copies a local file to a name that nobody else has. It is there as a whole when this comes back without an error.
    pub fn upload(&self, name: &str, from: &Path) -> Result<()> {
        let shown = self.address_of(name);
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Unavailable, format!("`{shown}` cannot be written: {error}"))
                .with_hint("it was not committed; run the statement again when the store answers")
        };
        let mut file = File::open(from).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let sent = self.begin(name).and_then(|mut upload| {
            io::copy(&mut file, &mut upload).map_err(failed)?;
            upload.finish(|| Ok(()))
        });
        match sent {
            // Nobody else gives this name: an answer was lost, and the next attempt found what the first one has put there.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        match self.size(name)? {
            Some(there) if there == bytes => Ok(()),
            Some(there) => Err(failed(io::Error::other(format!("it has {there} bytes, expected {bytes}")))),
            None => Err(failed(io::Error::other("the store accepted it, and does not have it"))),
        }
    }

    pub fn file(&self, name: &str) -> std::result::Result<Arc<RemoteFile>, FileError> {
        let path = PathBuf::from(self.address_of(name));
        let (client, location) = (Arc::clone(&self.client), self.location(name));
        let found = self.client.shared.io.wait(async move { client.head(&location).await });
        let meta = found.and_then(|found| found).map_err(|fault| match fault {
            Fault::Missing => FileError::Gone { path: path.clone() },
            other => other.at(&path),
        })?;
        Ok(RemoteFile::new(&self.client, &meta, path, &Arc::default()))
    }

    /// Copies a file to a local path, where it is as a whole or not at all.
    pub fn fetch(&self, name: &str, to: &Path, beside: &Path) -> std::result::Result<(), FileError> {
        let file = self.file(name)?;
        let size = file.content().size;
        let local = |error: io::Error| FileError::io(to, error);
        let copied = private::new_file(beside).map_err(local).and_then(|mut copy| {
            let mut at = 0;
            while at < size {
                let end = size.min(at + SEQUENTIAL_BYTES as u64);
                copy.write_all(&file.read_blocking(at..end)?).map_err(local)?;
                at = end;
            }
            copy.sync_all().map_err(local)
        });
        let named = copied.and_then(|()| fs::rename(beside, to).map_err(local));
        if named.is_err() && beside.exists() && fs::remove_file(beside).is_err() {
            tracing::warn!(path = %beside.display(), "a part of a file is removed at the next start");
        }
        named
    }

    fn location(&self, name: &str) -> Location {
        name.split('/').filter(|part| !part.is_empty()).fold(self.base.clone(), |at, part| at.join(part))
    }

    fn name_of(&self, location: &Location) -> Option<String> {
        let below = match self.base.as_ref() {
            "" => location.as_ref(),
            base => location.as_ref().strip_prefix(base)?.strip_prefix('/')?,
        };
        Some(below.trim_end_matches('/').to_owned())
    }

    fn ask<T, F>(&self, work: impl FnOnce(Arc<Client>) -> F) -> std::result::Result<T, Fault>
    where
        F: Future<Output = std::result::Result<T, Fault>> + Send + 'static,
        T: Send + 'static,
    {
        let (client, limit) = (Arc::clone(&self.client), self.limit);
        let work = work(Arc::clone(&client));
        self.client.shared.io.wait(async move {
            let done = client.counted(work);
            match limit {
                Some(limit) => tokio::time::timeout(limit, done).await.unwrap_or(Err(Fault::Late(limit))),
                None => done.await,
            }
        })?
    }

    fn failed(&self, doing: &str, name: &str, fault: &Fault) -> Error {
        let place = if name.is_empty() { self.address() } else { self.address_of(name) };
        let reason = match fault {
            Fault::Missing => "the bucket does not exist".to_owned(),
            other => other.to_string(),
        };
        Error::new(ErrorKind::Unavailable, format!("cannot {doing} `{place}`: {reason}"))
            .with_hint(fault.hint())
    }
}

async fn removed(client: &Client, location: &Location) -> std::result::Result<(), Fault> {
    let way = client.way(location)?;
    match way.stores.patient.delete(location).await.map_err(|error| way.fault(&error)) {
        Ok(()) | Err(Fault::Missing) => Ok(()),
        Err(fault) => Err(fault),
    }
}

impl ObjectFolder {
    /// A folder of a store that is given, instead of a bucket: for tests of what is kept in such folders.
    pub fn in_store(store: Arc<dyn ObjectStore>, prefix: &str) -> std::result::Result<Self, FileError> {
        let io = Io::start().map_err(|error| FileError::io(Path::new(prefix), error))?;
        let (timeout, refresh) = (Duration::from_secs(5), Duration::from_secs(1));
        let shared = Shared { io, cache: None, timeout, refresh, max_retries: 0 };
        let pool = StorePool::of_one(Stores { once: Arc::clone(&store), patient: store })?;
        let client = Client::new("s3://bucket".to_owned(), pool, Arc::new(shared));
        Ok(Self::new(Arc::new(client), Location::from(prefix)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn names_are_below_the_folder() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let folder = ObjectFolder::in_store(Arc::clone(&store), "a/b").unwrap();
        let beside = ObjectFolder::in_store(store, "a/bc").unwrap();
        assert!(folder.is_empty().unwrap());
        assert!(folder.put_new("t/x", b"one".to_vec()).unwrap());
        assert!(!folder.put_new("t/x", b"two".to_vec()).unwrap());
        assert!(beside.put_new("u/y", b"three".to_vec()).unwrap());
        assert_eq!(folder.list("").unwrap(), [Listed { name: "t/x".to_owned(), size: 3 }]);
        assert_eq!(folder.list("t").unwrap().len(), 1);
        assert_eq!(folder.folders().unwrap(), ["t"]);
        assert_eq!(folder.address_of("t/x"), "s3://bucket/a/b/t/x");
        let found = folder.get("t/x").unwrap().unwrap();
        assert_eq!(found.bytes.as_ref(), b"one");
        assert!(folder.replace("t/x", b"four".to_vec(), found.version.clone()).unwrap());
        assert!(!folder.replace("t/x", b"five".to_vec(), found.version).unwrap());
        assert_eq!(folder.size("t/x").unwrap(), Some(4));
        folder.remove(&["t/x".to_owned(), "t/none".to_owned()]).unwrap();
        assert!(folder.is_empty().unwrap() && !beside.is_empty().unwrap());
        assert!(folder.get("t/x").unwrap().is_none() && folder.size("t/x").unwrap().is_none());
    }
}
