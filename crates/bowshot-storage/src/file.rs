//! One file with the content that was looked at: every read checks that the content is still that one, so that a query
//! never mixes old rows with new ones.
//!
//! A handle stays open while queries use the table (up to a limit for all tables together). A file that is replaced by
//! renaming is then read to its end as it was; one that is overwritten in place fails with [`Error::Changed`].

use crate::Error;
use crate::version::FileIdentity;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// `O_NONBLOCK`: a pipe that took the file's place since it was listed must not hang the open call.
const NO_WAIT: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0x4 };

/// Bytes of one read of a sequential reader.
const CHUNK_BYTES: usize = 1 << 20;

/// A file of a table.
#[derive(Debug)]
pub(crate) struct DataFile {
    path: PathBuf,
    identity: FileIdentity,
    handle: Mutex<Option<Arc<File>>>,
    pool: Arc<HandlePool>,
}

impl DataFile {
    pub(crate) fn new(path: PathBuf, identity: FileIdentity, pool: Arc<HandlePool>) -> Arc<Self> {
        Arc::new(Self { path, identity, handle: Mutex::new(None), pool })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    pub(crate) fn size(&self) -> u64 {
        self.identity.size
    }

    /// The open file; opens it if need be.
    pub(crate) fn open(self: &Arc<Self>) -> Result<Arc<File>, Error> {
        if let Some(file) = self.slot().as_ref() {
            return Ok(Arc::clone(file));
        }
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(NO_WAIT)
            .open(&self.path)
            .map_err(|error| Error::io(&self.path, error))?;
        self.verify(&file)?;
        let file = Arc::new(file);
        *self.slot() = Some(Arc::clone(&file));
        self.pool.opened(self);
        Ok(file)
    }

    /// Closes the handle; reads that are running keep theirs.
    pub(crate) fn close(&self) {
        *self.slot() = None;
    }

    /// Exactly the bytes of `range`, which must lie within the file.
    pub(crate) fn read(self: &Arc<Self>, range: Range<u64>) -> Result<Bytes, Error> {
        let file = self.open()?;
        let length = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| Error::corrupt(&self.path, "a part of it is larger than memory"))?;
        if range.end > self.size() {
            return Err(Error::corrupt(&self.path, "it names bytes behind its end"));
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, range.start).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Changed { path: self.path.clone() },
            _ => Error::io(&self.path, error),
        })?;
        self.verify(&file)?;
        Ok(bytes.into())
    }

    /// Reads from `start` to the end of the file.
    pub(crate) fn reader(self: &Arc<Self>, start: u64) -> FileReader {
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

    fn slot(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sequential reader. The error that stopped it stays in [`FileReader::fault`], because parsers wrap or flatten it.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: Arc<DataFile>,
    at: u64,
    chunk: Bytes,
    fault: Arc<OnceLock<Error>>,
}

impl FileReader {
    pub(crate) fn fault(&self) -> Arc<OnceLock<Error>> {
        Arc::clone(&self.fault)
    }

    fn fill(&mut self) -> Result<(), Error> {
        let end = self.file.size().min(self.at + CHUNK_BYTES as u64);
        self.chunk = self.file.read(self.at..end)?;
        self.at = end;
        Ok(())
    }
}

impl Read for FileReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && self.at < self.file.size() {
            if let Err(error) = self.fill() {
                let error = self.fault.get_or_init(|| error).clone();
                return Err(error.into());
            }
        }
        let taken = into.len().min(self.chunk.len());
        into[..taken].copy_from_slice(&self.chunk.split_to(taken));
        Ok(taken)
    }
}

/// Bounds the handles of all tables: the oldest is closed when there are too many. A closed file is opened again when
/// it is read, and is refused if it is another one by then.
#[derive(Debug)]
pub(crate) struct HandlePool {
    limit: usize,
    open: Mutex<VecDeque<Weak<DataFile>>>,
}

impl HandlePool {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), open: Mutex::default() })
    }

    fn opened(&self, file: &Arc<DataFile>) {
        let oldest = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.push_back(Arc::downgrade(file));
            if open.len() > self.limit { open.pop_front() } else { None }
        };
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            oldest.close();
        }
    }
}

/// Keeps the handles of a table's files while a plan may read them; they close with the last plan.
#[derive(Debug)]
pub(crate) struct Lease(pub(crate) Vec<Arc<DataFile>>);

impl Drop for Lease {
    fn drop(&mut self) {
        for file in &self.0 {
            file.close();
        }
    }
}
