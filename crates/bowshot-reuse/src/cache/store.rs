//! The cached joins of a server: in memory under one budget, on disk under a second. The join that saves the least time for each byte is
//! evicted first.

use crate::cache::Error;
use crate::cache::cache_folder::Claim;
use crate::cache::entry::{CachedJoin, JoinInfo};
use crate::cache::file::{self, now_milliseconds};
use crate::cache::needs::Needs;
use crate::cache::results::this_program;
use crate::cache::shape::{ColumnRef, JoinShape, Match, TableKey, columns_in};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use disk::{Described, Disk};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

mod disk;

/// Approximate bytes of a join without its rows: its descriptions in memory and on disk.
pub(crate) const ENTRY_BYTES: u64 = 4 << 10;
/// Most cached joins: a lookup checks each join of the same tables.
const MAX_JOINS: usize = 2_000;

/// Limits of a store.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    /// Bytes of rows in memory.
    pub(crate) memory_bytes: u64,
    /// Bytes of files.
    pub(crate) disk_bytes: u64,
    /// The folder of the files; none are written without it.
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Store {
    budget: Budget,
    joins: Mutex<Joins>,
    next: AtomicU64,
    disk: Mutex<Disk>,
}

/// The joins by a digest of their tables, and what all of them take.
#[derive(Debug, Default)]
struct Joins {
    by_tables: HashMap<u64, Vec<Arc<CachedJoin>>>,
    memory: u64,
    disk: u64,
    /// Computed when needed.
    needs: Option<Arc<Needs>>,
}

impl Store {
    /// Opens a store, with the joins of its folder. An unusable folder is ignored.
    pub(crate) fn open(budget: Budget) -> Self {
        let opened = budget.folder.as_deref().map(|folder| {
            let claim = Claim::take(folder)?;
            Ok((claim, file::found::<Described<JoinInfo>>(folder, not_opened)?))
        });
        let (budget, claim, found) = match opened {
            Some(Ok((claim, found))) => (budget, Some(claim), found),
            None => (budget, None, Vec::new()),
            Some(Err(error)) => {
                not_opened(&error);
                (Budget { folder: None, ..budget }, None, Vec::new())
            }
        };
        // The clock may have been set back since they were numbered.
        let last = found.iter().map(|(_, file)| file.number()).max().unwrap_or_default();
        let next = AtomicU64::new(now_milliseconds().max(last.saturating_add(1)));
        let disk = Mutex::new(Disk::of(claim));
        let store = Self { budget, joins: Mutex::default(), next, disk };
        for (Described { program, about }, file) in found {
            if program != this_program() || store.sizes().1 + file.bytes > store.budget.disk_bytes {
                file.remove();
                continue;
            }
            let bytes = file.bytes;
            let join = Arc::new(CachedJoin::in_file(file.number(), about, file));
            let mut joins = store.joins.lock();
            joins.disk += bytes;
            joins.add(join);
        }
        store.publish_sizes();
        store
    }

    /// The smallest join that answers `wanted` with these columns; `conditions` are those of `wanted` in the caller's order.
    pub(crate) fn find(
        &self,
        wanted: &JoinShape,
        conditions: &[String],
        columns: &BTreeSet<ColumnRef>,
    ) -> Option<(Arc<CachedJoin>, Match)> {
        let candidates = self.joins.lock().by_tables.get(&digest(&wanted.tables))?.clone();
        let fitting = candidates.into_iter().filter_map(|join| {
            let found = join.about.shape.gives(wanted, conditions)?;
            has_columns(&join.about, &found, conditions, columns).then_some((join, found))
        });
        fitting.min_by_key(|(join, _)| join.about.bytes)
    }

    /// Requirements of queries that the joins can answer.
    pub(crate) fn needs(&self) -> Arc<Needs> {
        self.joins.lock().needs()
    }

    /// Joins of the same tables and conditions, in any version, that this process has computed.
    pub(crate) fn earlier(&self, shape: &JoinShape) -> Vec<Arc<CachedJoin>> {
        let same = |join: &Arc<CachedJoin>| join.is_fresh() && is_version_of(&join.about.shape, shape);
        self.all().into_iter().filter(same).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<CachedJoin>> {
        self.joins.lock().by_tables.values().flatten().map(Arc::clone).collect()
    }

    /// Bytes in memory and on disk.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let joins = self.joins.lock();
        (joins.memory, joins.disk)
    }

    /// Largest size of a join: half of the memory, so that it does not evict all others.
    pub(crate) fn largest(&self) -> u64 {
        self.budget.memory_bytes / 2
    }

    /// Pins or unpins a join.
    pub(crate) fn pin(&self, id: u64, pinned: bool) -> Result<bool, Error> {
        let joins = self.joins.lock();
        let Some(join) = joins.by_tables.values().flatten().find(|join| join.id == id) else {
            return Ok(false);
        };
        join.pin(false);
        let bytes = joins.pinned_bytes() + join.about.bytes;
        if pinned && bytes > self.largest() {
            return Err(Error::TooLarge { bytes });
        }
        join.pin(pinned);
        Ok(true)
    }

    /// The folder of the files.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.budget.folder.as_ref()
    }

    /// Inserts a join, replaces superfluous ones, and evicts those of less value.
    pub(crate) fn insert(
        &self,
        about: JoinInfo,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    ) -> Result<Arc<CachedJoin>, Error> {
        let about = JoinInfo { bytes: about.bytes + ENTRY_BYTES, ..about };
        let mut join = CachedJoin::in_memory(self.next_id(), about, schema, batches);
        let (join, dropped) = {
            let mut joins = self.joins.lock();
            let mut dropped = joins.replaced_by(&join);
            // Uses of the earlier version count for this one.
            join.about.expected_uses += dropped.iter().map(|old| old.hits()).max().unwrap_or_default() as f64;
            let join = Arc::new(join);
            // The newest version stays pinned, unless it has become too large.
            let pinned = dropped.iter().any(|old| old.is_pinned());
            let fits = joins.pinned_bytes() + join.about.bytes <= self.largest();
            join.pin(pinned && fits);
            if pinned && !fits {
                tracing::warn!(id = join.id, "a pinned join has grown too large to be pinned");
            }
            let leaving = joins.make_room(&join, self.budget.memory_bytes);
            match leaving {
                Ok(gone) => dropped.extend(gone),
                Err(error) => {
                    // The joins that it would have replaced are still valid.
                    dropped.into_iter().for_each(|join| joins.give_back(join));
                    return Err(error);
                }
            }
            dropped.extend(joins.thinned());
            joins.memory += join.about.bytes;
            joins.add(Arc::clone(&join));
            (join, dropped)
        };
        // Outside the lock: files are removed here.
        dropped.iter().for_each(|join| join.leave_disk());
        self.publish_sizes();
        Ok(join)
    }

    /// Removes joins with a matching table.
    pub(crate) fn remove_of(&self, gone: impl Fn(&TableKey) -> bool) -> usize {
        self.remove_all(|join| join.about.shape.tables.iter().any(&gone))
    }

    /// Forgets a join in all its versions.
    pub(crate) fn remove_versions_of(&self, shape: &JoinShape) {
        self.remove_all(|join| is_version_of(&join.about.shape, shape));
    }

    /// Forgets a join.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.remove_all(|join| join.id == id) > 0
    }

    /// Forgets joins, and gives their number. Queries that read them go on.
    pub(crate) fn remove_all(&self, which: impl Fn(&CachedJoin) -> bool) -> usize {
        let removed = self.joins.lock().take(which);
        removed.iter().for_each(|join| join.leave_disk());
        self.publish_sizes();
        removed.len()
    }

    /// Forgets a join whose rows cannot be read; says so if nobody has yet.
    pub(crate) fn remove_broken(&self, id: u64, error: &Error) {
        if self.remove(id) {
            failed("read", error);
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
}

impl Joins {
    fn add(&mut self, join: Arc<CachedJoin>) {
        self.needs = None;
        self.by_tables.entry(digest(&join.about.shape.tables)).or_default().push(join);
    }

    /// Takes in again what was taken out.
    fn give_back(&mut self, join: Arc<CachedJoin>) {
        if join.memory_batches().is_some() {
            self.memory += join.about.bytes;
        }
        self.disk += join.disk_bytes();
        self.add(join);
    }

    fn needs(&mut self) -> Arc<Needs> {
        let joins = self.by_tables.values().flatten();
        Arc::clone(self.needs.get_or_insert_with(|| {
            let mut needs = Needs::default();
            joins.for_each(|join| needs.add(join.needs));
            Arc::new(needs)
        }))
    }

    fn pinned_bytes(&self) -> u64 {
        self.by_tables.values().flatten().filter(|join| join.is_pinned()).map(|join| join.about.bytes).sum()
    }

    fn contains(&self, join: &CachedJoin) -> bool {
        self.by_tables.values().flatten().any(|other| other.id == join.id)
    }

    /// Takes out what a new join makes superfluous: older versions of the same join, and joins that it gives.
    fn replaced_by(&mut self, new: &CachedJoin) -> Vec<Arc<CachedJoin>> {
        let shape = &new.about.shape;
        self.take(|old| {
            let other = &old.about.shape;
            // An older version with other conditions, a slice, stays: its own rows will be brought up to date.
            let older = other.tables != shape.tables;
            let conditions = &other.tree.conditions;
            let has_rows = || shape.tree.conditions.iter().all(|condition| conditions.contains(condition));
            let has_columns = || old.about.columns.iter().all(|column| new.about.columns.contains(column));
            is_named_like(other, shape)
                && other.settings == shape.settings
                && other.tree.members == shape.tree.members
                && has_rows()
                && (older || (!old.is_pinned() && has_columns()))
        })
    }

    /// Makes joins leave memory until the new one fits: those stay that are worth more. Gives those that are gone.
    fn make_room(&mut self, new: &CachedJoin, limit: u64) -> Result<Vec<Arc<CachedJoin>>, Error> {
        let now = SystemTime::now();
        let bytes = new.about.bytes;
        if bytes > limit {
            return Err(Error::TooLarge { bytes });
        }
        let in_memory = self.by_tables.values().flatten().filter(|join| join.memory_batches().is_some());
        let mut in_memory: Vec<_> = in_memory.map(Arc::clone).collect();
        let (mut victims, mut memory) = (Vec::new(), self.memory);
        while memory + bytes > limit {
            // Yesterday's join leaves for that of today, whichever of them took longer.
            let earlier = least(in_memory.iter().filter(|join| new.is_later_than(join)).map(Arc::clone), now);
            let cheapest = || least(in_memory.iter().map(Arc::clone), now);
            let gives_way = |join: &Arc<CachedJoin>| new.is_pinned() || join.worth(now) < new.worth(now);
            let victim = earlier.or_else(|| cheapest().filter(gives_way));
            // Nobody leaves for a join that finds no room all the same.
            let Some(victim) = victim else { return Err(Error::TooLarge { bytes }) };
            memory = memory.saturating_sub(victim.about.bytes);
            in_memory.retain(|join| join.id != victim.id);
            victims.push(victim);
        }
        self.memory = memory;
        for victim in &victims {
            victim.leave_memory();
            metrics::counter!("bowshot_join_cache_evictions_total", "place" => "memory").increment(1);
        }
        victims.retain(|victim| victim.disk_bytes() == 0);
        victims.iter().for_each(|victim| self.forget(victim.id));
        Ok(victims)
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
        self.needs = None;
        self.by_tables.retain(|_, joins| {
            joins.retain(|join| join.id != id);
            !joins.is_empty()
        });
    }
}

fn least(joins: impl Iterator<Item = Arc<CachedJoin>>, now: SystemTime) -> Option<Arc<CachedJoin>> {
    joins.filter(|join| !join.is_pinned()).min_by(|one, other| one.worth(now).total_cmp(&other.worth(now)))
}

fn has_columns(
    about: &JoinInfo,
    found: &Match,
    conditions: &[String],
    columns: &BTreeSet<ColumnRef>,
) -> bool {
    let there = |column: &ColumnRef| {
        let number = found.numbers.get(column.table).copied();
        about.columns.iter().any(|other| Some(other.table) == number && other.column == column.column)
    };
    let missing = found.missing.iter().filter_map(|place| conditions.get(*place));
    columns.iter().all(there)
        && missing.flat_map(|condition| columns_in(condition)).all(|column| there(&column))
}

fn digest(tables: &[TableKey]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tables.hash(&mut hasher);
    hasher.finish()
}

/// Whether two joins are of tables with the same names, in whatever version.
pub(crate) fn is_named_like(one: &JoinShape, other: &JoinShape) -> bool {
    one.tables.iter().map(|table| &table.name).eq(other.tables.iter().map(|table| &table.name))
}

/// Whether two joins are the same one, of tables in whatever versions.
fn is_version_of(one: &JoinShape, other: &JoinShape) -> bool {
    is_named_like(one, other) && one.settings == other.settings && one.tree == other.tree
}

fn not_opened(error: &Error) {
    failed("open", error);
}

fn failed(what: &'static str, error: &Error) {
    metrics::counter!("bowshot_join_cache_errors_total", "what" => what).increment(1);
    tracing::warn!(what, error = error as &dyn std::error::Error, "the join cache steps aside");
}

#[cfg(test)]
mod tests;
