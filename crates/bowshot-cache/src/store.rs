//! The cached joins of a server: in memory under one budget, on disk under a second. What saves the least time for each
//! byte leaves first.

use crate::Error;
use crate::entry::{About, CachedJoin};
use crate::file::{self, CacheFile};
use crate::shape::{ColumnRef, JoinShape, Match, TableKey, columns_in};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What a join takes beside its rows, about: its description here and on disk.
const ENTRY_BYTES: u64 = 4 << 10;
/// Joins that are kept at most: looking for one costs something for each of the same tables.
const MAX_JOINS: usize = 2_000;

/// What a store may take.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Bytes of rows in memory.
    pub memory_bytes: u64,
    /// Bytes of files.
    pub disk_bytes: u64,
    /// Where the files are; none are written without a folder.
    pub folder: Option<PathBuf>,
}

/// See the module.
#[derive(Debug)]
pub struct Store {
    budget: Budget,
    joins: Mutex<Joins>,
    next: AtomicU64,
    /// The number of the first join of this process.
    first: u64,
}

/// The joins by a digest of their tables, and what all of them take.
#[derive(Debug, Default)]
struct Joins {
    by_tables: HashMap<u64, Vec<Arc<CachedJoin>>>,
    memory: u64,
    disk: u64,
    /// See [`Store::identities`]; made anew when somebody asks.
    identities: Option<Arc<HashSet<u64>>>,
}

impl Store {
    /// An empty store, or with a folder one of the joins that are there. A folder that cannot be used is not used.
    pub fn open(budget: Budget) -> Self {
        let found = budget.folder.as_deref().map(file::found);
        let (budget, found) = match found {
            Some(Ok(found)) => (budget, found),
            None => (budget, Vec::new()),
            Some(Err(error)) => {
                failed("open", &error);
                (Budget { folder: None, ..budget }, Vec::new())
            }
        };
        let first = now_milliseconds();
        let store = Self { budget, joins: Mutex::default(), next: AtomicU64::new(first), first };
        for (about, file) in found {
            if store.sizes().1 + file.bytes > store.budget.disk_bytes {
                file.remove();
                continue;
            }
            let bytes = file.bytes;
            let join = Arc::new(CachedJoin::in_file(file.number(), about, file));
            let mut joins = store.lock();
            joins.disk += bytes;
            joins.add(join);
        }
        store.publish_sizes();
        store
    }

    /// The smallest join that gives `wanted` with these columns; `conditions` are those of `wanted` in the caller's order.
    pub fn find(
        &self,
        wanted: &JoinShape,
        conditions: &[String],
        columns: &BTreeSet<ColumnRef>,
    ) -> Option<(Arc<CachedJoin>, Match)> {
        let candidates = self.lock().by_tables.get(&digest(&wanted.tables))?.clone();
        let fitting = candidates.into_iter().filter_map(|join| {
            let found = join.about.shape.gives(wanted, conditions)?;
            has_columns(&join.about, &found, conditions, columns).then_some((join, found))
        });
        fitting.min_by_key(|(join, _)| join.about.bytes)
    }

    /// For each join, a digest of its tables in whatever version: the sum of what [`identity_digest`] gives for each.
    pub fn identities(&self) -> Arc<HashSet<u64>> {
        self.lock().identities()
    }

    /// The joins of the same tables, in whatever version, with the same conditions, that this process has computed: what
    /// an earlier one has may be of segments whose numbers mean something else today.
    pub fn earlier(&self, shape: &JoinShape) -> Vec<Arc<CachedJoin>> {
        let same = |join: &Arc<CachedJoin>| {
            let other = &join.about.shape;
            join.id >= self.first
                && other.tree == shape.tree
                && other.settings == shape.settings
                && other.tables.len() == shape.tables.len()
                && other.tables.iter().zip(&shape.tables).all(|(one, other)| one.name == other.name)
        };
        self.all().into_iter().filter(same).collect()
    }

    /// All joins.
    pub fn all(&self) -> Vec<Arc<CachedJoin>> {
        self.lock().by_tables.values().flatten().map(Arc::clone).collect()
    }

    /// Bytes in memory and on disk.
    pub fn sizes(&self) -> (u64, u64) {
        let joins = self.lock();
        (joins.memory, joins.disk)
    }

    /// Most bytes that one join may have: no more than half of the memory, so that one does not displace all others.
    pub fn largest(&self) -> u64 {
        self.budget.memory_bytes / 2
    }

    /// The folder of the files.
    pub fn folder(&self) -> Option<&PathBuf> {
        self.budget.folder.as_ref()
    }

    /// Takes a join in, in place of those that it makes superfluous, and makes room by what is worth less.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when there is no room that is worth less.
    pub fn insert(
        &self,
        about: About,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<Arc<CachedJoin>, Error> {
        let about = About { bytes: about.bytes + ENTRY_BYTES, ..about };
        let join = Arc::new(CachedJoin::in_memory(self.next_id(), about, schema, batches));
        let dropped = {
            let mut joins = self.lock();
            let mut dropped = joins.replaced_by(&join);
            let leaving = joins.make_room(&join, self.budget.memory_bytes);
            match leaving {
                Ok(gone) => dropped.extend(gone),
                Err(error) => {
                    drop(joins);
                    dropped.iter().for_each(|join| join.leave_disk());
                    return Err(error);
                }
            }
            dropped.extend(joins.thinned());
            joins.memory += join.about.bytes;
            joins.add(Arc::clone(&join));
            dropped
        };
        // Outside the lock: files are removed here.
        dropped.iter().for_each(|join| join.leave_disk());
        self.publish_sizes();
        Ok(join)
    }

    /// Writes a join to disk, if there is a folder and room, so that it survives its leaving memory and, if its tables do,
    /// a restart. Blocks, and calls `pause` now and then. A disk that fails costs the file and no more.
    pub fn write(&self, join: &Arc<CachedJoin>, pause: &dyn Fn()) {
        let (Some(folder), Some(batches)) = (&self.budget.folder, join.memory_batches()) else { return };
        if !self.make_room_on_disk(join) {
            return;
        }
        let path = folder.join(format!("{}.arrow", join.id));
        let written = CacheFile::write(path, (join.schema(), &batches), pause).and_then(|file| {
            if join.about.shape.tables.iter().all(TableKey::is_lasting) {
                let _bytes = file.describe(&join.about).inspect_err(|_| file.remove())?;
            }
            Ok(file)
        });
        match written {
            Ok(file) => {
                let mut joins = self.lock();
                if joins.contains(join) {
                    joins.disk += file.bytes;
                    join.keep_file(file);
                } else {
                    drop(joins);
                    file.remove();
                }
            }
            Err(error) => failed("write", &error),
        }
        self.publish_sizes();
    }

    /// Forgets the joins that have a table of which this is true. Queries that read them go on.
    pub fn remove_of(&self, gone: impl Fn(&TableKey) -> bool) -> usize {
        let removed = self.lock().take(|join| join.about.shape.tables.iter().any(&gone));
        removed.iter().for_each(|join| join.leave_disk());
        self.publish_sizes();
        removed.len()
    }

    /// Forgets a join. Queries that read it go on.
    pub fn remove(&self, id: u64) -> bool {
        let removed = self.lock().take(|join| join.id == id);
        removed.iter().for_each(|join| join.leave_disk());
        self.publish_sizes();
        !removed.is_empty()
    }

    /// Forgets a join whose rows cannot be read.
    pub fn remove_broken(&self, id: u64, error: &Error) {
        failed("read", error);
        self.remove(id);
    }

    fn make_room_on_disk(&self, join: &CachedJoin) -> bool {
        let now = SystemTime::now();
        loop {
            let victim = {
                let mut joins = self.lock();
                if joins.disk + join.about.bytes <= self.budget.disk_bytes {
                    return true;
                }
                let on_disk = joins.by_tables.values().flatten().filter(|other| other.disk_bytes() > 0);
                let Some(victim) =
                    least(on_disk.map(Arc::clone), now).filter(|other| other.worth(now) < join.worth(now))
                else {
                    return false;
                };
                joins.disk = joins.disk.saturating_sub(victim.disk_bytes());
                if victim.memory_batches().is_none() {
                    joins.forget(victim.id);
                    metrics::counter!("bowshot_join_cache_evictions_total", "place" => "disk").increment(1);
                }
                victim
            };
            victim.leave_disk();
        }
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn publish_sizes(&self) {
        let (memory, disk) = self.sizes();
        metrics::gauge!("bowshot_join_cache_bytes", "place" => "memory").set(memory as f64);
        metrics::gauge!("bowshot_join_cache_bytes", "place" => "disk").set(disk as f64);
    }

    fn lock(&self) -> MutexGuard<'_, Joins> {
        self.joins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Joins {
    fn add(&mut self, join: Arc<CachedJoin>) {
        self.identities = None;
        self.by_tables.entry(digest(&join.about.shape.tables)).or_default().push(join);
    }

    fn identities(&mut self) -> Arc<HashSet<u64>> {
        // Those with one digest are of the same tables.
        let each = self.by_tables.values().filter_map(|joins| joins.first());
        let identities = each.map(|join| {
            let tables = join.about.shape.tables.iter().map(|table| identity_digest(table.identity()));
            tables.fold(0, u64::wrapping_add)
        });
        Arc::clone(self.identities.get_or_insert_with(|| Arc::new(identities.collect())))
    }

    fn contains(&self, join: &CachedJoin) -> bool {
        self.by_tables.values().flatten().any(|other| other.id == join.id)
    }

    /// Takes out what a new join makes superfluous: older versions of the same join, and joins that it gives.
    fn replaced_by(&mut self, new: &CachedJoin) -> Vec<Arc<CachedJoin>> {
        let shape = &new.about.shape;
        self.take(|old| {
            let other = &old.about.shape;
            let named = other.tables.len() == shape.tables.len()
                && other.tables.iter().zip(&shape.tables).all(|(one, other)| one.name == other.name);
            let older = other.tables != shape.tables;
            let wider = || {
                let conditions = &other.tree.conditions;
                shape.tree.conditions.iter().all(|condition| conditions.contains(condition))
                    && old.about.columns.iter().all(|column| new.about.columns.contains(column))
            };
            named
                && other.settings == shape.settings
                && other.tree.members == shape.tree.members
                && (older || wider())
                && (!old.is_pinned() || older)
        })
    }

    /// Makes joins leave memory until the new one fits: those stay that are worth more. Gives those that are gone.
    fn make_room(&mut self, new: &CachedJoin, limit: u64) -> Result<Vec<Arc<CachedJoin>>, Error> {
        let now = SystemTime::now();
        let bytes = new.about.bytes;
        if bytes > limit {
            return Err(Error::TooLarge { bytes });
        }
        let mut gone = Vec::new();
        while self.memory + bytes > limit {
            let in_memory = self.by_tables.values().flatten().filter(|join| join.memory_batches().is_some());
            let in_memory: Vec<_> = in_memory.map(Arc::clone).collect();
            // Yesterday's join leaves for that of today, whichever of them took longer.
            let earlier = least(in_memory.iter().filter(|join| new.is_later_than(join)).map(Arc::clone), now);
            let cheapest = || least(in_memory.iter().map(Arc::clone), now);
            let victim = earlier.or_else(|| cheapest().filter(|join| join.worth(now) < new.worth(now)));
            let Some(victim) = victim else { return Err(Error::TooLarge { bytes }) };
            self.memory = self.memory.saturating_sub(victim.about.bytes);
            victim.leave_memory();
            metrics::counter!("bowshot_join_cache_evictions_total", "place" => "memory").increment(1);
            if victim.disk_bytes() == 0 {
                self.forget(victim.id);
                gone.push(victim);
            }
        }
        Ok(gone)
    }

    /// Takes out what is worth least while there are too many.
    fn thinned(&mut self) -> Vec<Arc<CachedJoin>> {
        let (now, mut gone) = (SystemTime::now(), Vec::new());
        while self.by_tables.values().map(Vec::len).sum::<usize>() >= MAX_JOINS {
            let Some(victim) = least(self.by_tables.values().flatten().map(Arc::clone), now) else { break };
            gone.extend(self.take(|join| join.id == victim.id));
        }
        gone
    }

    fn take(&mut self, which: impl Fn(&CachedJoin) -> bool) -> Vec<Arc<CachedJoin>> {
        let taken: Vec<_> =
            self.by_tables.values().flatten().filter(|join| which(join)).map(Arc::clone).collect();
        for join in &taken {
            if join.memory_batches().is_some() {
                self.memory = self.memory.saturating_sub(join.about.bytes);
            }
            self.disk = self.disk.saturating_sub(join.disk_bytes());
            self.forget(join.id);
        }
        taken
    }

    fn forget(&mut self, id: u64) {
        self.identities = None;
        self.by_tables.retain(|_, joins| {
            joins.retain(|join| join.id != id);
            !joins.is_empty()
        });
    }
}

fn least(joins: impl Iterator<Item = Arc<CachedJoin>>, now: SystemTime) -> Option<Arc<CachedJoin>> {
    joins.filter(|join| !join.is_pinned()).min_by(|one, other| one.worth(now).total_cmp(&other.worth(now)))
}

fn has_columns(about: &About, found: &Match, conditions: &[String], columns: &BTreeSet<ColumnRef>) -> bool {
    let there = |column: &ColumnRef| {
        let number = found.numbers.get(column.table).copied();
        about.columns.iter().any(|other| Some(other.table) == number && other.column == column.column)
    };
    let missing = found.missing.iter().filter_map(|place| conditions.get(*place));
    columns.iter().all(there)
        && missing.flat_map(|condition| columns_in(condition)).all(|column| there(&column))
}

/// A number for what all versions of a table have in common, see [`TableKey::identity`]. Different tables may share it.
pub fn identity_digest(identity: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

fn digest(tables: &[TableKey]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tables.hash(&mut hasher);
    hasher.finish()
}

/// Larger than any number of a file that an earlier process has written.
fn now_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 2)
}

fn failed(what: &'static str, error: &Error) {
    metrics::counter!("bowshot_join_cache_errors_total", "what" => what).increment(1);
    tracing::warn!(what, error = error as &dyn std::error::Error, "the join cache steps aside");
}

#[cfg(test)]
mod tests;
