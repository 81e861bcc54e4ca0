//! The database of a catalog: opened to be read, and read in one transaction for each statement.

use super::query_deadline::{Watch, Watched};
use bowshot_api::ErrorKind;
use bowshot_object_store::{Error, FileIdentity};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, params};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// How long is waited for a writer that has locked the catalog.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one look at a catalog may last.
const DEADLINE: Duration = Duration::from_secs(10);
/// Bytes of a catalog; a larger one is refused, since its tables are looked through.
const MAX_BYTES: u64 = 4 << 30;
/// Bytes of memory that SQLite may have for all catalogs.
const MAX_MEMORY: u64 = 1 << 30;
pub(super) const MAX_TEXT: usize = 16 << 10;
const VERSIONS: [&str; 4] = ["0.3", "0.4", "1.0", "1.1"];

#[derive(Debug)]
pub(super) struct Catalog {
    path: PathBuf,
    inode: (u64, u64),
    /// Which opening of a catalog this is: SQLite counts changes for each by itself.
    opening: u64,
    /// Before the connection, which it stops.
    watch: Watch,
    pub(super) patience: Duration,
    connection: Connection,
}

/// What tells one state of a catalog from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// The newest snapshot, as it was written down.
    pub(super) snapshot: i64,
    row: String,
    /// SQLite's own count of changes.
    changes: i64,
    opening: u64,
}

/// One state of a catalog, which does not change while it is read.
pub(super) struct State<'a> {
    pub(super) path: &'a Path,
    transaction: Transaction<'a>,
    /// Until the transaction has ended.
    _watched: Watched,
    pub(super) moment: Moment,
}

impl Catalog {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let inode = look(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(path, &error))?;
        connection.busy_timeout(PATIENCE).map_err(|error| failed(path, &error))?;
        // Nothing that is written in the catalog is run.
        connection
            .execute_batch(
                "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; \
                 PRAGMA temp_store = MEMORY;",
            )
            // Of all catalogs together: nothing goes to files of its own, and nothing grows without an end.
            .and_then(|()| connection.execute_batch(&format!("PRAGMA hard_heap_limit = {MAX_MEMORY}")))
            .map_err(|error| failed(path, &error))?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let opening = NEXT.fetch_add(1, Ordering::Relaxed);
        let watch = Watch::new(connection.get_interrupt_handle()).map_err(|error| Error::io(path, error))?;
        Ok(Self { path: path.to_path_buf(), inode, opening, watch, patience: DEADLINE, connection })
    }

    /// Whether the file is still the one that was opened.
    pub(super) fn is_current(&self) -> bool {
        look(&self.path).is_ok_and(|inode| inode == self.inode)
    }

    /// The state that was committed last.
    pub(super) fn state(&mut self) -> Result<State<'_>, Error> {
        let path = self.path.as_path();
        let of_sqlite = |error: rusqlite::Error| failed(path, &error);
        let watched = self.watch.begin(self.patience);
        let transaction = self.connection.transaction().map_err(of_sqlite)?;
        expect_tables(&transaction, path)?;
        expect_version(&transaction, path)?;
        let newest: Option<(i64, String)> = transaction
            .prepare_cached(
                "SELECT snapshot_id, substr(quote(snapshot_time), 1, 200) || ' ' || quote(schema_version) || ' ' \
                 || quote(next_catalog_id) || ' ' || quote(next_file_id) \
                 FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1",
            )
            .and_then(|mut query| query.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(of_sqlite)?;
        let Some((snapshot, row)) = newest else { return Err(damaged(path, "it has no snapshot")) };
        let changes =
            transaction.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(of_sqlite)?;
        let moment = Moment { snapshot, row, changes, opening: self.opening };
        Ok(State { path, transaction, _watched: watched, moment })
    }
}

impl State<'_> {
    /// The rows of a query, each as `read` has it. There are no more than `limit`.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        parameters: &[i64],
        limit: usize,
        mut read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        self.some_rows(sql, parameters, limit, |row| read(row).map(Some))
    }

    /// Those rows of a query that `read` makes something of. There are no more than `limit`.
    pub(super) fn some_rows<T>(
        &self,
        sql: &str,
        parameters: &[i64],
        limit: usize,
        mut read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, Error> {
        let of_sqlite = |error: rusqlite::Error| failed(self.path, &error);
        let mut query = self.transaction.prepare_cached(sql).map_err(of_sqlite)?;
        let mut rows = query.query(rusqlite::params_from_iter(parameters)).map_err(of_sqlite)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(of_sqlite)? {
            let Some(it) = read(row).map_err(of_sqlite)? else { continue };
            if all.len() >= limit {
                return Err(too_many(self.path, limit));
            }
            all.push(it);
        }
        Ok(all)
    }

    /// Whether there is a table of this name, and not a view or what a module makes up.
    pub(super) fn has_table(&self, name: &str) -> Result<bool, Error> {
        has_table(&self.transaction, name).map_err(|error| failed(self.path, &error))
    }

    pub(super) fn columns(&self, table: &str) -> Result<Vec<String>, Error> {
        let of_sqlite = |error: rusqlite::Error| failed(self.path, &error);
        let mut query = self
            .transaction
            .prepare_cached("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid")
            .map_err(of_sqlite)?;
        let names = query.query_map(params![table], |row| row.get(0)).map_err(of_sqlite)?;
        names.collect::<rusqlite::Result<Vec<String>>>().map_err(of_sqlite)
    }

    pub(super) fn has_column(&self, table: &str, column: &str) -> Result<bool, Error> {
        Ok(self.columns(table)?.iter().any(|name| name == column))
    }
}

/// Device and inode of a catalog. It is not opened: closing a second handle would drop the locks of SQLite.
fn look(path: &Path) -> Result<(u64, u64), Error> {
    let found = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    if !found.is_file() {
        return Err(Error::NotRegular { path: path.to_path_buf() });
    }
    if found.len() > MAX_BYTES {
        let detail = format!("a catalog of more than {} GiB", MAX_BYTES >> 30);
        return Err(Error::Unsupported { path: path.to_path_buf(), detail });
    }
    Ok(FileIdentity::new(&found, SystemTime::now()).inode())
}

/// The error for a file that is not an SQLite database, and so has none of its locks.
fn other_kind(path: &Path) -> Error {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(12).read_to_end(&mut begin));
    let kind = match begin.get(8..12) {
        Some(b"DUCK") if read.is_ok() => "a database of DuckDB",
        _ => "not an SQLite database",
    };
    Error::Lake {
        path: path.to_path_buf(),
        detail: format!("the catalog is {kind}; only SQLite catalogs are supported"),
        kind: ErrorKind::Unsupported,
        hint: "create the lake with a catalog in SQLite: `ATTACH 'ducklake:sqlite:FILE'`",
    }
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let mut query = connection
        .prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 0")?;
    query.exists(params![name])
}

fn expect_tables(connection: &Connection, path: &Path) -> Result<(), Error> {
    for name in [
        "ducklake_metadata",
        "ducklake_snapshot",
        "ducklake_schema",
        "ducklake_table",
        "ducklake_column",
        "ducklake_data_file",
        "ducklake_delete_file",
        "ducklake_inlined_data_tables",
        "ducklake_column_mapping",
        "ducklake_name_mapping",
        "ducklake_partition_column",
        "ducklake_file_partition_value",
    ] {
        if !has_table(connection, name).map_err(|error| failed(path, &error))? {
            return Err(damaged(path, format!("it has no table `{name}`: it is not a DuckLake catalog")));
        }
    }
    Ok(())
}

fn expect_version(connection: &Connection, path: &Path) -> Result<(), Error> {
    let version: Option<String> = connection
        .prepare_cached(
            "SELECT substr(value, 1, 40) FROM ducklake_metadata WHERE key = 'version' AND scope IS NULL LIMIT 1",
        )
        .and_then(|mut query| query.query_row([], |row| row.get(0)).optional())
        .map_err(|error| failed(path, &error))?;
    match version {
        None => Err(damaged(path, "it has no version")),
        Some(version) if VERSIONS.contains(&version.as_str()) => Ok(()),
        Some(version) => Err(Error::Lake {
            path: path.to_path_buf(),
            detail: format!("the catalog has the unsupported DuckLake version {version:?}"),
            kind: ErrorKind::Unsupported,
            hint: "the supported versions are 0.3, 0.4, 1.0 and 1.1",
        }),
    }
}

pub(super) fn damaged(path: &Path, detail: impl ToString) -> Error {
    Error::Lake {
        path: path.to_path_buf(),
        detail: detail.to_string(),
        kind: ErrorKind::Corrupt,
        hint: "check the catalog with DuckDB; other tables and lakes are not affected",
    }
}

fn too_many(path: &Path, limit: usize) -> Error {
    Error::Lake {
        path: path.to_path_buf(),
        detail: format!("the catalog has more than {limit} entries of one kind for one table or list"),
        kind: ErrorKind::LimitReached,
        hint: "merge files in DuckDB (`CALL ducklake_merge_adjacent_files('lake')`), or raise `max_files_per_table`",
    }
}

/// The error of a read that was stopped, and the only one of this kind.
pub(super) fn too_slow(path: &Path) -> Error {
    Error::Lake {
        path: path.to_path_buf(),
        detail: format!("reading the catalog took longer than {} seconds", DEADLINE.as_secs()),
        kind: ErrorKind::Timeout,
        hint: "run the statement again in half a minute; if it is still slow, expire snapshots and merge files in DuckDB",
    }
}

pub(super) fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let (kind, hint) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => return other_kind(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "another program has locked it for more than five seconds: run the statement again",
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => (
            ErrorKind::Unavailable,
            "the server reads the file; one in WAL mode also needs `-shm` and `-wal` beside it, which it may write",
        ),
        Some(ErrorCode::OperationInterrupted) => return too_slow(path),
        Some(ErrorCode::OutOfMemory) => (
            ErrorKind::LimitReached,
            "reading the catalog exceeds the memory limit for catalogs: expire snapshots and merge files in DuckDB",
        ),
        _ => (ErrorKind::Corrupt, "check the catalog with DuckDB; other tables and lakes are not affected"),
    };
    Error::Lake {
        path: path.to_path_buf(),
        detail: format!("the catalog cannot be read: {error}"),
        kind,
        hint,
    }
}
