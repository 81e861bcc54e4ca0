//! One file with the content that was looked at: every read checks that the content is still that one, so that a query
//! never mixes old rows with new ones.
//!
//! A handle stays open while queries use the table (up to a limit for all tables together). A file that is replaced by
//! renaming is then read to its end as it was; one that is overwritten in place fails with [`Error::Changed`].

use crate::arrow_ipc;
use crate::decoded_columns::{ColumnCache, FileColumns};
use bowshot_ipc::{FilePages, MappedFile};
use bowshot_object_store::{Error, FileIdentity, RemoteFile, SEQUENTIAL_BYTES};
use bytes::Bytes;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// `O_NONBLOCK`: a pipe that took the file's place since it was listed must not hang the open call.
const NO_WAIT: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };

/// Maps that stay; each also takes a file handle. `bowshot-ipc` allows more, for maps that running queries hold.
const MAX_MAPS: usize = 256;

/// Bytes that are worth a map; fewer are read sooner.
const SHARED_BYTES: usize = 256 << 10;

const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct DataFile {
    number: u64,
    path: PathBuf,
    identity: FileIdentity,
    /// Set for a file in an object store, which has neither handle nor pages.
    remote: Option<Arc<RemoteFile>>,
    handle: Mutex<Option<Arc<File>>>,
    map: Mutex<Option<Arc<MappedFile>>>,
    pages: Mutex<Option<Arc<FilePages>>>,
    /// Whether bytes of the pages were given out; the map itself may be gone by now.
    pages_shared: AtomicBool,
    /// The first error of reading, since some readers above flatten errors to text.
    fault: OnceLock<Error>,
    columns: OnceLock<Arc<FileColumns>>,
    pool: Arc<HandlePool>,
}

impl DataFile {
    pub fn new(path: PathBuf, identity: FileIdentity, pool: Arc<HandlePool>) -> Arc<Self> {
        Self::of(path, identity, None, pool)
    }

    pub fn remote(file: Arc<RemoteFile>, pool: Arc<HandlePool>) -> Arc<Self> {
        let identity = FileIdentity::of_remote(file.key(), file.content());
        Self::of(file.path().to_path_buf(), identity, Some(file), pool)
    }

    fn of(
        path: PathBuf,
        identity: FileIdentity,
        remote: Option<Arc<RemoteFile>>,
        pool: Arc<HandlePool>,
    ) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (handle, map, pages) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (pages_shared, fault, columns) = (AtomicBool::new(false), OnceLock::new(), OnceLock::new());
        Arc::new(Self {
            number,
            path,
            identity,
            remote,
            handle,
            map,
            pages,
            pages_shared,
            fault,
            columns,
            pool,
        })
    }

    /// The columns of this content that are kept decoded, in the cache that asked first.
    pub fn columns(&self, cache: &Arc<ColumnCache>) -> Arc<FileColumns> {
        Arc::clone(self.columns.get_or_init(|| FileColumns::new(cache)))
    }

    /// Tells this look at a file from every other, also of the same content.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// Whether the file was written so long ago that every later change shows.
    pub fn is_settled(&self) -> bool {
        self.identity.settled
    }

    pub fn size(&self) -> u64 {
        self.identity.size
    }

    pub fn as_remote(&self) -> Option<&Arc<RemoteFile>> {
        self.remote.as_ref()
    }

    /// Opens a file of this machine, so that it can be read to its end whatever becomes of its name.
    pub fn open_ahead(self: &Arc<Self>) -> Result<(), Error> {
        if self.remote.is_none() {
            self.open()?;
        }
        Ok(())
    }

    /// The open file; opens it if need be.
    fn open(self: &Arc<Self>) -> Result<Arc<File>, Error> {
        if let Some(file) = self.handle.lock().as_ref() {
            return Ok(Arc::clone(file));
        }
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(NO_WAIT)
            .open(&self.path)
            .map_err(|error| Error::of_known(&self.path, error))?;
        self.verify(&file)?;
        let file = Arc::new(file);
        *self.handle.lock() = Some(Arc::clone(&file));
        if let Some(oldest) = self.pool.handles.add(self) {
            oldest.close();
        }
        Ok(file)
    }

    /// Maps the file, which must be an Arrow file. The map stays with the table's files: touching pages of a new one takes time.
    pub fn map(self: &Arc<Self>) -> Result<Arc<MappedFile>, Error> {
        if let Some(map) = self.map.lock().as_ref() {
            return Ok(Arc::clone(map));
        }
        let explain = |error| arrow_ipc::explain(self, error);
        let map = match &self.remote {
            // The copy is of this content, and nobody but this server has it.
            Some(remote) => MappedFile::from_file(remote.copy()?, &self.path).map_err(explain)?,
            None => {
                self.open()?;
                let map = MappedFile::open(&self.path).map_err(explain)?;
                self.verify_path()?;
                map
            }
        };
        let map = Arc::new(map);
        *self.map.lock() = Some(Arc::clone(&map));
        if let Some(oldest) = self.pool.maps.add(self) {
            *oldest.map.lock() = None;
        }
        Ok(map)
    }

    /// Exactly the bytes of a long range, if none has to come from disk. Callers ask [`Self::check_pages`] afterwards.
    pub(crate) fn resident(self: &Arc<Self>, range: &Range<u64>) -> Option<Bytes> {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        if range.len() < SHARED_BYTES || self.remote.is_some() {
            return None;
        }
        let known = self.pages.lock().clone();
        let pages = match known {
            Some(pages) => pages,
            None => self.map_pages().ok()?,
        };
        self.pages_shared.store(true, Ordering::Release);
        pages.resident(range)
    }

    /// Fails if bytes that [`Self::resident`] gave may be others than those of this content.
    pub(crate) fn check_pages(self: &Arc<Self>) -> Result<(), Error> {
        if !self.pages_shared.load(Ordering::Acquire) {
            return Ok(());
        }
        let pages = self.pages.lock().clone();
        match pages {
            Some(pages) => pages.check().map_err(|error| arrow_ipc::explain(self, error)),
            None => self.verify(self.open()?.as_ref()),
        }
    }

    fn map_pages(self: &Arc<Self>) -> Result<Arc<FilePages>, Error> {
        // The map goes with the handle, and so do both when there are too many files.
        self.open()?;
        let pages = FilePages::open(&self.path).map_err(|error| arrow_ipc::explain(self, error))?;
        self.verify_path()?;
        let pages = Arc::new(pages);
        *self.pages.lock() = Some(Arc::clone(&pages));
        Ok(pages)
    }

    /// A path that was opened a second time must still lead to the same file.
    fn verify_path(&self) -> Result<(), Error> {
        let metadata = std::fs::metadata(&self.path).map_err(|error| Error::of_known(&self.path, error))?;
        if self.identity.has_content_of(&metadata) {
            Ok(())
        } else {
            Err(Error::Changed { path: self.path.clone() })
        }
    }

    /// Closes the handle and the map of pages; reads that are running keep theirs.
    pub fn close(&self) {
        *self.handle.lock() = None;
        *self.pages.lock() = None;
    }

    /// What stopped an earlier read of this content.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }

    /// Exactly the bytes of `range`, which must lie within the file.
    pub fn read(self: &Arc<Self>, range: Range<u64>) -> Result<Bytes, Error> {
        self.read_unnoticed(range).inspect_err(|error| {
            let _ = self.fault.set(error.clone());
        })
    }

    fn read_unnoticed(self: &Arc<Self>, range: Range<u64>) -> Result<Bytes, Error> {
        if let Some(remote) = &self.remote {
            return remote.read_blocking(range);
        }
        let file = self.open()?;
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| Error::corrupt(&self.path, "a part of it is larger than memory"))?;
        if range.end > self.size() {
            return Err(Error::corrupt(&self.path, "it refers to bytes beyond its end"));
        }
        let bytes = read_exactly(&file, range.start, length).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Changed { path: self.path.clone() },
            _ => Error::io(&self.path, error),
        })?;
        self.verify(&file)?;
        Ok(bytes.into())
    }

    pub fn reader(self: &Arc<Self>, start: u64) -> FileReader {
        FileReader { file: Arc::clone(self), at: start, chunk: Bytes::new(), fault: Arc::default() }
    }

    fn verify(&self, file: &File) -> Result<(), Error> {
        let metadata = file.metadata().map_err(|error| Error::io(&self.path, error))?;
        if self.identity.has_content_of(&metadata) {
            Ok(())
        } else {
            Err(Error::Changed { path: self.path.clone() })
        }
    }
}

/// Reads into memory that nobody has filled with zeros before, which would be a pass of its own over large column chunks.
fn read_exactly(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let at = start + bytes.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocation may have room for more than was asked for.
    bytes.truncate(length);
    Ok(bytes)
}

/// A sequential reader. The error that stopped it stays in [`FileReader::fault`], because parsers wrap or flatten it.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<DataFile>,
    at: u64,
    chunk: Bytes,
    fault: Arc<OnceLock<Error>>,
}

impl FileReader {
    pub fn fault(&self) -> Arc<OnceLock<Error>> {
        Arc::clone(&self.fault)
    }

    fn fill(&mut self) -> Result<(), Error> {
        let chunk = if self.file.as_remote().is_some() { SEQUENTIAL_BYTES } else { CHUNK_BYTES };
        let end = self.file.size().min(self.at + chunk as u64);
        self.chunk = self.file.read(self.at..end)?;
        self.at = end;
        Ok(())
    }
}

impl Read for FileReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty()
            && self.at < self.file.size()
            && let Err(error) = self.fill()
        {
            let error = self.fault.get_or_init(|| error).clone();
            return Err(error.into());
        }
        let taken = into.len().min(self.chunk.len());
        into[..taken].copy_from_slice(&self.chunk.split_to(taken));
        Ok(taken)
    }
}

/// Bounds the handles and maps of all tables: the oldest goes. A closed file is opened again when it is read, if it is the same.
#[derive(Debug)]
pub struct HandlePool {
    handles: Queue,
    maps: Queue,
}

impl HandlePool {
    pub fn new(max_handles: usize) -> Arc<Self> {
        Arc::new(Self { handles: Queue::new(max_handles), maps: Queue::new(MAX_MAPS) })
    }
}

#[derive(Debug)]
struct Queue {
    limit: usize,
    files: Mutex<VecDeque<Weak<DataFile>>>,
}

impl Queue {
    fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), files: Mutex::default() }
    }

    /// Adds a file; gives the one that must go for it.
    fn add(&self, file: &Arc<DataFile>) -> Option<Arc<DataFile>> {
        let mut files = self.files.lock();
        files.push_back(Arc::downgrade(file));
        if files.len() <= self.limit {
            return None;
        }
        files.retain(|file| file.strong_count() > 0);
        if files.len() > self.limit { files.pop_front()?.upgrade() } else { None }
    }
}

/// Keeps the handles of a table's files while a plan may read them; they close with the last plan.
#[derive(Debug)]
pub struct Lease {
    files: Vec<Arc<DataFile>>,
    /// What must not go before the files are read.
    _kept: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Lease {
    pub fn new(files: Vec<Arc<DataFile>>, kept: Vec<Arc<dyn Any + Send + Sync>>) -> Self {
        Self { files, _kept: kept }
    }

    /// The lease that somebody still has, or a new one of these files.
    pub fn shared(last: &Mutex<Weak<Self>>, files: impl FnOnce() -> Vec<Arc<DataFile>>) -> Arc<Self> {
        let mut last = last.lock();
        last.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Self::new(files(), Vec::new()));
            *last = Arc::downgrade(&new);
            new
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        for file in &self.files {
            file.close();
        }
    }
}
