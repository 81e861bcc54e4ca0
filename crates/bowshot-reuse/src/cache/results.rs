//! Whole results as files, under a budget, for results that left memory or for the time after a restart. A result is found by a digest and
//! compared by its written key: the query, the contents of its tables, and the build of the program that computed it.

use crate::cache::Error;
use crate::cache::cache_folder;
use crate::cache::file::{self, CacheFile, now_milliseconds};
use crate::cache::shape::{TableKey, TableName};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Approximate bytes of a description without the text of the query.
const ENTRY_BYTES: u64 = 2 << 10;
/// Most results on disk.
const MAX_RESULTS: usize = 10_000;
/// The largest result is the budget divided by this.
const LARGEST_PART: u64 = 8;
/// Pause of writes after a failure of the disk.
const REST: Duration = Duration::from_secs(60);

/// A result without its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultInfo {
    /// The written key: equal only for equal queries.
    pub(crate) query: String,
    /// The build of the program.
    pub(crate) program: String,
    /// The contents of its tables.
    pub(crate) tables: Vec<TableKey>,
    /// The digest for lookups.
    pub(crate) digest: u64,
    /// Batches of each stream.
    pub(crate) streams: Vec<usize>,
    /// Whether the result is ordered.
    pub(crate) ordered: bool,
    /// The exact number of rows of the plan, if known.
    pub(crate) promised: Option<u64>,
    /// Bytes of the rows in memory.
    pub(crate) bytes: u64,
    /// The time that it took to compute.
    pub(crate) cost: Duration,
    pub(crate) created: SystemTime,
}

impl ResultInfo {
    fn with_rows(self, file: &CacheFile) -> Result<(Self, SchemaRef, Vec<RecordBatch>), Error> {
        let (schema, batches) = file.read()?;
        if self.fits(&batches) { Ok((self, schema, batches)) } else { Err(file.damaged()) }
    }

    /// Whether these can be its batches.
    fn fits(&self, batches: &[RecordBatch]) -> bool {
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let count = self.streams.iter().try_fold(0_usize, |count, of| count.checked_add(*of));
        count == Some(batches.len()) && self.promised.is_none_or(|promised| promised == rows)
    }
}

/// The outcome of writing a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is on disk.
    There,
    /// The disk has failed; try again later.
    Later,
    /// It is too large.
    Never,
}

/// A file, with what is needed for lookups and eviction.
#[derive(Debug)]
struct Entry {
    file: CacheFile,
    tables: Arc<[TableKey]>,
    /// Of the file and its description.
    bytes: u64,
    /// Of the rows in memory.
    memory: u64,
    /// When it was last used, by [`Files::clock`].
    used: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct ResultFiles {
    folder: PathBuf,
    limit: u64,
    ask_program: fn() -> String,
    program: OnceLock<String>,
    files: Mutex<Files>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Files {
    by_digest: HashMap<u64, Vec<Arc<Entry>>>,
    bytes: u64,
    count: usize,
    clock: u64,
    /// No writes until then.
    rests_until: Option<Instant>,
}

impl ResultFiles {
    /// Opens the results of a folder by this build, up to a limit of bytes; all other files of the cache are
    /// removed. An unusable folder is ignored. `program` returns the build; it is called at first use.
    pub(crate) fn open(folder: PathBuf, limit: u64, program: fn() -> String) -> Option<Self> {
        let mut found: Vec<(ResultInfo, CacheFile)> =
            file::found(&folder, not_opened).inspect_err(not_opened).ok()?;
        found.sort_by_key(|(about, _)| about.created);
        // Unreadable files have numbers too, and the clock may have been set back.
        let last = found.iter().map(|(_, file)| file.number()).max().unwrap_or_default();
        let next = AtomicU64::new(now_milliseconds().max(last.saturating_add(1)));
        let (known, files) = (OnceLock::new(), Mutex::default());
        let files = Self { folder, limit, ask_program: program, program: known, files, next };
        for (about, file) in found {
            let bytes = file.bytes + file.description_bytes();
            if about.program == files.program() && bytes <= limit {
                files.make_room(bytes);
                files.add(about, file, bytes);
            } else {
                file.remove();
            }
        }
        Some(files)
    }

    /// The build of the program that results belong to.
    pub(crate) fn program(&self) -> &str {
        self.program.get_or_init(self.ask_program)
    }

    /// Removes all results of an unused folder.
    pub(crate) fn remove_all(folder: &Path) {
        if folder.exists() {
            let found = file::found::<ResultInfo>(folder, not_opened).inspect_err(not_opened);
            found.unwrap_or_default().iter().for_each(|(_, file)| file.remove());
        }
    }

    /// Whether a result of a query, up to a size, may be on disk.
    pub(crate) fn may_have(&self, digest: u64, tables: &[TableKey], largest: u64) -> bool {
        let files = self.files.lock();
        let entries = files.by_digest.get(&digest).map(Vec::as_slice).unwrap_or_default();
        entries.iter().any(|entry| *entry.tables == *tables && entry.memory <= largest)
    }

    /// Whether writes pause after a failure of the disk.
    pub(crate) fn rests(&self) -> bool {
        self.files.lock().rests_until.is_some_and(|end| Instant::now() < end)
    }

    /// The result of a query over tables with these contents. Blocks. A file that cannot be read is removed.
    pub(crate) fn read(
        &self,
        digest: u64,
        tables: &[TableKey],
        query: &str,
    ) -> Option<(ResultInfo, SchemaRef, Vec<RecordBatch>)> {
        let entries = self.files.lock().by_digest.get(&digest)?.clone();
        for entry in entries.into_iter().filter(|entry| *entry.tables == *tables) {
            let read = entry.file.description::<ResultInfo>().and_then(|about| {
                let wanted =
                    about.query == query && about.tables == tables && about.program == self.program();
                wanted.then(|| about.with_rows(&entry.file)).transpose()
            });
            match read {
                Ok(Some(found)) => {
                    self.files.lock().touch(&entry);
                    return Some(found);
                }
                Ok(None) => {}
                // Another thread may have removed it.
                Err(error) => {
                    if self.remove(|_, other| Arc::ptr_eq(other, &entry)) > 0 {
                        failed("read", &error);
                    }
                }
            }
        }
        None
    }

    /// Records a use from memory; false if the result is not on disk.
    pub(crate) fn used(&self, digest: u64, tables: &[TableKey]) -> bool {
        let mut files = self.files.lock();
        let entries = files.by_digest.get(&digest).cloned().unwrap_or_default();
        let found = entries.iter().find(|entry| *entry.tables == *tables);
        found.is_some_and(|entry| {
            files.touch(entry);
            true
        })
    }

    /// Writes a result, and evicts the least recently used ones. Blocks. After a failure nothing is
    /// written for a minute.
    pub(crate) fn write(&self, about: ResultInfo, schema: &SchemaRef, batches: &[RecordBatch]) -> Written {
        let bytes = about.bytes + about.query.len() as u64 + ENTRY_BYTES;
        if bytes > self.limit / LARGEST_PART {
            return Written::Never;
        }
        if self.rests() {
            return Written::Later;
        }
        if self.has(&about) {
            return Written::There;
        }
        // Results of the same query over other contents are obsolete.
        self.remove(|digest, entry| {
            let same = digest == about.digest && names(&entry.tables).eq(names(&about.tables));
            same && *entry.tables != *about.tables
        });
        self.make_room(bytes);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match self.write_files(number, &about, (schema.as_ref(), batches)) {
            Ok((described, file)) => {
                let bytes = file.bytes + described;
                self.make_room(bytes);
                self.add(about, file, bytes);
                Written::There
            }
            Err(error) => {
                failed("write", &error);
                self.files.lock().rests_until = Instant::now().checked_add(REST);
                Written::Later
            }
        }
    }

    fn write_files(
        &self,
        number: u64,
        about: &ResultInfo,
        rows: (&Schema, &[RecordBatch]),
    ) -> Result<(u64, CacheFile), Error> {
        // The folder may have been removed.
        cache_folder::private(&self.folder)
            .map_err(|source| Error::Disk { path: self.folder.clone(), source })?;
        let path = self.folder.join(format!("{number}.arrow"));
        let file = CacheFile::write(path, rows, &|| {})?;
        let described = file.describe(about).inspect_err(|_| file.remove())?;
        Ok((described, file))
    }

    fn has(&self, about: &ResultInfo) -> bool {
        let entries = self.files.lock().by_digest.get(&about.digest).cloned().unwrap_or_default();
        let same = |other: ResultInfo| other.query == about.query;
        entries.iter().any(|entry| {
            *entry.tables == *about.tables && entry.file.description::<ResultInfo>().is_ok_and(same)
        })
    }

    /// Removes results whose tables have changed, according to `holds`.
    pub(crate) fn remove_changed(&self, holds: impl Fn(&TableKey) -> bool) {
        let all: Vec<Arc<[TableKey]>> =
            self.files.lock().by_digest.values().flatten().map(|entry| Arc::clone(&entry.tables)).collect();
        let distinct: HashSet<&TableKey> = all.iter().flat_map(|tables| tables.iter()).collect();
        let changed: HashSet<&TableKey> = distinct.into_iter().filter(|table| !holds(table)).collect();
        if !changed.is_empty() {
            self.remove(|_, entry| entry.tables.iter().any(|table| changed.contains(table)));
        }
    }

    /// Removes all results.
    pub(crate) fn clear(&self) {
        self.remove(|_, _| true);
    }

    fn add(&self, about: ResultInfo, file: CacheFile, bytes: u64) {
        let mut files = self.files.lock();
        files.clock += 1;
        let (tables, memory, used) = (about.tables.into(), about.bytes, AtomicU64::new(files.clock));
        let entry = Entry { file, tables, bytes, memory, used };
        files.by_digest.entry(about.digest).or_default().push(Arc::new(entry));
        files.bytes += bytes;
        files.count += 1;
        files.publish();
    }

    fn make_room(&self, bytes: u64) {
        let gone = self.files.lock().make_room(bytes, self.limit);
        gone.iter().for_each(|entry| entry.file.remove());
    }

    fn remove(&self, which: impl Fn(u64, &Arc<Entry>) -> bool) -> usize {
        let gone = self.files.lock().take(which);
        // Outside the lock: files are removed here.
        gone.iter().for_each(|entry| entry.file.remove());
        gone.len()
    }
}

/// A digest of the program file, since another build may compute something else. An unreadable file
/// gets a random name.
pub(crate) fn this_program() -> String {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(name_of_program).clone()
}

fn name_of_program() -> String {
    let summed = std::env::current_exe().and_then(|path| file::sum(&path));
    match summed {
        Ok((bytes, checksum)) => format!("{bytes} {checksum:08x}"),
        Err(_) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("unknown {} {}", std::process::id(), now.as_nanos())
        }
    }
}

impl Files {
    fn touch(&mut self, entry: &Entry) {
        self.clock += 1;
        entry.used.store(self.clock, Ordering::Relaxed);
        // Files found at the start are counted too.
        self.publish();
    }

    /// Removes the least recently used results until there is room for `bytes`.
    fn make_room(&mut self, bytes: u64, limit: u64) -> Vec<Arc<Entry>> {
        if self.bytes + bytes <= limit && self.count < MAX_RESULTS {
            return Vec::new();
        }
        let entries = self.by_digest.values().flatten();
        let mut all: Vec<(u64, u64)> =
            entries.map(|entry| (entry.used.load(Ordering::Relaxed), entry.bytes)).collect();
        all.sort_unstable();
        let (mut left, mut victims) = (self.bytes, HashSet::new());
        for (used, of) in all {
            if left + bytes <= limit && self.count - victims.len() < MAX_RESULTS {
                break;
            }
            left -= of;
            victims.insert(used);
        }
        metrics::counter!("bowshot_result_cache_evictions_total", "place" => "disk")
            .increment(victims.len() as u64);
        self.take(|_, entry| victims.contains(&entry.used.load(Ordering::Relaxed)))
    }

    fn take(&mut self, which: impl Fn(u64, &Arc<Entry>) -> bool) -> Vec<Arc<Entry>> {
        let mut taken = Vec::new();
        self.by_digest.retain(|digest, entries| {
            taken.extend(entries.extract_if(.., |entry| which(*digest, entry)));
            !entries.is_empty()
        });
        self.bytes -= taken.iter().map(|entry| entry.bytes).sum::<u64>();
        self.count -= taken.len();
        self.publish();
        taken
    }

    fn publish(&self) {
        metrics::gauge!("bowshot_result_cache_disk_bytes").set(self.bytes as f64);
    }
}

fn names(tables: &[TableKey]) -> impl Iterator<Item = &TableName> {
    tables.iter().map(|table| &table.name)
}

fn not_opened(error: &Error) {
    failed("open", error);
}

fn failed(what: &'static str, error: &Error) {
    metrics::counter!("bowshot_result_cache_errors_total", "what" => what).increment(1);
    tracing::warn!(what, error = error as &dyn std::error::Error, "the result cache steps aside");
}

#[cfg(test)]
mod tests;
