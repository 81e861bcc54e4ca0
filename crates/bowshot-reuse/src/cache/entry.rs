//! One entry of a store: what it is, where its rows are, and its value.

use crate::cache::Error;
use crate::cache::file::CacheFile;
use crate::cache::store::Place;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bowshot_ipc::MappedFile;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What the rows of an entry take, and what they cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EntryInfo {
    pub(crate) rows: u64,
    /// Bytes in memory, those of the description included.
    pub(crate) bytes: u64,
    /// The time that it took to compute them.
    pub(crate) cost: Duration,
    pub(crate) created: SystemTime,
}

#[derive(Debug)]
pub(crate) struct Entry<K> {
    pub(crate) id: u64,
    pub(crate) about: K,
    pub(crate) info: EntryInfo,
    /// Uses of what it replaced.
    pub(crate) earlier_uses: u64,
    rows: Mutex<Rows>,
    /// Held while the file is read, so that `rows` stays available.
    reading: Mutex<()>,
    /// Whether this process has computed it.
    fresh: bool,
    hits: AtomicU64,
    /// Bits of a number.
    priority: AtomicU64,
    pinned: AtomicBool,
    /// Whether the disk refused it.
    unwritten: AtomicBool,
}

/// Rows that can be read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Arc<[RecordBatch]>,
    pub(crate) file: Option<Arc<MappedFile>>,
}

impl Loaded {
    pub(crate) fn in_memory(schema: SchemaRef, batches: impl Into<Arc<[RecordBatch]>>) -> Self {
        Self { schema, batches: batches.into(), file: None }
    }

    /// Whether they share a mapped file.
    pub(crate) fn is_mapped(&self) -> bool {
        self.file.is_some()
    }

    /// Fails if the mapped file has changed: then the rows that were read are invalid. Must be
    /// called after their use.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.file.as_ref().map_or(Ok(()), |file| file.check().map_err(Error::Map))
    }
}

/// Where the rows are, perhaps in several places.
#[derive(Debug, Default)]
struct Rows {
    memory: Option<Loaded>,
    mapped: Option<Loaded>,
    file: Option<CacheFile>,
}

impl<K> Entry<K> {
    pub(crate) fn in_memory(id: u64, about: K, info: EntryInfo, rows: Loaded) -> Self {
        Self::new(id, (about, info), Rows { memory: Some(rows), ..Rows::default() })
    }

    pub(crate) fn in_file(id: u64, about: K, info: EntryInfo, file: CacheFile) -> Self {
        Self::new(id, (about, info), Rows { file: Some(file), ..Rows::default() })
    }

    fn new(id: u64, (about, info): (K, EntryInfo), rows: Rows) -> Self {
        Self {
            id,
            about,
            info,
            earlier_uses: 0,
            fresh: rows.memory.is_some(),
            rows: Mutex::new(rows),
            reading: Mutex::new(()),
            hits: AtomicU64::new(0),
            priority: AtomicU64::new(0),
            pinned: AtomicBool::new(false),
            unwritten: AtomicBool::new(false),
        }
    }

    /// The rows, mapped from the file if they are not in memory. Blocks.
    pub(crate) fn batches(&self) -> Result<Loaded, Error> {
        if let Some(loaded) = self.loaded() {
            return Ok(loaded);
        }
        let _one = self.reading.lock();
        if let Some(loaded) = self.loaded() {
            return Ok(loaded);
        }
        let file = self.rows.lock().file.clone().ok_or(Error::Gone)?;
        let mapped = file.map()?;
        let mut rows = self.rows.lock();
        if rows.file.is_some() {
            rows.mapped = Some(mapped.clone());
        }
        Ok(mapped)
    }

    /// The rows, copied from the file. Blocks.
    pub(crate) fn read(&self) -> Result<Loaded, Error> {
        let file = self.rows.lock().file.clone().ok_or(Error::Gone)?;
        file.read()
    }

    /// The rows if they are in memory or mapped.
    pub(crate) fn loaded(&self) -> Option<Loaded> {
        let rows = self.rows.lock();
        rows.memory.as_ref().or(rows.mapped.as_ref()).cloned()
    }

    pub(crate) fn memory(&self) -> Option<Loaded> {
        self.rows.lock().memory.clone()
    }

    /// Whether this process computed it. Segment numbers of an earlier process may have another meaning
    /// now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Where the rows are, for system tables.
    pub(crate) fn place(&self) -> &'static str {
        let rows = self.rows.lock();
        match (&rows.memory, &rows.file) {
            (Some(_), _) => "memory",
            (None, Some(_)) => "disk",
            (None, None) => "gone",
        }
    }

    /// Whether there are no rows any more.
    pub(crate) fn is_gone(&self) -> bool {
        let rows = self.rows.lock();
        rows.memory.is_none() && rows.file.is_none()
    }

    pub(crate) fn bytes_in(&self, place: Place) -> u64 {
        let rows = self.rows.lock();
        match place {
            Place::Memory => rows.memory.as_ref().map_or(0, |_| self.info.bytes),
            Place::Disk => rows.file.as_ref().map_or(0, CacheFile::size),
        }
    }

    pub(crate) fn enter_memory(&self, loaded: Loaded) {
        self.rows.lock().memory = Some(loaded);
    }

    pub(crate) fn enter_disk(&self, file: CacheFile) {
        self.rows.lock().file = Some(file);
    }

    pub(crate) fn leave_memory(&self) -> Option<Loaded> {
        self.rows.lock().memory.take()
    }

    /// The file is the caller's to remove.
    pub(crate) fn leave_disk(&self) -> Option<CacheFile> {
        let mut rows = self.rows.lock();
        rows.mapped = None;
        rows.file.take()
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(crate) fn hit(&self, clock: f64) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        self.used_at(clock);
    }

    pub(crate) fn pin(&self, pinned: bool) {
        self.pinned.store(pinned, Ordering::Relaxed);
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Relaxed)
    }

    /// Notes whether the disk refused it, and gives what was noted before.
    pub(crate) fn set_unwritten(&self, unwritten: bool) -> bool {
        self.unwritten.swap(unwritten, Ordering::Relaxed)
    }

    /// Milliseconds that it saves for each byte: its cost times past and expected uses.
    pub(crate) fn worth(&self) -> f64 {
        let uses = (self.earlier_uses + self.hits() + 1) as f64;
        self.info.cost.as_secs_f64() * 1e3 * uses / self.info.bytes.max(1) as f64
    }

    /// Its worth and the store's clock at its last use: what has the least leaves first.
    pub(crate) fn priority(&self) -> f64 {
        f64::from_bits(self.priority.load(Ordering::Relaxed))
    }

    pub(crate) fn used_at(&self, clock: f64) {
        self.priority.store((clock + self.worth()).to_bits(), Ordering::Relaxed);
    }
}
