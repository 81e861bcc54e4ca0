//! Result segments on disk: Arrow IPC streams in unnamed temporary files, which disappear with their last handle,
//! even after a crash.

use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use bowshot_api::{Error, ErrorKind, Limits, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// Segments are closed at this size, so that readers free space early.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Memory and disk that all results use.
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) memory: AtomicU64,
    pub(crate) disk: AtomicU64,
    memory_limit: u64,
    disk_limit: u64,
    folder: Option<PathBuf>,
}

impl Accounts {
    /// `folder` is the engine's spill folder; `None` for the system's.
    pub(crate) fn new(limits: &Limits, folder: Option<PathBuf>) -> Self {
        let results = u64::try_from(limits.max_running_queries).unwrap_or(u64::MAX);
        let memory_limit = results.saturating_mul(limits.result_buffer_bytes as u64);
        let disk_limit = limits.result_spill_bytes;
        Self { memory: AtomicU64::new(0), disk: AtomicU64::new(0), memory_limit, disk_limit, folder }
    }

    /// Whether results use as much memory as all queries may: then each buffers one batch.
    pub(crate) fn is_full(&self) -> bool {
        self.memory.load(Ordering::Relaxed) >= self.memory_limit
    }

    pub(crate) fn unnamed_file(&self) -> io::Result<File> {
        match &self.folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        }
    }

    pub(crate) fn reserve_disk(&self, bytes: u64) -> Result<()> {
        let held = self.disk.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held <= self.disk_limit {
            return Ok(());
        }
        self.disk.fetch_sub(bytes, Ordering::Relaxed);
        Err(Error::new(
            ErrorKind::LimitReached,
            "the space for spilled results is full of uploads and unread results",
        )
        .with_hint("read or cancel results, or raise `limits.result_spill_bytes`"))
    }
}

/// A file of batches: written, sealed, then read.
pub(crate) struct Segment {
    file: Arc<File>,
    writer: Mutex<Option<Box<StreamWriter<BufWriter<File>>>>>,
    bytes: AtomicU64,
    accounts: Arc<Accounts>,
}

impl Segment {
    pub(crate) fn create(schema: &SchemaRef, accounts: Arc<Accounts>) -> Result<Self> {
        let file = Arc::new(accounts.unnamed_file().map_err(failed)?);
        let output = BufWriter::with_capacity(1 << 20, file.try_clone().map_err(failed)?);
        let writer = StreamWriter::try_new(output, schema).map_err(failed)?;
        Ok(Self { file, writer: Mutex::new(Some(Box::new(writer))), bytes: AtomicU64::new(0), accounts })
    }

    /// Appends a batch; `false` if the segment is sealed or full.
    pub(crate) async fn append(&self, batch: &RecordBatch, bytes: usize) -> Result<bool> {
        let mut writer = self.writer.lock().await;
        let Some(open) = writer.as_mut() else { return Ok(false) };
        if self.bytes.load(Ordering::Relaxed) >= SEGMENT_BYTES {
            return Ok(false);
        }
        self.accounts.reserve_disk(bytes as u64)?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        open.write(batch).map_err(failed)?;
        Ok(true)
    }

    /// Seals the segment and opens it for a reader. Blocks.
    pub(crate) fn read(self: &Arc<Self>) -> Result<SegmentReader> {
        let mut writer = self.writer.blocking_lock();
        if let Some(mut open) = writer.take() {
            open.finish().map_err(failed)?;
            open.get_mut().flush().map_err(failed)?;
        }
        let whole = Positioned { file: Arc::clone(&self.file), position: 0 };
        let input = BufReader::with_capacity(1 << 20, whole);
        let reader = StreamReader::try_new(input, None).map_err(failed)?;
        Ok(SegmentReader { reader: Box::new(reader), _segment: Arc::clone(self) })
    }

    /// Truncates the file before its last handle is closed; what is still read from it must be discarded.
    pub(crate) fn free(&self) {
        // Otherwise the space is freed with the last handle.
        if self.file.set_len(0).is_ok() {
            self.give_back();
        }
    }

    fn give_back(&self) {
        self.accounts.disk.fetch_sub(self.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

bowshot_api::debug_fields!(Segment { bytes });

impl fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentReader").field("segment", &self._segment).finish_non_exhaustive()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Reads a sealed segment. Blocking: not for the socket runtime.
pub(crate) struct SegmentReader {
    reader: Box<StreamReader<BufReader<Positioned>>>,
    _segment: Arc<Segment>,
}

/// A reader with its own position: the file handle is shared.
struct Positioned {
    file: Arc<File>,
    position: u64,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl SegmentReader {
    pub(crate) fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.reader.next().map(|batch| batch.map_err(failed))
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unavailable, "cannot store a result on disk")
        .with_hint("free space in the folder for temporary files, or read the result sooner")
        .with_source(error)
}
