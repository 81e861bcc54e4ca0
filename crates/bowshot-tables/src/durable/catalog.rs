//! The catalog of the data folder: SQLite, one connection, one transaction for each group of commits.

use super::codec::damaged;
use crate::Error;
use bowshot_object_store::private;
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};
use std::fs::File;
use std::path::{Path, PathBuf};
use uuid::Uuid;

pub(super) const FILE: &str = "catalog.sqlite";

/// Number of the layout below. A catalog with an unknown one is not touched.
pub(super) const LAYOUT: i64 = 1;
/// The same with notes in it: who knows only the other one must not serve the tables, since the notes say to whom.
pub(super) const LAYOUT_WITH_NOTES: i64 = 2;

/// The same with files of tables in a store: who does not know of that would find them missing.
pub(super) const LAYOUT_WITH_BUCKET: i64 = 3;
/// The same with deleted rows that their files still have: who does not know of that would show them.
pub(super) const LAYOUT_WITH_DELETED_ROWS: i64 = 4;
pub(super) const LAYOUTS: [i64; 4] =
    [LAYOUT, LAYOUT_WITH_NOTES, LAYOUT_WITH_BUCKET, LAYOUT_WITH_DELETED_ROWS];

const TABLES: &str = "
CREATE TABLE catalogs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE schemas (
    id TEXT PRIMARY KEY,
    catalog TEXT NOT NULL REFERENCES catalogs,
    name TEXT NOT NULL,
    UNIQUE (catalog, name)
) STRICT;
-- Tables and views. `body` is JSON; `version` is a table's last commit.
CREATE TABLE entries (
    id TEXT PRIMARY KEY,
    schema TEXT NOT NULL REFERENCES schemas,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('table', 'view')),
    body TEXT NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (schema, name)
) STRICT;
-- Which definition a table had from which version on.
CREATE TABLE definitions (
    table_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (table_id, version)
) STRICT, WITHOUT ROWID;
-- The commits of a table that are still kept.
CREATE TABLE versions (
    table_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    committed_us INTEGER NOT NULL,
    operation TEXT NOT NULL,
    rows_added INTEGER NOT NULL,
    rows_removed INTEGER NOT NULL,
    PRIMARY KEY (table_id, version)
) STRICT, WITHOUT ROWID;
-- Rows of a table, part of its versions added <= v < removed: in a file, or few of them right here. Of a file, `content`
-- has the numbers of its rows that are deleted.
CREATE TABLE segments (
    id INTEGER PRIMARY KEY,
    table_id TEXT NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER,
    row_count INTEGER NOT NULL,
    file TEXT,
    bytes INTEGER NOT NULL,
    content BLOB
) STRICT;
CREATE INDEX segments_of_table ON segments (table_id, removed);
-- What the Delta log of a table says: its version there, ours, and the columns.
CREATE TABLE published (
    table_id TEXT PRIMARY KEY,
    delta_version INTEGER NOT NULL,
    version INTEGER NOT NULL,
    columns TEXT NOT NULL
) STRICT;
-- Tables that were dropped and whose folders are still there.
CREATE TABLE dropped (table_id TEXT PRIMARY KEY) STRICT;
";

/// Has a number for the last opening of the catalog. Not part of the layout: it is made when it is missing.
const OPENING: &str = "
CREATE TABLE IF NOT EXISTS opening (id INTEGER PRIMARY KEY CHECK (id = 0), number INTEGER NOT NULL) STRICT;
";

/// See `catalog_kv.rs`. Made when it is missing.
const NOTES: &str = "CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;";

/// Random numbers for two openings of a catalog, by which others who note what they know of its tables tell whether it is
/// the catalog of which they have noted it: of one that was put back from a backup, the number before is another one, and
/// versions that are given again mean something else. None for a catalog that could not note its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opening {
    /// That of the process that had the catalog before.
    pub previous: Option<i64>,
    /// That of this process.
    pub current: Option<i64>,
}

pub(crate) struct Catalog {
    path: PathBuf,
    opening: Opening,
    connection: Mutex<Connection>,
    /// Why nothing is written any more.
    stopped: Mutex<Option<String>>,
}

impl Catalog {
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Opens the catalog that is in a folder to read it, and leaves it as it is.
    pub(super) fn look_into(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let opened = |error| Error::Catalog { doing: "cannot be opened", reason: explain(&path, &error) };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(opened)?;
        let connection = Mutex::new(connection);
        Ok(Self { path, opening: Opening::default(), connection, stopped: Mutex::default() })
    }

    /// Opens the catalog in a folder, or makes it. A file that is none, or of another layout, is left as it is.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let opened = |error| Error::Catalog { doing: "cannot be opened", reason: explain(&path, &error) };
        // SQLite gives the files beside it the permissions of this one.
        private::file(&path).map_err(|error| Error::file("make", &path, error))?;
        let connection = Connection::open_with_flags(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(opened)?;
        // FULL: a commit that was acknowledged survives a crash of the machine.
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")
            .map_err(opened)?;
        let layout: i64 =
            connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(opened)?;
        match layout {
            0 => connection
                .execute_batch(&format!("BEGIN; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;"))
                .map_err(opened)?,
            known if LAYOUTS.contains(&known) => {}
            other => {
                let reason = format!(
                    "`{}` has layout {other}, this version knows {LAYOUT} to {LAYOUT_WITH_DELETED_ROWS}",
                    path.display()
                );
                return Err(Error::Catalog { doing: "cannot be opened", reason });
            }
        }
        connection.execute_batch(NOTES).map_err(opened)?;
        // The name of a new file must survive too.
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| Error::file("sync", folder, error))?;
        connection.set_prepared_statement_cache_capacity(64);
        // Who cannot write now may be able to read all the same.
        let opening = note_opening(&connection).unwrap_or_default();
        Ok(Self { path, opening, connection: Mutex::new(connection), stopped: Mutex::default() })
    }

    pub(crate) fn opening(&self) -> Opening {
        self.opening
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        read(&self.connection.lock()).map_err(|error| self.failed("cannot be read", &error))
    }

    /// Writes all or nothing. When it is not known whether the disk has kept it, nothing more is written: what a later
    /// transaction builds on might be gone after a crash.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(reason) = self.stopped.lock().clone() {
            return Err(Error::Stopped { reason });
        }
        let mut connection = self.connection.lock();
        let transaction =
            connection.transaction().map_err(|error| self.failed("cannot be written", &error))?;
        let result = write(&transaction)?;
        transaction.commit().map_err(|error| {
            let failed = self.failed("cannot be written", &error);
            if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
                *self.stopped.lock() = Some(explain(&self.path, &error));
            }
            failed
        })?;
        Ok(result)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.lock().is_some()
    }

    pub(crate) fn failed(&self, doing: &'static str, error: &rusqlite::Error) -> Error {
        Error::Catalog { doing, reason: explain(&self.path, error) }
    }
}

bowshot_api::debug_fields!(Catalog { path });

/// Says that the catalog has at least this layout.
pub(super) fn raise_layout(connection: &Connection, layout: i64) -> rusqlite::Result<()> {
    let now: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if now >= layout {
        return Ok(());
    }
    connection.execute_batch(&format!("PRAGMA user_version = {layout}"))
}

fn note_opening(connection: &Connection) -> rusqlite::Result<Opening> {
    connection.execute_batch(OPENING)?;
    let previous = connection.query_row("SELECT number FROM opening", [], |row| row.get(0)).optional()?;
    let (_, number) = Uuid::new_v4().as_u64_pair();
    let current = number.cast_signed();
    connection.execute("INSERT OR REPLACE INTO opening (id, number) VALUES (0, ?)", [current])?;
    Ok(Opening { previous, current: Some(current) })
}

fn explain(path: &Path, error: &rusqlite::Error) -> String {
    format!("`{}`: {error}", path.display())
}

/// A value of the catalog that makes no sense.
pub(super) fn parsed<T, E: std::fmt::Display>(value: Result<T, E>) -> Result<T, Error> {
    value.map_err(|error| damaged(&error))
}
