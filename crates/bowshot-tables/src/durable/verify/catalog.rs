//! The catalog in itself.

use super::{Found, WHOLE_FOLDER};
use crate::Error;
use crate::deleted_rows::DeletedRows;
use crate::durable::backup::models;
use crate::durable::broken_in;
use crate::durable::catalog::{Catalog, FILE, LAYOUT, LAYOUT_WITH_DELETED_ROWS, LAYOUTS};
use crate::durable::codec::{definition_from_text, rows_from_bytes};
use crate::durable::load::all;
use arrow::datatypes::SchemaRef;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) struct Known {
    /// By id.
    pub(super) tables: BTreeMap<String, KnownTable>,
    pub(super) segments: Vec<KnownSegment>,
    /// Hashes of models.
    pub(super) models: BTreeSet<String>,
}

pub(super) struct KnownTable {
    pub(super) name: String,
    pub(super) version: u64,
    /// Its columns now; `None` if nobody can read its definition.
    pub(super) columns: Option<SchemaRef>,
    /// The version of the Delta log that the catalog knows of.
    pub(super) published: Option<u64>,
}

pub(super) struct KnownSegment {
    pub(super) table: String,
    pub(super) file: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Whether the newest version of the table has it.
    pub(super) current: bool,
}

/// Looks at the catalog of a folder. `None` if nothing can be said of its files.
pub(super) fn look(folder: &Path, found: &mut Found) -> Option<Known> {
    let catalog = match Catalog::look_into(folder) {
        Ok(catalog) => catalog,
        Err(error) => return broken(found, &error),
    };
    let layout: i64 =
        match catalog.read(|catalog| catalog.query_row("PRAGMA user_version", [], |row| row.get(0))) {
            Ok(layout) => layout,
            Err(error) => return broken(found, &error),
        };
    if !LAYOUTS.contains(&layout) {
        let problem =
            format!("it has layout {layout}, this version knows {LAYOUT} to {LAYOUT_WITH_DELETED_ROWS}");
        found.fault(FILE, problem, "verify it with the version of the program that wrote it");
        return None;
    }
    match catalog.read(|catalog| all(catalog, "PRAGMA integrity_check(10)", |row| row.get::<_, String>(0))) {
        Ok(lines) if lines == ["ok"] => {}
        Ok(lines) => lines.into_iter().for_each(|line| {
            // Several lines may come as one.
            found.fault(FILE, line.replace('\n', "; "), WHOLE_FOLDER);
        }),
        Err(error) => return broken(found, &error),
    }
    match broken_in(folder) {
        Ok(entries) => entries.into_iter().for_each(|(name, reason)| {
            let remedy = "it is not served: DROP it, or bring the folder back with `bowshot restore`";
            found.fault(name, reason, remedy);
        }),
        Err(error) => return broken(found, &error),
    }
    let read = catalog.read(|catalog| {
        inner(catalog, found)?;
        Known::read(catalog, found)
    });
    match read {
        Ok(known) => Some(known),
        Err(error) => broken(found, &error),
    }
}

fn broken(found: &mut Found, error: &Error) -> Option<Known> {
    found.fault(FILE, error.to_string(), WHOLE_FOLDER);
    None
}

/// What must hold between the tables of the catalog, and of the rows that it has itself.
fn inner(catalog: &Connection, found: &mut Found) -> rusqlite::Result<()> {
    let lines = [
        (
            "SELECT e.id, 'version ' || e.version || ' of it is not in its history' FROM entries e WHERE e.kind = 'table'
             AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.table_id = e.id AND v.version = e.version)",
            "queries are answered; earlier versions of it may not be. Copy it with CREATE TABLE … AS and drop it",
        ),
        (
            "SELECT e.id, 'no definition of it is kept' FROM entries e WHERE e.kind = 'table'
             AND NOT EXISTS (SELECT 1 FROM definitions d WHERE d.table_id = e.id)",
            "queries are answered; earlier versions of it are not. Copy it with CREATE TABLE … AS and drop it",
        ),
        (
            "SELECT DISTINCT s.table_id, 'rows of it are there, but no table' FROM segments s
             WHERE s.table_id NOT IN (SELECT id FROM entries WHERE kind = 'table')",
            WHOLE_FOLDER,
        ),
        (
            "SELECT s.table_id, 'segment ' || s.id || ' goes from version ' || s.added || ' to ' || s.removed FROM segments s
             WHERE s.removed <= s.added",
            WHOLE_FOLDER,
        ),
        (
            "SELECT s.table_id, 'segment ' || s.id || ' is of a version that is still to come' FROM segments s
             JOIN entries e ON e.id = s.table_id WHERE s.added > e.version",
            WHOLE_FOLDER,
        ),
        (
            "SELECT s.table_id, 'segment ' || s.id || ' has neither rows nor a file' FROM segments s
             WHERE s.file IS NULL AND s.content IS NULL",
            WHOLE_FOLDER,
        ),
    ];
    for (sql, remedy) in lines {
        for (table, problem) in
            all(catalog, sql, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        {
            found.fault(format!("table {table}"), problem, remedy);
        }
    }
    let rows = "SELECT table_id, id, row_count, content, removed IS NULL FROM segments WHERE file IS NULL AND content IS NOT NULL";
    let rows = all(catalog, rows, |row| {
        let (table, segment, count): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((table, (segment, count, row.get::<_, bool>(4)?), row.get::<_, Vec<u8>>(3)?))
    })?;
    for (table, (segment, expected, is_current), content) in rows {
        let problem = match rows_from_bytes(content) {
            Ok(rows) if rows.num_rows() as i64 == expected => continue,
            // Told of the table already.
            Err(_) if is_current => continue,
            Ok(rows) => format!("segment {segment} has {} rows, {expected} were written", rows.num_rows()),
            Err(error) => format!("segment {segment}: {error}"),
        };
        found.fault(format!("table {table}"), problem, WHOLE_FOLDER);
    }
    Ok(())
}

impl Known {
    fn read(catalog: &Connection, found: &mut Found) -> rusqlite::Result<Self> {
        let tables = all(
            catalog,
            "SELECT e.id, e.name, e.version, e.body, p.delta_version FROM entries e
             LEFT JOIN published p ON p.table_id = e.id WHERE e.kind = 'table'",
            |row| {
                let table = KnownTable {
                    name: row.get(1)?,
                    version: row.get::<_, i64>(2)?.cast_unsigned(),
                    columns: definition_from_text(&row.get::<_, String>(3)?).ok().map(|found| found.schema()),
                    published: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
                };
                Ok((row.get::<_, String>(0)?, table))
            },
        )?;
        let segments = all(
            catalog,
            "SELECT table_id, file, row_count, bytes, removed IS NULL FROM segments WHERE file IS NOT NULL",
            |row| {
                Ok(KnownSegment {
                    table: row.get(0)?,
                    file: row.get(1)?,
                    rows: row.get::<_, i64>(2)?.cast_unsigned(),
                    bytes: row.get::<_, i64>(3)?.cast_unsigned(),
                    current: row.get(4)?,
                })
            },
        )?;
        let rows = "SELECT coalesce(sum(row_count), 0) FROM segments WHERE removed IS NULL";
        let stored = catalog.query_row(rows, [], |row| row.get::<_, i64>(0))?.cast_unsigned();
        let deleted = "SELECT row_count, content FROM segments
                       WHERE removed IS NULL AND file IS NOT NULL AND content IS NOT NULL";
        let deleted = all(catalog, deleted, |row| {
            let rows = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
            // Of a table whose deleted rows cannot be read, that is told already.
            Ok(DeletedRows::from_bytes(&row.get::<_, Vec<u8>>(1)?, rows).map_or(0, |deleted| deleted.len()))
        })?;
        found.rows = stored.saturating_sub(deleted.into_iter().sum::<usize>() as u64);
        Ok(Self { tables: tables.into_iter().collect(), segments, models: models(catalog)? })
    }
}
