//! The entries of a cache, joins or whole results: in memory under one budget, on disk under a second. Eviction is
//! Greedy-Dual-Size-Frequency (L. Cherkasova, HP Laboratories, 1998): the priority of an entry is its cost times its uses for each byte, plus
//! a clock at its last use, which is the priority of the last evicted entry; so unused entries lose value.

use crate::cache::Error;
use crate::cache::cache_folder::Claim;
use crate::cache::entry::{Entry, EntryInfo, Loaded};
use crate::cache::file::{self, CacheFile, now_milliseconds};
use crate::cache::shape::TableKey;
use disk::{Described, Disk, this_program};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod disk;

/// An entry that finds no room is tried again once a minute at most: after an hour of that, what is there has lost as much as
/// the entry is worth.
const REFUSALS_OF_AN_HOUR: f64 = 60.0;

pub(crate) trait Cacheable: Debug + Sized + Serialize + DeserializeOwned {
    /// Most entries: one that leaves is looked for among all.
    const MAX_ENTRIES: usize;
    /// Whether a new entry always gets room, or that of entries that are worth less.
    const ALWAYS_ENTERS: bool;
    /// Whether the folder may be any one, and has to be marked and locked.
    const CLAIMS_FOLDER: bool;

    /// A digest of what is computed, whatever its tables hold.
    fn digest(&self) -> u64;
    fn tables(&self) -> &[TableKey];
    /// Whether it makes an entry that is there superfluous.
    fn replaces(&self, old: &Entry<Self>) -> bool;
    /// Whether it is the same as another one, of later tables of a sequence.
    fn follows(&self, _other: &Self) -> bool {
        false
    }
    /// Its rows have left memory.
    fn leave_memory(&self) {}
    fn count_eviction(place: Place);
    fn publish(sizes: Sizes);
    /// Counts and logs an error.
    fn failed(what: &'static str, error: &Error);
}

#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) memory_bytes: u64,
    pub(crate) disk_bytes: u64,
    /// The folder of the files; none are written without it.
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Disk,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) in_memory: usize,
}

#[derive(Debug)]
pub(crate) struct Store<K> {
    budget: Budget,
    entries: Mutex<Entries<K>>,
    next: AtomicU64,
    disk: Mutex<Disk>,
}

#[derive(Debug)]
struct Entries<K> {
    by_digest: HashMap<u64, Vec<Arc<Entry<K>>>>,
    sizes: Sizes,
    clock: f64,
}

/// What has left a store. It is dropped, and files are removed, outside of the lock.
#[derive(Default)]
struct Freed {
    rows: Vec<Loaded>,
    files: Vec<CacheFile>,
}

impl<K: Cacheable> Store<K> {
    /// Opens a store, with the entries of its folder. An unusable folder is ignored.
    pub(crate) fn open(budget: Budget) -> Self {
        let opened = budget.folder.as_deref().map(|folder| {
            let claim = K::CLAIMS_FOLDER.then(|| Claim::take(folder)).transpose()?;
            Ok((claim, file::found::<Described<K>>(folder, not_opened::<K>)?))
        });
        let (budget, claim, mut found) = match opened {
            Some(Ok((claim, found))) => (budget, claim, found),
            None => (budget, None, Vec::new()),
            Some(Err(error)) => {
                not_opened::<K>(&error);
                (Budget { folder: None, ..budget }, None, Vec::new())
            }
        };
        found.sort_by_key(|(described, _)| Reverse(described.info.created));
        // The clock may have been set back since they were numbered.
        let last = found.iter().map(|(_, file)| file.number()).max().unwrap_or_default();
        let next = AtomicU64::new(now_milliseconds().max(last.saturating_add(1)));
        let entries = Entries { by_digest: HashMap::new(), sizes: Sizes::default(), clock: 0.0 };
        let store = Self { budget, entries: Mutex::new(entries), next, disk: Mutex::new(Disk::new(claim)) };
        for (Described { program, info, about }, file) in found {
            let mut entries = store.entries.lock();
            let fits = entries.sizes.disk + file.size() <= store.budget.disk_bytes;
            if program == this_program() && fits && entries.count() < K::MAX_ENTRIES {
                entries.add(Arc::new(Entry::in_file(file.number(), about, info, file)));
            } else {
                file.remove();
            }
        }
        store.publish();
        store
    }

    pub(crate) fn has(&self, digest: u64) -> bool {
        self.entries.lock().by_digest.contains_key(&digest)
    }

    /// The entries of a digest, whatever their tables hold.
    pub(crate) fn of_digest(&self, digest: u64) -> Vec<Arc<Entry<K>>> {
        self.entries.lock().by_digest.get(&digest).cloned().unwrap_or_default()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Entry<K>>> {
        self.entries.lock().iter().map(Arc::clone).collect()
    }

    pub(crate) fn hit(&self, entry: &Entry<K>) {
        entry.hit(self.entries.lock().clock);
    }

    /// Half of the memory: a join that is larger would evict all others.
    pub(crate) fn largest(&self) -> u64 {
        self.budget.memory_bytes / 2
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.budget.disk_bytes
    }

    /// Pins or unpins an entry; false if it is not there.
    pub(crate) fn pin(&self, id: u64, pinned: bool) -> Result<bool, Error> {
        let entries = self.entries.lock();
        let Some(entry) = entries.iter().find(|entry| entry.id == id) else { return Ok(false) };
        let bytes = entries.pinned_bytes(slice::from_ref(entry)) + entry.info.bytes;
        if pinned && bytes > self.largest() {
            return Err(Error::TooLarge { bytes });
        }
        entry.pin(pinned);
        Ok(true)
    }

    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.budget.folder.as_ref()
    }

    /// Inserts an entry, replaces superfluous ones, and evicts those of less value. On an error all stay.
    pub(crate) fn insert(&self, about: K, info: EntryInfo, rows: Loaded) -> Result<Arc<Entry<K>>, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (mut entry, mut freed) = (Entry::in_memory(id, about, info, rows), Freed::default());
        let entry = {
            let mut entries = self.entries.lock();
            let replaced = entries.iter().filter(|old| entry.about.replaces(old));
            let replaced: Vec<_> = replaced.map(Arc::clone).collect();
            // Uses of the earlier version count for this one.
            entry.earlier_uses = replaced.iter().map(|old| old.hits()).max().unwrap_or_default();
            if replaced.iter().any(|old| old.is_pinned()) {
                // The newest version stays pinned, unless it has become too large.
                let fits = entries.pinned_bytes(&replaced) + entry.info.bytes <= self.largest();
                entry.pin(fits);
                if !fits {
                    tracing::warn!(id, "a pinned join has grown too large to be pinned");
                }
            }
            let room = (Place::Memory, entry.info.bytes, self.budget.memory_bytes);
            entries.make_room(&entry, &replaced, room, &mut freed)?;
            entries.take(|old| is_among(&replaced, old), &mut freed);
            entries.thin(&mut freed);
            let entry = Arc::new(entry);
            entries.add(Arc::clone(&entry));
            entry
        };
        freed.remove();
        self.publish();
        Ok(entry)
    }

    /// Takes the rows of an entry, read from its file, into memory.
    pub(crate) fn restore(&self, entry: &Arc<Entry<K>>, rows: Loaded) -> Result<(), Error> {
        let mut freed = Freed::default();
        {
            let mut entries = self.entries.lock();
            if !entries.contains(entry) {
                return Err(Error::Gone);
            }
            if entry.bytes_in(Place::Memory) == 0 {
                let room = (Place::Memory, entry.info.bytes, self.budget.memory_bytes);
                entries.make_room(entry, &[], room, &mut freed)?;
                entry.enter_memory(rows);
                entries.sizes.memory += entry.info.bytes;
                entries.sizes.in_memory += 1;
            }
        }
        freed.remove();
        self.publish();
        Ok(())
    }

    /// Forgets entries with a matching table. Each table is looked at once, outside of the lock.
    pub(crate) fn remove_of(&self, matches: impl Fn(&TableKey) -> bool) -> usize {
        let all = self.all();
        let tables: HashSet<&TableKey> = all.iter().flat_map(|entry| entry.about.tables()).collect();
        let gone: HashSet<&TableKey> = tables.into_iter().filter(|table| matches(table)).collect();
        if gone.is_empty() {
            return 0;
        }
        self.remove_all(|entry| entry.about.tables().iter().any(|table| gone.contains(table)))
    }

    pub(crate) fn remove(&self, id: u64) -> bool {
        self.remove_all(|entry| entry.id == id) > 0
    }

    /// Forgets entries, and gives their number. Queries that read them go on.
    pub(crate) fn remove_all(&self, which: impl Fn(&Entry<K>) -> bool) -> usize {
        let mut freed = Freed::default();
        let removed = self.entries.lock().take(which, &mut freed);
        freed.remove();
        self.publish();
        removed
    }

    /// Forgets an entry whose rows cannot be read; says so if nobody has yet.
    pub(crate) fn remove_broken(&self, id: u64, error: &Error) {
        if self.remove(id) {
            K::failed("read", error);
        }
    }

    fn publish(&self) {
        K::publish(self.sizes());
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.entries.lock().sizes
    }
}

impl<K: Cacheable> Entries<K> {
    fn iter(&self) -> impl Iterator<Item = &Arc<Entry<K>>> {
        self.by_digest.values().flatten()
    }

    fn count(&self) -> usize {
        self.by_digest.values().map(Vec::len).sum()
    }

    fn contains(&self, entry: &Entry<K>) -> bool {
        self.by_digest.get(&entry.about.digest()).is_some_and(|all| is_among(all, entry))
    }

    fn pinned_bytes(&self, but: &[Arc<Entry<K>>]) -> u64 {
        let pinned = self.iter().filter(|entry| entry.is_pinned() && !is_among(but, entry));
        pinned.map(|entry| entry.info.bytes).sum()
    }

    fn add(&mut self, entry: Arc<Entry<K>>) {
        entry.used_at(self.clock);
        let bytes = entry.bytes_in(Place::Memory);
        self.sizes.memory += bytes;
        self.sizes.in_memory += usize::from(bytes > 0);
        self.sizes.disk += entry.bytes_in(Place::Disk);
        self.by_digest.entry(entry.about.digest()).or_default().push(entry);
    }

    /// Makes entries leave a place until so many bytes of a new one fit its limit; `replaced` leave in any case.
    fn make_room(
        &mut self,
        new: &Entry<K>,
        replaced: &[Arc<Entry<K>>],
        (place, bytes, limit): (Place, u64, u64),
        freed: &mut Freed,
    ) -> Result<(), Error> {
        let taken = if place == Place::Memory { self.sizes.memory } else { self.sizes.disk };
        let going: u64 = replaced.iter().map(|old| old.bytes_in(place)).sum();
        let (mut left, mut victims) = (taken.saturating_sub(going), Vec::new());
        if bytes > limit {
            return Err(Error::TooLarge { bytes });
        }
        if left + bytes <= limit {
            return Ok(());
        }
        let there = self.iter().filter(|entry| {
            entry.id != new.id
                && !entry.is_pinned()
                && entry.bytes_in(place) > 0
                && !is_among(replaced, entry)
        });
        // Yesterday's leaves for that of today, whichever of them is worth more.
        let mut there: Vec<_> = there
            .map(|entry| (!new.about.follows(&entry.about), entry.priority(), Arc::clone(entry)))
            .collect();
        there.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let (always, most) = (K::ALWAYS_ENTERS || new.is_pinned(), self.clock + new.worth());
        for (is_unrelated, priority, victim) in there {
            if left + bytes <= limit || (is_unrelated && !always && priority >= most) {
                break;
            }
            left = left.saturating_sub(victim.bytes_in(place));
            victims.push((is_unrelated, victim));
        }
        // Nobody leaves for an entry that finds no room all the same.
        if left + bytes > limit {
            self.clock += new.worth() / REFUSALS_OF_AN_HOUR;
            return Err(Error::TooLarge { bytes });
        }
        for (is_unrelated, victim) in victims {
            if is_unrelated {
                self.clock = self.clock.max(victim.priority());
            }
            K::count_eviction(place);
            self.leave(place, &victim, freed);
        }
        Ok(())
    }

    /// Takes out what is worth least while there are too many.
    fn thin(&mut self, freed: &mut Freed) {
        while self.count() >= K::MAX_ENTRIES {
            let unpinned = self.iter().filter(|entry| !entry.is_pinned());
            let least = unpinned.min_by(|one, other| one.priority().total_cmp(&other.priority()));
            let Some(least) = least.map(|entry| entry.id) else { return };
            self.take(|entry| entry.id == least, freed);
        }
    }

    /// Takes entries out, and gives their number.
    fn take(&mut self, which: impl Fn(&Entry<K>) -> bool, freed: &mut Freed) -> usize {
        let taken: Vec<_> = self.iter().filter(|entry| which(entry)).map(Arc::clone).collect();
        for entry in &taken {
            self.leave(Place::Memory, entry, freed);
            self.leave(Place::Disk, entry, freed);
        }
        taken.len()
    }

    /// Has an entry leave a place. One that is nowhere else is forgotten.
    fn leave(&mut self, place: Place, entry: &Entry<K>, freed: &mut Freed) {
        match place {
            Place::Memory => {
                let Some(rows) = entry.leave_memory() else { return };
                entry.about.leave_memory();
                self.sizes.memory = self.sizes.memory.saturating_sub(entry.info.bytes);
                self.sizes.in_memory = self.sizes.in_memory.saturating_sub(1);
                freed.rows.push(rows);
            }
            Place::Disk => {
                let Some(file) = entry.leave_disk() else { return };
                self.sizes.disk = self.sizes.disk.saturating_sub(file.size());
                freed.files.push(file);
            }
        }
        let digest = entry.about.digest();
        if entry.is_gone()
            && let Some(all) = self.by_digest.get_mut(&digest)
        {
            all.retain(|other| other.id != entry.id);
            if all.is_empty() {
                self.by_digest.remove(&digest);
            }
        }
    }
}

impl Freed {
    fn remove(self) {
        self.files.iter().for_each(CacheFile::remove);
    }
}

fn is_among<K>(all: &[Arc<Entry<K>>], entry: &Entry<K>) -> bool {
    all.iter().any(|other| other.id == entry.id)
}

fn not_opened<K: Cacheable>(error: &Error) {
    K::failed("open", error);
}

#[cfg(test)]
mod tests;
