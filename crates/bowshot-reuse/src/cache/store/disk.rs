//! The entries of a store on disk. If the disk fails, they stay in memory, and writing is tried again after a minute.

use super::{Cacheable, Freed, Place, Store, not_opened};
use crate::cache::Error;
use crate::cache::cache_folder::{self, Claim};
use crate::cache::entry::{Entry, EntryInfo};
use crate::cache::file::{self, CacheFile};
use crate::cache::shape::TableKey;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// Pause of writes after a failure of the disk.
const REST: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Described<A> {
    /// The build that computed it: a function of another build may differ.
    pub(super) program: String,
    pub(super) info: EntryInfo,
    pub(super) about: A,
}

#[derive(Debug)]
pub(super) struct Disk {
    claim: Option<Claim>,
    /// No writes until then.
    rests_until: Option<Instant>,
}

impl Disk {
    pub(super) fn new(claim: Option<Claim>) -> Self {
        Self { claim, rests_until: None }
    }
}

impl<K: Cacheable> Store<K> {
    /// Writes an entry to disk, if there is a folder and room, so that it survives eviction and, if its tables do,
    /// a restart. Blocks, and calls `pause` now and then.
    pub(crate) fn write(&self, entry: &Arc<Entry<K>>, pause: &dyn Fn()) {
        if self.folder().is_none() {
            return;
        }
        if self.rests() {
            entry.set_unwritten(true);
            return;
        }
        if let Err(error) = self.try_to_write(entry, pause) {
            K::failed("write", &error);
            entry.set_unwritten(true);
            self.disk.lock().rests_until = Instant::now().checked_add(REST);
        }
        self.publish();
    }

    pub(crate) fn remove_files(folder: &Path) {
        if folder.exists() {
            let found = file::found::<IgnoredAny>(folder, not_opened::<K>).inspect_err(not_opened::<K>);
            found.unwrap_or_default().iter().for_each(|(_, file)| file.remove());
        }
    }

    /// Whether writes pause after a failure of the disk.
    pub(crate) fn rests(&self) -> bool {
        self.disk.lock().rests_until.is_some_and(|end| Instant::now() < end)
    }

    /// An entry that could not be written, after the pause.
    pub(crate) fn unwritten(&self) -> Option<Arc<Entry<K>>> {
        let all = if self.rests() { Vec::new() } else { self.all() };
        all.into_iter().find(|entry| entry.set_unwritten(false))
    }

    /// The folder, made or taken again if it was removed.
    pub(crate) fn claimed(&self) -> Result<&Path, Error> {
        let folder = self.folder().ok_or(Error::Gone)?;
        match &mut self.disk.lock().claim {
            Some(claim) => claim.renew(folder)?,
            None => cache_folder::private(folder)
                .map_err(|source| Error::Disk { path: folder.clone(), source })?,
        }
        Ok(folder)
    }

    fn try_to_write(&self, entry: &Arc<Entry<K>>, pause: &dyn Fn()) -> Result<(), Error> {
        let Some(rows) = entry.memory().filter(|_| entry.bytes_in(Place::Disk) == 0) else { return Ok(()) };
        if !self.make_room_on_disk(entry, entry.info.bytes) {
            return Ok(());
        }
        let path = self.claimed()?.join(format!("{}.arrow", entry.id));
        let mut file = CacheFile::write(path, (&rows.schema, &rows.batches), pause)?;
        if entry.about.tables().iter().all(TableKey::is_lasting) {
            let (program, info) = (this_program(), entry.info.clone());
            let described = file.describe(&Described { program, info, about: &entry.about });
            described.inspect_err(|_| file.remove())?;
        }
        // Only now its size is known.
        let fits = self.make_room_on_disk(entry, file.size());
        let mut entries = self.entries.lock();
        if fits && entries.contains(entry) {
            entries.sizes.disk += file.size();
            entry.enter_disk(file);
        } else {
            drop(entries);
            file.remove();
        }
        Ok(())
    }

    fn make_room_on_disk(&self, entry: &Entry<K>, bytes: u64) -> bool {
        let (mut freed, room) = (Freed::default(), (Place::Disk, bytes, self.budget.disk_bytes));
        let made = self.entries.lock().make_room(entry, &[], room, &mut freed);
        freed.remove();
        made.is_ok()
    }
}

/// A digest of the program file, since another build may compute something else. An unreadable file
/// gets a random name.
pub(super) fn this_program() -> String {
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
