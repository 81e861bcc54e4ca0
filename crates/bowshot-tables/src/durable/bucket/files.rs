//! Files of rows: those that the catalog has are in the store, those that it does not have are not, and copies of them take no
//! more room on this machine than they may.

use super::super::catalog::Catalog;
use super::super::delta::our_entry;
use super::super::disk::{Disk, PREFIX};
use super::Bucket;
use super::log::{LOG, newest_entry};
use crate::Error;
use bowshot_object_store::Listed;
use rusqlite::{OptionalExtension, params};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use uuid::Uuid;

#[derive(Debug)]
struct Known {
    version: u64,
    /// Of all versions that are kept, with their sizes.
    files: HashMap<String, u64>,
}

impl Bucket {
    /// Sees to it, once in this run, that the store has all files of a table and no others of ours.
    ///
    /// # Errors
    /// When the store does not answer, and for good when it has a newer state of the table than the catalog.
    pub(in crate::durable) fn make_whole(
        &self,
        table: Uuid,
        disk: &Disk,
        catalog: &Catalog,
    ) -> Result<(), Error> {
        let _one = self.bringing.lock();
        if self.whole.lock().contains(&table) {
            return Ok(());
        }
        self.check_ours()?;
        let id = table.to_string();
        // In this order: what is committed, or written to be, while we look is in one of the last two.
        let there = self.objects.list(&id)?;
        let used = disk.used_names(table);
        let Some(known) = known(catalog, table)? else { return Ok(()) };
        self.check_not_older(&id, &there, known.version)?;
        let names: HashMap<&str, u64> =
            there.iter().filter_map(|one| Some((below(one, &id)?, one.size))).collect();
        self.bring_missing(table, &known, &names, disk)?;
        let is_orphan =
            |name: &&str| is_ours(name) && !known.files.contains_key(*name) && !used.contains(*name);
        let orphans: Vec<String> =
            names.keys().copied().filter(is_orphan).map(|name| format!("{id}/{name}")).collect();
        if !orphans.is_empty() && !self.doubtful.load(Ordering::Relaxed) {
            self.objects.remove(&orphans)?;
            tracing::info!(%table, removed = orphans.len(), "files of writers that were killed are removed from the store");
        }
        self.whole.lock().insert(table);
        Ok(())
    }

    pub(super) fn is_whole(&self, table: Uuid) -> bool {
        self.whole.lock().contains(&table)
    }

    /// A log that tells of later commits than the catalog has is the sign of a catalog that was put back from somewhere.
    fn check_not_older(&self, id: &str, there: &[Listed], version: u64) -> Result<(), Error> {
        let log = format!("{id}/{LOG}/");
        let entries = there.iter().filter_map(|one| one.name.strip_prefix(&log));
        let Some((_, newest)) = newest_entry(entries) else { return Ok(()) };
        let entry = self.objects.get(&format!("{log}{newest}"))?;
        let shown = entry.and_then(|entry| our_entry(std::str::from_utf8(&entry.bytes).ok()?));
        match shown {
            Some((shown, _)) if shown > version => {
                Err(self
                    .lose(&format!("the catalog of the data folder is older than the table `{id}` there")))
            }
            _ => Ok(()),
        }
    }

    /// Uploads the files that are here alone, as when the tables of a data folder move into a store.
    fn bring_missing(
        &self,
        table: Uuid,
        known: &Known,
        there: &HashMap<&str, u64>,
        disk: &Disk,
    ) -> Result<(), Error> {
        let (mut brought, mut lost) = (0_usize, Vec::new());
        for (file, bytes) in &known.files {
            match there.get(file.as_str()) {
                Some(size) if size == bytes => continue,
                Some(_) => lost.push(file),
                None => {
                    let (path, name) = (disk.folder(table).join(file), format!("{table}/{file}"));
                    if path.metadata().is_ok_and(|about| about.len() == *bytes) {
                        self.objects.upload(&name, &path)?;
                        brought += 1;
                    } else if self.objects.size(&name)? != Some(*bytes) {
                        // It did not come after the listing either.
                        lost.push(file);
                    }
                }
            }
        }
        if brought > 0 {
            self.confirm()?;
            tracing::info!(%table, files = brought, "files of a table were copied to the store");
        }
        if let Some(file) = lost.first() {
            tracing::error!(%table, files = lost.len(), %file, "files of a table are not in the store, or not as they were written");
        }
        Ok(())
    }

    /// Looks for folders of unknown tables. Those that were never committed are removed, all others are left alone.
    pub(super) fn look_for_strangers(&self, disk: &Disk, catalog: &Catalog) -> Result<(), Error> {
        self.check_ours()?;
        let folders = self.objects.folders()?;
        let ids: Vec<Uuid> = folders.iter().filter_map(|name| Uuid::parse_str(name).ok()).collect();
        let unused: Vec<Uuid> = ids.into_iter().filter(|id| !disk.is_used(*id)).collect();
        let known: HashSet<String> = catalog.read(|connection| {
            let sql = "SELECT id FROM entries WHERE kind = 'table' UNION SELECT table_id FROM dropped
                       UNION SELECT table_id FROM segments";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })?;
        for stranger in unused.into_iter().filter(|id| !known.contains(&id.to_string())) {
            self.look_at_stranger(&stranger.to_string())?;
        }
        Ok(())
    }

    fn look_at_stranger(&self, id: &str) -> Result<(), Error> {
        let there = self.objects.list(id)?;
        let log = format!("{id}/{LOG}/");
        let committed = there.iter().any(|one| one.name.starts_with(&log));
        if committed || self.doubtful.load(Ordering::Relaxed) {
            let place = self.objects.address_of(id);
            tracing::warn!(%place, "a table in the store that the catalog does not know is left alone");
            return Ok(());
        }
        let ours = there.into_iter().filter(|one| below(one, id).is_some_and(is_ours));
        let names: Vec<String> = ours.map(|one| one.name).collect();
        self.objects.remove(&names)?;
        if !names.is_empty() {
            tracing::info!(
                table = id,
                removed = names.len(),
                "files of a table that was never committed are removed from the store"
            );
        }
        Ok(())
    }

    pub(in crate::durable) fn remove_table(&self, table: Uuid) -> Result<(), Error> {
        self.check_ours()?;
        let there = self.objects.list(&table.to_string())?;
        let names: Vec<String> = there.into_iter().map(|one| one.name).collect();
        self.objects.remove(&names)?;
        self.whole.lock().remove(&table);
        Ok(())
    }

    /// Removes copies that nobody reads and that the store has, the least recently read first, until they fit.
    pub(super) fn make_room(&self, disk: &Disk) -> Result<(), Error> {
        if !self.grown.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut copies = disk.copies()?;
        let mut total: u64 = copies.iter().map(|copy| copy.bytes).sum();
        copies.sort_by_key(|copy| copy.used_ms);
        for copy in copies {
            if total <= self.cache_bytes {
                return Ok(());
            }
            if disk.is_read(&copy.path) {
                continue;
            }
            let name = disk.name_of(&copy.path);
            let is_there =
                self.objects.size(&name).inspect_err(|_| self.grown.store(true, Ordering::Relaxed))?;
            if is_there == Some(copy.bytes) && disk.remove_copy(&copy.path)? {
                total -= copy.bytes;
            }
        }
        // The others are being read, or are not in the store yet.
        self.grown.store(total > self.cache_bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// The name of a file in the folder of its table, without those of its log.
fn below<'a>(one: &'a Listed, table: &str) -> Option<&'a str> {
    one.name.strip_prefix(table)?.strip_prefix('/').filter(|name| !name.contains('/'))
}

fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(".parquet")
}

/// `None` for a table that is not there any more.
fn known(catalog: &Catalog, table: Uuid) -> Result<Option<Known>, Error> {
    let id = table.to_string();
    catalog.read(|connection| {
        let version = "SELECT version FROM entries WHERE id = ?";
        let version: Option<i64> = connection.query_row(version, [&id], |row| row.get(0)).optional()?;
        let Some(version) = version else { return Ok(None) };
        let sql = "SELECT file, bytes FROM segments WHERE table_id = ? AND file IS NOT NULL";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement
            .query_map(params![id], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
        let files = rows.collect::<rusqlite::Result<HashMap<String, u64>>>()?;
        Ok(Some(Known { version: version.cast_unsigned(), files }))
    })
}
