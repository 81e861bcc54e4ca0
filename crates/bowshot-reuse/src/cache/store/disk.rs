//! The joins of a store on disk. If the disk fails, joins stay in memory, and writing is tried again after a minute.

use super::{Store, failed, least};
use crate::cache::Error;
use crate::cache::cache_folder::Claim;
use crate::cache::entry::CachedJoin;
use crate::cache::file::CacheFile;
use crate::cache::results::this_program;
use crate::cache::shape::TableKey;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Pause of writes after a failure of the disk.
const REST: Duration = Duration::from_secs(60);

/// The description of a join on disk.
#[derive(Serialize, Deserialize)]
pub(super) struct Described<A> {
    /// The build that computed it: a function of another build may differ.
    pub(super) program: String,
    pub(super) about: A,
}

/// The state of the disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// Locks the folder.
    claim: Option<Claim>,
    /// No writes until then.
    rests_until: Option<Instant>,
    /// Numbers of joins that could not be written.
    unwritten: HashSet<u64>,
}

impl Disk {
    pub(super) fn of(claim: Option<Claim>) -> Self {
        Self { claim, rests_until: None, unwritten: HashSet::new() }
    }

    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|end| Instant::now() < end)
    }
}

impl Store {
    /// Writes a join to disk, if there is a folder and room, so that it survives eviction and, if its tables do,
    /// a restart. Blocks, and calls `pause` now and then.
    pub(crate) fn write(&self, join: &Arc<CachedJoin>, pause: &dyn Fn()) {
        if self.budget.folder.is_none() {
            return;
        }
        if self.disk.lock().rests() {
            self.disk.lock().unwritten.insert(join.id);
            return;
        }
        if let Err(error) = self.try_to_write(join, pause) {
            failed("write", &error);
            let mut disk = self.disk.lock();
            disk.rests_until = Instant::now().checked_add(REST);
            disk.unwritten.insert(join.id);
        }
        self.publish_sizes();
    }

    /// A join that could not be written, after the pause.
    pub(crate) fn unwritten(&self) -> Option<Arc<CachedJoin>> {
        let mut disk = self.disk.lock();
        if disk.rests() {
            return None;
        }
        let unwritten = std::mem::take(&mut disk.unwritten);
        if unwritten.is_empty() {
            return None;
        }
        let mut there = self.all().into_iter().filter(|join| unwritten.contains(&join.id));
        let next = there.next();
        disk.unwritten = there.map(|join| join.id).collect();
        next
    }

    /// The folder, taken again if it was removed.
    pub(crate) fn claimed(&self) -> Result<&Path, Error> {
        let folder = self.budget.folder.as_deref().ok_or(Error::Gone)?;
        self.disk.lock().claim.as_mut().ok_or(Error::Gone)?.renew(folder)?;
        Ok(folder)
    }

    fn try_to_write(&self, join: &Arc<CachedJoin>, pause: &dyn Fn()) -> Result<(), Error> {
        let Some(batches) = join.memory_batches() else { return Ok(()) };
        if !self.make_room_on_disk(join) {
            return Ok(());
        }
        let path = self.claimed()?.join(format!("{}.arrow", join.id));
        let file = CacheFile::write(path, (join.schema(), &batches), pause)?;
        if join.about.shape.tables.iter().all(TableKey::is_lasting) {
            let described = Described { program: this_program(), about: &join.about };
            let _bytes = file.describe(&described).inspect_err(|_| file.remove())?;
        }
        let mut joins = self.joins.lock();
        if joins.contains(join) {
            joins.disk += file.bytes;
            join.keep_file(file);
        } else {
            drop(joins);
            file.remove();
        }
        Ok(())
    }

    fn make_room_on_disk(&self, join: &CachedJoin) -> bool {
        let now = SystemTime::now();
        loop {
            let victim = {
                let mut joins = self.joins.lock();
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
}
