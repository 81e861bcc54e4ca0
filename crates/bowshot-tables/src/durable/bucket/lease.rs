//! Whose tables a place in a store are. One object there names the data folder and its last run; the catalog knows both. A folder
//! takes a place that is empty, or that it had itself in its last run, by conditional requests alone, so that of two only one
//! can have it. A copy of a catalog that is older, or goes another way, names another run, and is refused.
//!
//! The catalog notes a run before the store does: whichever of the two a crash comes between, the next start knows both.

use super::super::catalog::{Catalog, LAYOUT_WITH_BUCKET, raise_layout};
use super::Bucket;
use crate::Error;
use bowshot_object_store::ObjectFolder;
use chrono::{SecondsFormat, Utc};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};
use uuid::Uuid;

const OWNER: &str = "bowshot-owner.json";

/// Made when it is needed first.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS bucket (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    address TEXT NOT NULL,
    folder TEXT NOT NULL,
    current TEXT,
    next TEXT NOT NULL
) STRICT;
";

/// Whether the place is ours.
#[derive(Debug)]
pub(super) enum Claim {
    /// The store has not said yet, for this reason.
    Waiting(String),
    /// In this run.
    Ours(Uuid),
    /// For this reason, and for as long as this process lives.
    Lost(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    address: String,
    folder: Uuid,
    /// The run that was found there last.
    current: Option<Uuid>,
    /// The run that was to be put there after it.
    next: Uuid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    folder: Uuid,
    run: Uuid,
}

impl Bucket {
    pub(super) fn take(&self, objects: &ObjectFolder, catalog: &Catalog) -> Result<(), Error> {
        let taken = taken(objects, catalog);
        let mut claim = self.claim.lock();
        *claim = match &taken {
            Ok(run) => Claim::Ours(*run),
            Err(Error::NotOurs { reason, .. }) => Claim::Lost(reason.clone()),
            Err(error) => Claim::Waiting(error.to_string()),
        };
        taken.map(drop)
    }

    /// Fails, for good, if another one has taken the place meanwhile.
    pub(in crate::durable) fn confirm(&self) -> Result<(), Error> {
        let run = self.check_ours()?;
        let there = self.objects.get(OWNER)?;
        match there.and_then(|there| Owner::read(&there.bytes)) {
            Some(owner) if owner.run == run => Ok(()),
            _ => Err(self.lose("another server has taken them, or their mark was removed")),
        }
    }

    /// Writes nothing more to the store.
    pub(super) fn lose(&self, reason: &str) -> Error {
        *self.claim.lock() = Claim::Lost(reason.to_owned());
        let error = Error::NotOurs { address: self.objects.address(), reason: reason.to_owned() };
        tracing::error!(%error, "no files of tables are written any more");
        error
    }
}

pub(in crate::durable) fn address(catalog: &Catalog) -> Result<Option<String>, Error> {
    Ok(catalog.read(Note::read)?.map(|note| note.address))
}

/// Takes out of a copy of a catalog that its tables are in a store: from here on the two go different ways.
pub(in crate::durable) fn forget(copy: &Connection) -> rusqlite::Result<()> {
    if is_there(copy)? { copy.execute("DELETE FROM bucket", []).map(drop) } else { Ok(()) }
}

fn taken(objects: &ObjectFolder, catalog: &Catalog) -> Result<Uuid, Error> {
    let not_ours = |reason: &str| Error::NotOurs { address: objects.address(), reason: reason.to_owned() };
    let note = catalog.read(Note::read)?;
    let there = objects.get(OWNER)?;
    let owner = match &there {
        Some(there) => {
            Some(Owner::read(&there.bytes).ok_or_else(|| not_ours("their mark was not written by Bowshot"))?)
        }
        None => None,
    };
    let folder = match (&note, owner) {
        (None, None) if !objects.is_empty()? => {
            return Err(not_ours("something is there already, and a folder begins with an empty place"));
        }
        (None, None) => Uuid::new_v4(),
        (None, Some(_)) => return Err(not_ours("they are another data folder's")),
        (Some(note), None) if note.current.is_none() => note.folder,
        (Some(_), None) => return Err(not_ours("their mark `bowshot-owner.json` is gone")),
        (Some(note), Some(owner)) if owner.folder != note.folder => {
            return Err(not_ours("they are another data folder's"));
        }
        (Some(note), Some(owner)) if note.current != Some(owner.run) && note.next != owner.run => {
            return Err(not_ours("another copy of this data folder has had them since"));
        }
        (Some(note), Some(_)) => note.folder,
    };
    let next = Uuid::new_v4();
    let current = owner.map(|owner| owner.run);
    Note { address: objects.address(), folder, current, next }.write(catalog)?;
    let text = Owner { folder, run: next }.text();
    let put = match there {
        None => objects.put_new(OWNER, text)?,
        Some(there) => objects.replace(OWNER, text, there.version)?,
    };
    // Somebody was faster; or it was us, and the first answer was lost.
    if !put {
        let now = objects.get(OWNER)?.and_then(|there| Owner::read(&there.bytes));
        if now.is_none_or(|now| now.run != next) {
            return Err(not_ours("another server takes them at the same time"));
        }
    }
    Ok(next)
}

fn is_there(catalog: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'bucket')";
    catalog.query_row(sql, [], |row| row.get(0))
}

impl Note {
    fn read(catalog: &Connection) -> rusqlite::Result<Option<Self>> {
        if !is_there(catalog)? {
            return Ok(None);
        }
        let id = |text: Option<String>| text.and_then(|text| Uuid::parse_str(&text).ok());
        let sql = "SELECT address, folder, current, next FROM bucket WHERE id = 0";
        let row = catalog.query_row(sql, [], |row| {
            Ok(Self {
                address: row.get(0)?,
                folder: id(row.get(1)?).unwrap_or_default(),
                current: id(row.get(2)?),
                next: id(row.get(3)?).unwrap_or_default(),
            })
        });
        row.optional()
    }

    fn write(&self, catalog: &Catalog) -> Result<(), Error> {
        catalog.write(|connection| {
            let failed = |error: rusqlite::Error| catalog.failed("cannot be written", &error);
            connection.execute_batch(TABLE).map_err(failed)?;
            let values = params![
                self.address,
                self.folder.to_string(),
                self.current.map(|run| run.to_string()),
                self.next.to_string()
            ];
            let sql =
                "INSERT OR REPLACE INTO bucket (id, address, folder, current, next) VALUES (0, ?, ?, ?, ?)";
            connection.execute(sql, values).map_err(failed)?;
            // Who knows nothing of stores would find files missing.
            raise_layout(connection, LAYOUT_WITH_BUCKET).map_err(failed)
        })
    }
}

impl Owner {
    fn read(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let id = |key: &str| Uuid::parse_str(value[key].as_str()?).ok();
        Some(Self { folder: id("folder")?, run: id("run")? })
    }

    fn text(self) -> Vec<u8> {
        let taken = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let about = "the tables here are those of one data folder of Bowshot; nobody else writes to them";
        let text = json!({
            "folder": self.folder.to_string(),
            "run": self.run.to_string(),
            "taken": taken,
            "about": about,
        });
        format!("{text}\n").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    fn reason(found: Result<Uuid, Error>) -> String {
        match found {
            Err(Error::NotOurs { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// A copy of a catalog as it is now.
    fn copied(from: &Path, to: &Path) {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    #[test]
    fn one_folder_has_a_place_and_no_copy_of_it() {
        let disk = tempfile::tempdir().unwrap();
        let place = |name: &str| disk.path().join(name);
        let objects = ObjectFolder::in_store(Arc::new(InMemory::new()), "tables").unwrap();
        for name in ["one", "two"] {
            fs::create_dir(place(name)).unwrap();
        }
        let one = Catalog::open(&place("one")).unwrap();
        let first = taken(&objects, &one).unwrap();
        assert_eq!(address(&one).unwrap().as_deref(), Some("s3://bucket/tables"));
        assert_ne!(taken(&objects, &one).unwrap(), first);
        let two = Catalog::open(&place("two")).unwrap();
        assert!(reason(taken(&objects, &two)).contains("another data folder"));
        drop(one);
        copied(&place("one"), &place("copy"));
        let one = Catalog::open(&place("one")).unwrap();
        taken(&objects, &one).unwrap();
        taken(&objects, &one).unwrap();
        let copy = Catalog::open(&place("copy")).unwrap();
        assert!(reason(taken(&objects, &copy)).contains("another copy"));
        objects.remove(&[OWNER.to_owned()]).unwrap();
        assert!(reason(taken(&objects, &one)).contains("gone"));
        objects.put_new(OWNER, b"{}".to_vec()).unwrap();
        assert!(reason(taken(&objects, &one)).contains("not written by Bowshot"));
    }

    #[test]
    fn a_crash_between_the_two_notes_is_no_loss() {
        let disk = tempfile::tempdir().unwrap();
        let objects = ObjectFolder::in_store(Arc::new(InMemory::new()), "").unwrap();
        let catalog = Catalog::open(disk.path()).unwrap();
        let (folder, next) = (Uuid::new_v4(), Uuid::new_v4());
        let address = objects.address();
        let note = Note { address, folder, current: None, next };
        // The catalog knows, the store does not: at first, and later.
        note.write(&catalog).unwrap();
        let run = taken(&objects, &catalog).unwrap();
        let lost = Note { current: Some(run), next: Uuid::new_v4(), ..note.clone() };
        lost.write(&catalog).unwrap();
        let run = taken(&objects, &catalog).unwrap();
        // Both know, and the answer was lost.
        let there = objects.get(OWNER).unwrap().unwrap();
        let next = Uuid::new_v4();
        Note { current: Some(run), next, ..note }.write(&catalog).unwrap();
        assert!(objects.replace(OWNER, Owner { folder, run: next }.text(), there.version).unwrap());
        taken(&objects, &catalog).unwrap();
    }

    #[test]
    fn a_place_with_something_in_it_is_refused() {
        let disk = tempfile::tempdir().unwrap();
        let objects = ObjectFolder::in_store(Arc::new(InMemory::new()), "").unwrap();
        objects.put_new("others.csv", b"1".to_vec()).unwrap();
        let catalog = Catalog::open(disk.path()).unwrap();
        assert!(reason(taken(&objects, &catalog)).contains("already"));
        assert_eq!(super::address(&catalog).unwrap(), None);
    }
}
