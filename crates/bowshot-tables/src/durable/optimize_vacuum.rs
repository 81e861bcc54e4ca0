//! Moves few rows from the catalog into files, unites small files, writes files anew that have deleted rows, and forgets what
//! nobody needs.

use super::writer::write_file;
use crate::segment::Segment;
use crate::store::{Folder, TableStore};
use crate::{Entry, EntryName, Error, Table};
use chrono::{Duration, Utc};
use rusqlite::params;
use std::collections::HashSet;
use std::sync::Arc;

/// Files with fewer bytes are small.
const SMALL_BYTES: u64 = 16 << 20;
/// Small files that a table may have before they are united.
const SMALL_FILES: usize = 16;
/// How long versions are kept that nobody vacuums, as Delta has it.
const RETAIN: Duration = Duration::days(7);
/// Versions of a table that are kept, so that a table that gets row by row does not fill the catalog.
const MAX_VERSIONS: u64 = 10_000;
/// Bytes of a united file, about.
const UNITED_BYTES: u64 = 128 << 20;

/// What OPTIMIZE did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Optimized {
    /// Segments that went into others.
    pub before: usize,
    /// Files that were made of them.
    pub after: usize,
}

/// What VACUUM did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Versions that are forgotten.
    pub versions: usize,
    pub files: usize,
}

/// What is done in the background, in a commit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// Rows from the catalog go into a file.
    FewRows,
    /// Files that have deleted rows are written anew, and small files united if there are many.
    Files,
}

pub(super) fn bytes_with_deleted_rows(table: &Table) -> u64 {
    let segments = table.shared_segments().iter().filter(|segment| !segment.deleted().is_empty());
    segments.map(|segment| segment.bytes()).sum()
}

pub(super) fn has_many_small_files(table: &Table) -> bool {
    small_files(table) >= SMALL_FILES
}

fn small_files(table: &Table) -> usize {
    let files = table.shared_segments().iter().filter_map(|segment| segment.file());
    files.filter(|file| file.bytes() < SMALL_BYTES).count()
}

/// Does what is to be done in the background.
pub(super) fn tidy(store: &TableStore, name: &EntryName, work: Work) -> Result<Optimized, Error> {
    let base = store.snapshot();
    let Some(Entry::Table(table)) = base.entry(name) else { return Ok(Optimized::default()) };
    let many = has_many_small_files(table);
    let (table, done) = table.united(store, |segment| match (work, segment.file()) {
        (Work::FewRows, file) => file.is_none(),
        (Work::Files, None) => false,
        (Work::Files, Some(file)) => !segment.deleted().is_empty() || many && file.bytes() < SMALL_BYTES,
    })?;
    if done.before > 0 {
        let changed = base.with_entry(name, Entry::Table(Arc::new(table)))?;
        store.commit(&base, &Arc::new(changed))?;
    }
    Ok(done)
}

impl Table {
    /// The table with all rows of the catalog in files, small files united, and no deleted rows left in files. Blocks.
    pub fn optimized(&self, store: &TableStore) -> Result<(Self, Optimized), Error> {
        let several = small_files(self) > 1;
        self.united(store, |segment| match segment.file() {
            None => true,
            Some(file) => several && file.bytes() < SMALL_BYTES || !segment.deleted().is_empty(),
        })
    }

    /// Puts the rows of some segments into files of a good size, at the place of the first.
    fn united(
        &self,
        store: &TableStore,
        take: impl Fn(&Segment) -> bool,
    ) -> Result<(Self, Optimized), Error> {
        let mut done = Optimized::default();
        let Some(folder) = store.folder().filter(|_| self.definition().is_durable()) else {
            return Ok((self.clone(), done));
        };
        let (taken, mut kept): (Vec<_>, Vec<_>) =
            self.shared_segments().iter().cloned().enumerate().partition(|(_, segment)| take(segment));
        let Some((place, _)) = taken.first() else { return Ok((self.clone(), done)) };
        done.before = taken.len();
        // All before the first that was taken have stayed.
        let place = *place;
        let mut made = Vec::new();
        for group in groups(taken.into_iter().map(|(_, segment)| segment)) {
            made.extend(united_file(store, folder, self, &group)?);
        }
        done.after = made.len();
        let after: Vec<_> = kept.split_off(place.min(kept.len()));
        let all = kept.into_iter().map(|(_, segment)| segment).chain(made);
        let all = all.chain(after.into_iter().map(|(_, segment)| segment));
        Ok((self.with_segments(all.collect()), done))
    }
}

/// Segments whose rows go into one file.
fn groups(segments: impl Iterator<Item = Arc<Segment>>) -> Vec<Vec<Arc<Segment>>> {
    let mut groups: Vec<Vec<Arc<Segment>>> = Vec::new();
    let mut bytes = UNITED_BYTES;
    for segment in segments {
        let size = segment.bytes();
        match groups.last_mut() {
            Some(group) if bytes < UNITED_BYTES => group.push(segment),
            _ => {
                groups.push(vec![segment]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    groups
}

impl TableStore {
    /// Moves rows from the catalog into files, for other programs to see. What cannot be moved stays. Blocks.
    pub fn settle(self: &Arc<Self>) {
        let Some(folder) = self.folder() else { return };
        let bucket = folder.disk.bucket();
        if bucket.is_some_and(|bucket| !bucket.is_answering()) {
            tracing::warn!("the store of the tables does not answer: few rows stay in the catalog");
            return;
        }
        for (name, table) in self.snapshot().tables() {
            let settled = self.settle_table(&name, table);
            if let Err(error) = settled {
                tracing::warn!(table = %name, %error, "rows stay in the catalog");
                // The others would wait for the store as long.
                if bucket.is_some() {
                    return;
                }
            }
        }
        if let Some(bucket) = bucket {
            let done = folder.keeper.show_others(self, folder).and_then(|()| bucket.remove_unneeded());
            if let Err(error) = done {
                tracing::warn!(%error, "what is left to do in the store of the tables is done at the next start");
            }
            return;
        }
        folder.keeper.publish_all(self, folder);
    }

    fn settle_table(&self, name: &EntryName, table: &Table) -> Result<(), Error> {
        if !table.definition().is_durable() {
            return Ok(());
        }
        if table.shared_segments().iter().any(|segment| segment.memory().is_some()) {
            tidy(self, name, Work::FewRows)?;
        }
        if table.has_deleted_rows() {
            tidy(self, name, Work::Files)?;
        }
        Ok(())
    }

    /// Forgets versions that were replaced longer than `retain` ago, and removes the files that only they had. Blocks.
    pub fn vacuum(&self, table: &Table, retain: Duration) -> Result<Vacuumed, Error> {
        let Some(folder) = self.folder().filter(|_| table.definition().is_durable()) else {
            return Ok(Vacuumed::default());
        };
        // The newest state of it, which the caller's may be older than.
        let head = self.snapshot();
        let Some((name, newest)) = head.tables().find(|(_, there)| there.id() == table.id()) else {
            return Ok(Vacuumed::default());
        };
        let is_behind = |shown: Option<u64>| shown.is_some_and(|shown| shown < newest.version());
        if !newest.has_deleted_rows() && !is_behind(folder.keeper.record(newest, folder)?) {
            return vacuum(self, folder, newest, retain, u64::MAX);
        }
        // Files are kept while others still see them.
        if let Err(error) = self.settle_table(&name, newest) {
            tracing::debug!(table = %name, %error, "others still see an earlier version");
        }
        let head = self.snapshot();
        match head.tables().find(|(_, there)| there.id() == table.id()) {
            Some((_, newest)) => vacuum(self, folder, newest, retain, u64::MAX),
            None => Ok(Vacuumed::default()),
        }
    }
}

/// What is done in the background: versions that are too old or too many are forgotten.
pub(super) fn trim(store: &TableStore, folder: &Folder, table: &Table) -> Result<Vacuumed, Error> {
    vacuum(store, folder, table, RETAIN, MAX_VERSIONS)
}

/// Keeps the versions that were current within `retain`, but no more than `limit`.
pub(crate) fn vacuum(
    store: &TableStore,
    folder: &Folder,
    table: &Table,
    retain: Duration,
    limit: u64,
) -> Result<Vacuumed, Error> {
    let before = (Utc::now() - retain).timestamp_micros();
    let oldest = oldest_kept(folder, table, before)?.max(table.version().saturating_sub(limit));
    let shown = folder.keeper.record(table, folder)?;
    // No commit may bring a file back, and nobody find an earlier version, between the two steps.
    let _turn = store.turn.lock();
    let (versions, files) = forget(folder, table, oldest.cast_signed(), shown)?;
    let place = folder.disk.folder(table.id());
    for name in &files {
        if let Err(error) = folder.disk.doom(&place.join(name)) {
            tracing::warn!(%error, "a file that nobody needs is removed at the next start");
        }
    }
    Ok(Vacuumed { versions, files: files.len() })
}

/// The version that was current at a time, which is kept with those after it.
fn oldest_kept(folder: &Folder, table: &Table, before_us: i64) -> Result<u64, Error> {
    let found: i64 = folder.catalog.read(|connection| {
        connection.query_row(
            "SELECT coalesce(max(version), 0) FROM versions WHERE table_id = ? AND committed_us <= ?",
            params![table.id().to_string(), before_us],
            |row| row.get(0),
        )
    })?;
    Ok(found.cast_unsigned().min(table.version()))
}

/// Takes older versions out of the catalog. Gives their number, and the files of no version, without those that the log shows.
fn forget(
    folder: &Folder,
    table: &Table,
    oldest: i64,
    shown: Option<u64>,
) -> Result<(usize, Vec<String>), Error> {
    let id = table.id().to_string();
    let catalog = &folder.catalog;
    catalog.write(|connection| {
        let failed = |error: rusqlite::Error| catalog.failed("cannot be written", &error);
        let versions = connection
            .execute("DELETE FROM versions WHERE table_id = ? AND version < ?", params![id, oldest])
            .map_err(failed)?;
        connection
            .execute(
                "DELETE FROM definitions WHERE table_id = ?1 AND version < (
                     SELECT max(version) FROM definitions WHERE table_id = ?1 AND version <= ?2)",
                params![id, oldest],
            )
            .map_err(failed)?;
        let mut statement = connection
            .prepare_cached(
                "DELETE FROM segments WHERE table_id = ?1 AND removed IS NOT NULL AND removed <= ?2
                 AND NOT (file IS NOT NULL AND added <= ?3 AND removed > ?3) RETURNING file",
            )
            .map_err(failed)?;
        // Without a log, no file is shown.
        let shown = shown.map_or(-1, u64::cast_signed);
        let files = statement.query_map(params![id, oldest, shown], |row| row.get::<_, Option<String>>(0));
        let files = files.and_then(Iterator::collect::<rusqlite::Result<HashSet<_>>>).map_err(failed)?;
        // A file may have come back under another number.
        let mut there = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM segments WHERE table_id = ? AND file = ?)")
            .map_err(failed)?;
        let mut gone = Vec::new();
        for file in files.into_iter().flatten() {
            if !there.query_row(params![id, file], |row| row.get::<_, bool>(0)).map_err(failed)? {
                gone.push(file);
            }
        }
        Ok((versions, gone))
    })
}

fn united_file(
    store: &TableStore,
    folder: &Folder,
    table: &Table,
    segments: &[Arc<Segment>],
) -> Result<Option<Arc<Segment>>, Error> {
    let schema = table.schema();
    let rows = segments.iter().flat_map(|segment| match segment.read(&schema) {
        Ok(rows) => rows,
        Err(error) => Box::new(std::iter::once(Err(error))),
    });
    let file = write_file(&folder.disk, table, rows)?;
    Ok(file.map(|file| store.united_file(file, segments)))
}
