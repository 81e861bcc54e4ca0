//! One state of a data folder, held: a copy of its catalog, and a second name (hard link) of every file that this state has.
//!
//! The server knows nothing of it and may go on to commit, OPTIMIZE, VACUUM and DROP. Nothing is lost since it takes a
//! file out of the catalog before it removes it, never changes one, and a file is there as long as it has a name. A
//! file that is gone before it got its second name was taken out of the catalog before that, too: then a newer copy of the catalog,
//! which lacks it, is the state that is held. One that is missing although a newer copy has it still is lost.
//!
//! Of tables in an object store, files that are there alone are fetched into the hold, if the store is given.

use super::{Stop, go_on};
use crate::Error;
use crate::durable::bucket;
use crate::durable::catalog::{Catalog, FILE};
use crate::durable::delta::our_entry;
use crate::durable::load::all;
use bowshot_object_store::scratch::{Scratch, remove_abandoned};
use bowshot_object_store::{ObjectFolder, private};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where holds lie in the data folder.
const HOLDS: &str = "holds";
const PREFIX: &str = "hold-";
/// Copies of the catalog that are tried.
const ATTEMPTS: usize = 20;

/// See the module. Dropping it lets the files go.
#[derive(Debug)]
pub(in crate::durable) struct Hold {
    scratch: Scratch,
    /// Files below [`Self::path`], by name; the catalog is one of them.
    pub(in crate::durable) files: BTreeSet<String>,
    /// Files that the catalog has and that are not there.
    pub(in crate::durable) missing: BTreeSet<String>,
    pub(in crate::durable) tables: usize,
}

/// What a copy of the catalog says of files.
struct Listed {
    /// Tables with the versions that the catalog has of them.
    tables: BTreeMap<String, u64>,
    /// Tables with the newest entries of their Delta logs that it knows of.
    published: BTreeMap<String, u64>,
    files: BTreeSet<String>,
}

pub(crate) fn remove_abandoned_holds(data: &Path) {
    remove_abandoned(&data.join(HOLDS), PREFIX);
}

impl Hold {
    /// Holds the newest state of a data folder, with what is in the store alone if that is given. Blocks.
    ///
    /// # Errors
    /// When there is no catalog, it cannot be read, the folder cannot be written to, or the store does not answer.
    pub(in crate::durable) fn take(
        data: &Path,
        store: Option<&ObjectFolder>,
        stop: &Stop,
    ) -> Result<Self, Error> {
        if !Catalog::is_in(data) {
            return Err(Error::NoData { path: data.to_path_buf() });
        }
        let holds = data.join(HOLDS);
        let scratch =
            Scratch::named(&holds, PREFIX).map_err(|error| Error::file("write to", &holds, error))?;
        let mut hold = Self { scratch, files: BTreeSet::new(), missing: BTreeSet::new(), tables: 0 };
        let mut lacking = (BTreeSet::new(), BTreeSet::new());
        let in_store = bucket::address(&Catalog::look_into(data)?)?.is_some();
        for _ in 0..ATTEMPTS {
            go_on(stop)?;
            let listed = hold.copy_catalog(data)?;
            let files = hold.link((data, store), &listed, stop)?;
            let missing = (files, hold.logs(data, &listed, in_store)?);
            // Missing twice, the second time by a catalog that is newer than the first look. A log that somebody has taken away
            // keeps no rows from being held.
            if missing.0.is_subset(&lacking.0) && missing.1.is_subset(&lacking.1) {
                if in_store {
                    // The next log of each begins with what the table is then.
                    forget_logs(&hold.path().join(FILE), &missing.1)?;
                }
                (hold.missing, hold.tables) = (missing.0, listed.tables.len());
                hold.files.insert(FILE.to_owned());
                return Ok(hold);
            }
            lacking = missing;
        }
        Err(Error::Restless)
    }

    pub(in crate::durable) fn path(&self) -> &Path {
        self.scratch.path()
    }

    fn copy_catalog(&self, data: &Path) -> Result<Listed, Error> {
        let copy = self.path().join(FILE);
        match fs::remove_file(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::file("remove", &copy, error));
            }
            _ => {}
        }
        let text = copy.to_str().ok_or_else(|| {
            Error::file("write", &copy, io::Error::other("the path is no Unicode text, which SQLite needs"))
        })?;
        // A read transaction of SQLite: one moment, and nobody waits for it.
        Catalog::look_into(data)?.read(|catalog| catalog.execute("VACUUM INTO ?", [text]).map(drop))?;
        private::file(&copy).map_err(|error| Error::file("write", &copy, error))?;
        forget_opening(&copy)?;
        Catalog::look_into(self.path())?.read(Listed::read)
    }

    /// Gives the files second names, and tells those that are not there.
    fn link(
        &mut self,
        (data, store): (&Path, Option<&ObjectFolder>),
        listed: &Listed,
        stop: &Stop,
    ) -> Result<BTreeSet<String>, Error> {
        self.files.clear();
        let mut missing = BTreeSet::new();
        for name in &listed.files {
            go_on(stop)?;
            if self.second_name(data, name)? || self.fetched(store, name)? {
                self.files.insert(name.clone());
            } else {
                missing.insert(name.clone());
            }
        }
        Ok(missing)
    }

    /// Whether the file of a table is there after it was fetched from the store.
    fn fetched(&self, store: Option<&ObjectFolder>, name: &str) -> Result<bool, Error> {
        let (Some(store), Some(object)) = (store, name.strip_prefix("tables/")) else { return Ok(false) };
        let to = self.path().join(name);
        if to.exists() {
            return Ok(true);
        }
        match store.fetch(object, &to, &to.with_extension("part")) {
            Ok(()) => Ok(true),
            Err(bowshot_object_store::Error::Gone { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn second_name(&self, data: &Path, name: &str) -> Result<bool, Error> {
        let (from, to) = (data.join(name), self.path().join(name));
        if let Some(folder) = to.parent() {
            private::folder(folder).map_err(|error| Error::file("make", folder, error))?;
        }
        match fs::hard_link(&from, &to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::file("hold", &from, error)),
        }
    }

    /// Holds the entries of the Delta logs that show what the catalog has, and not more: a log that is ahead of its catalog
    /// tells of one that was put back from somewhere. Gives the tables whose newest entry is not there, as when the table was
    /// dropped after its catalog was copied. The copy of a log that is in a store may lack its beginning, and is of no use then.
    fn logs(&mut self, data: &Path, listed: &Listed, in_store: bool) -> Result<BTreeSet<String>, Error> {
        let mut without = BTreeSet::new();
        for (table, version) in &listed.tables {
            let log = format!("tables/{table}/_delta_log");
            let mut held = BTreeSet::new();
            let newest = listed.published.get(table).map(|number| format!("{}.json", number_text(*number)));
            let mut names = entries_until(&data.join(&log), *version)?;
            let first = format!("{}.json", number_text(0));
            let has_beginning = names.iter().any(|name| *name == first || name.contains(".checkpoint"));
            let has_end = newest.as_ref().is_none_or(|newest| names.contains(newest));
            if in_store && !(has_beginning && has_end) {
                names.clear();
            }
            for name in names {
                // One that was just cleaned away is older than a checkpoint.
                if self.second_name(data, &format!("{log}/{name}"))? {
                    held.insert(name);
                }
            }
            if newest.is_some_and(|newest| !held.contains(&newest)) {
                without.insert(table.clone());
            }
            self.files.extend(held.into_iter().map(|name| format!("{log}/{name}")));
        }
        Ok(without)
    }
}

/// Names of the entries and checkpoints of a log that show at most this version of the table.
fn entries_until(log: &Path, version: u64) -> Result<Vec<String>, Error> {
    let failed = |error| Error::file("list", log, error);
    let listed = match fs::read_dir(log) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let names = listed.map(|entry| Ok(entry.map_err(failed)?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<String>, Error>>()?;
    let numbered = |name: &String| {
        let (number, ending) = name.split_once('.')?;
        let number: u64 = number.parse().ok()?;
        (number_text(number) == name.get(..20)?).then(|| (number, ending.to_owned(), name.clone()))
    };
    let mut numbered: Vec<_> = names.iter().filter_map(numbered).collect();
    numbered.sort();
    let mut last = None;
    for (number, ending, name) in numbered.iter().rev() {
        if ending != "json" {
            continue;
        }
        let Ok(text) = fs::read_to_string(log.join(name)) else { continue };
        if our_entry(&text).is_none_or(|(shown, _)| shown <= version) {
            last = Some(*number);
            break;
        }
    }
    let Some(last) = last else { return Ok(Vec::new()) };
    let is_wanted =
        |ending: &str| ending == "json" || ending.starts_with("checkpoint") && ending.ends_with("parquet");
    let wanted = numbered.into_iter().filter(|(number, ending, _)| *number <= last && is_wanted(ending));
    Ok(wanted.map(|(_, _, name)| name).collect())
}

fn number_text(number: u64) -> String {
    format!("{number:020}")
}

/// Forgets the number of this opening (`catalog.rs`), so that the copy is not taken for the original catalog.
fn forget_opening(copy: &Path) -> Result<(), Error> {
    let failed =
        |error: rusqlite::Error| Error::Catalog { doing: "cannot be copied", reason: error.to_string() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags).map_err(failed)?;
    let there: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'opening'", [], |row| row.get(0))
        .map_err(failed)?;
    if there > 0 {
        connection.execute("DELETE FROM opening", []).map_err(failed)?;
    }
    bucket::forget(&connection).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))
}

/// The copy of a catalog knows nothing of the logs of these tables.
fn forget_logs(copy: &Path, tables: &BTreeSet<String>) -> Result<(), Error> {
    let failed =
        |error: rusqlite::Error| Error::Catalog { doing: "cannot be copied", reason: error.to_string() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(copy, flags).map_err(failed)?;
    for table in tables {
        connection.execute("DELETE FROM published WHERE table_id = ?", [table]).map_err(failed)?;
    }
    connection.close().map_err(|(_, error)| failed(error))
}

impl Listed {
    fn read(catalog: &Connection) -> rusqlite::Result<Self> {
        let tables = all(catalog, "SELECT id, version FROM entries WHERE kind = 'table'", |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        let published = all(catalog, "SELECT table_id, delta_version FROM published", |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
        })?;
        let files = all(catalog, "SELECT table_id, file FROM segments WHERE file IS NOT NULL", |row| {
            Ok(format!("tables/{}/{}", row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut files: BTreeSet<String> = files.into_iter().collect();
        files.extend(models(catalog)?.into_iter().map(|hash| format!("models/{hash}.model")));
        // What leads out of the folder is none of ours, whatever a damaged catalog says.
        files.retain(|name| is_below(name));
        let published = published.into_iter().collect();
        Ok(Self { tables: tables.into_iter().collect(), published, files })
    }
}

pub(in crate::durable) fn models(catalog: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let there: i64 =
        catalog.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'notes'", [], |row| row.get(0))?;
    if there == 0 {
        return Ok(BTreeSet::new());
    }
    let notes = all(catalog, "SELECT key, text FROM notes", |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let hash = |(key, text): (String, String)| {
        let (kind, _): (String, Value) = serde_json::from_str(&key).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let hash = value["sha256"].as_str().filter(|hash| hash.len() == 64)?;
        (kind == "model" && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| hash.to_owned())
    };
    Ok(notes.into_iter().filter_map(hash).collect())
}

pub(super) fn is_below(name: &str) -> bool {
    let path = PathBuf::from(name);
    !name.is_empty() && path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_folder_count() {
        assert!(is_below("tables/a/b.parquet") && is_below("catalog.sqlite"));
        for name in ["", "/etc/passwd", "../x", "tables/../../x", "./x"] {
            assert!(!is_below(name), "{name}");
        }
    }

    #[test]
    fn a_log_is_taken_up_to_the_version_of_the_catalog() {
        let log = tempfile::tempdir().expect("folder");
        for (number, version) in [(0, 0), (1, 3), (2, 4), (3, 7)] {
            let text = format!("{{\"commitInfo\":{{\"bowshotVersion\":{version}}}}}\n");
            fs::write(log.path().join(format!("{number:020}.json")), text).expect("writes");
        }
        for name in ["00000000000000000002.checkpoint.parquet", "00000000000000000003.checkpoint.parquet"] {
            fs::write(log.path().join(name), "").expect("writes");
        }
        for name in ["_last_checkpoint", ".bowshot-x.tmp", "3.json"] {
            fs::write(log.path().join(name), "").expect("writes");
        }
        let names = entries_until(log.path(), 5).expect("lists");
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with("00000000000000000003")), "{names:?}");
        assert_eq!(entries_until(log.path(), 7).expect("lists").len(), 6);
        assert!(entries_until(&log.path().join("none"), 7).expect("lists").is_empty());
    }
}
