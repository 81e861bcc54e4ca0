//! One cached join: its description, the location of its rows, and its value.

use crate::cache::Error;
use crate::cache::file::CacheFile;
use crate::cache::needs::{self, ColumnNames};
use crate::cache::prediction::is_later;
use crate::cache::shape::{ColumnRef, JoinShape};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bowshot_ipc::MappedFile;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A join without its rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JoinInfo {
    pub(crate) shape: JoinShape,
    /// The columns of the rows in order.
    pub(crate) columns: Vec<ColumnRef>,
    pub(crate) rows: u64,
    /// Bytes of the rows as Arrow in memory.
    pub(crate) bytes: u64,
    /// The time that it took to compute.
    pub(crate) cost: Duration,
    pub(crate) created: SystemTime,
    /// Whether it was computed in advance.
    pub(crate) forecast: bool,
    /// Expected further uses.
    pub(crate) expected_uses: f64,
}

#[derive(Debug)]
pub(crate) struct CachedJoin {
    pub(crate) id: u64,
    pub(crate) about: JoinInfo,
    /// Requirements of a query that it can answer.
    pub(crate) needs: (u64, ColumnNames),
    schema: SchemaRef,
    rows: Mutex<Rows>,
    /// Held while the file is read, so that `rows` stays available.
    reading: Mutex<()>,
    /// Whether this process has computed it.
    fresh: bool,
    hits: AtomicU64,
    /// Seconds since the epoch.
    last_hit: AtomicU64,
    pinned: AtomicBool,
}

/// Rows that can be read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Arc<[RecordBatch]>,
    /// The mapped file.
    pub(crate) file: Option<Arc<MappedFile>>,
}

impl Loaded {
    /// Rows in memory.
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
    memory: Option<Arc<[RecordBatch]>>,
    mapped: Option<Loaded>,
    file: Option<CacheFile>,
}

/// Where the rows of a join are, for system tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLocation {
    Memory,
    Disk,
    Gone,
}

impl RowLocation {
    /// Its name in `system.join_cache`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Gone => "gone",
        }
    }
}

impl CachedJoin {
    pub(crate) fn in_memory(id: u64, about: JoinInfo, schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = Rows { memory: Some(batches.into()), ..Rows::default() };
        Self::new(id, about, schema, rows)
    }

    pub(crate) fn in_file(id: u64, about: JoinInfo, file: CacheFile) -> Self {
        Self::new(id, about, Arc::new(Schema::empty()), Rows { file: Some(file), ..Rows::default() })
    }

    fn new(id: u64, about: JoinInfo, schema: SchemaRef, rows: Rows) -> Self {
        let created = seconds(about.created);
        Self {
            id,
            needs: needs::of_join(&about.shape),
            about,
            schema,
            fresh: rows.memory.is_some(),
            rows: Mutex::new(rows),
            reading: Mutex::new(()),
            hits: AtomicU64::new(0),
            last_hit: AtomicU64::new(created),
            pinned: AtomicBool::new(false),
        }
    }

    /// The rows with their schema, read from the file if necessary. Blocks.
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

    /// The rows if they are in memory or mapped.
    pub(crate) fn loaded(&self) -> Option<Loaded> {
        let rows = self.rows.lock();
        match &rows.memory {
            Some(batches) => Some(Loaded::in_memory(Arc::clone(&self.schema), Arc::clone(batches))),
            None => rows.mapped.clone(),
        }
    }

    /// Whether this process computed it. Segment numbers of an earlier process may have another meaning
    /// now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Where the rows are.
    pub(crate) fn place(&self) -> RowLocation {
        let rows = self.rows.lock();
        match (&rows.memory, &rows.file) {
            (Some(_), _) => RowLocation::Memory,
            (None, Some(_)) => RowLocation::Disk,
            (None, None) => RowLocation::Gone,
        }
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.rows.lock().file.as_ref().map_or(0, |file| file.bytes)
    }

    pub(crate) fn memory_batches(&self) -> Option<Arc<[RecordBatch]>> {
        self.rows.lock().memory.clone()
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn keep_file(&self, file: CacheFile) {
        self.rows.lock().file = Some(file);
    }

    pub(crate) fn leave_memory(&self) {
        self.rows.lock().memory = None;
    }

    pub(crate) fn leave_disk(&self) {
        let file = {
            let mut rows = self.rows.lock();
            rows.mapped = None;
            rows.file.take()
        };
        if let Some(file) = file {
            file.remove();
        }
    }

    /// Notes a use.
    pub(crate) fn hit(&self, now: SystemTime) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        self.last_hit.store(seconds(now), Ordering::Relaxed);
    }

    /// How often it was used.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Pins or unpins it.
    pub(crate) fn pin(&self, pinned: bool) {
        self.pinned.store(pinned, Ordering::Relaxed);
    }

    /// See [`Self::pin`].
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Relaxed)
    }

    /// Whether it is the same join as another one, of later tables of the sequence.
    pub(crate) fn is_later_than(&self, other: &Self) -> bool {
        let (shape, earlier) = (&self.about.shape, &other.about.shape);
        shape.tree == earlier.tree
            && shape.settings == earlier.settings
            && is_later(&shape.names(), &earlier.names())
    }

    /// Milliseconds that it saves for each byte: its cost times past and expected uses, less for each
    /// hour without use.
    pub(crate) fn worth(&self, now: SystemTime) -> f64 {
        let idle = seconds(now).saturating_sub(self.last_hit.load(Ordering::Relaxed));
        let uses = self.hits() as f64 + self.about.expected_uses;
        let saved = self.about.cost.as_secs_f64() * 1e3 * uses;
        saved / (self.about.bytes.max(1) as f64) / (1.0 + idle as f64 / 3600.0)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
