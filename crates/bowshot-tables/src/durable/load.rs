//! From the catalog to the snapshot with which a server starts.

use super::catalog::{Catalog, parsed};
use super::codec::{definition_from_text, rows_from_bytes, view_or_external};
use super::delta::newest_version;
use super::disk::Disk;
use crate::catalog_kv::Notes;
use crate::deleted_rows::DeletedRows;
use crate::memory_accounting::Account;
use crate::segment::Segment;
use crate::snapshot::{CatalogState, Defaults, SchemaState, Snapshot};
use crate::{Broken, Entry, EntryName, Error, Table, What};
use rusqlite::{Connection, Row};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct Loaded {
    /// `None` in a new data folder.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) next_segment: u64,
    pub(crate) leftovers: Leftovers,
}

/// What tells the files of tables from those that killed writers have left.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// With the version that the catalog knows.
    tables: HashMap<Uuid, u64>,
    dropped: HashSet<Uuid>,
    /// All files that some version of a table has.
    files: HashSet<PathBuf>,
    /// Whether something of the catalog cannot be read: nobody knows then what is rubbish.
    doubtful: bool,
}

impl Leftovers {
    /// Tables that were dropped and of which something may be there.
    pub(crate) fn dropped(&self) -> Vec<Uuid> {
        self.dropped.iter().copied().collect()
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Removes files and folders of no table. Fails before that if the catalog is older than the tables.
    pub(crate) fn remove(&self, catalog: &Catalog, disk: &Disk) -> Result<(), Error> {
        if self.doubtful {
            tracing::warn!(
                "what killed writers may have left is kept, since the catalog cannot be read as a whole"
            );
            return Ok(());
        }
        for (table, version) in &self.tables {
            if newest_version(disk, *table)?.is_some_and(|shown| shown > *version) {
                return Err(Error::OldCatalog { path: disk.folder(*table) });
            }
        }
        let tables = self.tables.keys().copied().collect();
        let removed = disk.remove_orphans(&tables, &self.dropped, &self.files)?;
        if removed > 0 {
            tracing::info!(removed, "files of writers that were killed are removed");
        }
        // What is in a store is removed in the background.
        if disk.bucket().is_some() {
            return Ok(());
        }
        // One that is still there must be known as dropped at the next start too.
        let gone = self.dropped.iter().filter(|table| !disk.folder(**table).exists());
        let gone: Vec<String> = gone.map(Uuid::to_string).collect();
        catalog.write(|connection| {
            gone.iter().try_for_each(|table| {
                let cleared = connection.execute("DELETE FROM dropped WHERE table_id = ?", [table]);
                cleared.map(drop).map_err(|error| catalog.failed("cannot be written", &error))
            })
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Shelf<'a> {
    pub(super) disk: &'a Arc<Disk>,
    pub(super) account: &'a Arc<Account>,
}

#[derive(Debug)]
pub(super) struct SegmentRow {
    pub(super) id: u64,
    rows: usize,
    file: Option<String>,
    bytes: u64,
    content: Option<Vec<u8>>,
}

impl SegmentRow {
    /// The columns that [`Self::of`] reads, in order.
    pub(super) const COLUMNS: &'static str = "id, row_count, file, bytes, content";

    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get::<_, i64>(0)?.cast_unsigned(),
            rows: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            file: row.get(2)?,
            bytes: row.get::<_, i64>(3)?.cast_unsigned(),
            content: row.get(4)?,
        })
    }

    pub(super) fn segment(self, table: Uuid, shelf: Shelf<'_>) -> Result<Arc<Segment>, Error> {
        let segment = match (self.file, self.content) {
            (Some(name), deleted) => {
                let file = shelf.disk.kept_file(table, &name, self.rows, self.bytes);
                let deleted = DeletedRows::from_bytes(&deleted.unwrap_or_default(), self.rows)?;
                Segment::in_file(self.id, file, deleted, shelf.account)
            }
            (None, content) => {
                Segment::in_memory(self.id, rows_from_bytes(content.unwrap_or_default())?, shelf.account)?
            }
        };
        Ok(Arc::new(segment))
    }
}

pub(crate) fn load(
    catalog: &Catalog,
    disk: &Arc<Disk>,
    account: &Arc<Account>,
    defaults: Defaults,
) -> Result<Loaded, Error> {
    let names = catalog.read(Names::read)?;
    let shelf = Shelf { disk, account };
    let files = names.files.iter().map(|(table, name)| disk.folder(*table).join(name)).collect();
    let mut loaded = Loaded {
        snapshot: None,
        next_segment: names.last_segment.map_or(0, |id| id + 1),
        leftovers: Leftovers { tables: HashMap::new(), dropped: names.dropped, files, doubtful: false },
    };
    if names.catalogs.is_empty() {
        return Ok(loaded);
    }
    let mut entries: HashMap<String, BTreeMap<String, Entry>> = HashMap::new();
    for entry in names.entries {
        let id = parsed(Uuid::parse_str(&entry.id));
        let made = id.and_then(|id| {
            if entry.kind == "view" {
                return view_or_external(id, &entry.body);
            }
            loaded.leftovers.tables.insert(id, entry.version);
            Ok(Entry::Table(Arc::new(table(catalog, id, &entry, shelf)?)))
        });
        let made = made.unwrap_or_else(|error| {
            loaded.leftovers.doubtful = true;
            Entry::Broken(Arc::new(broken(&entry, &error)))
        });
        entries.entry(entry.schema).or_default().insert(entry.name, made);
    }
    let mut catalogs = BTreeMap::new();
    for (catalog_id, name) in names.catalogs {
        let mut schemas = BTreeMap::new();
        for (id, _, name) in names.schemas.iter().filter(|(_, catalog, _)| *catalog == catalog_id) {
            let Some(own) = readable(What::Schema, name, id, &mut loaded.leftovers) else { continue };
            let entries = entries.remove(id).unwrap_or_default();
            schemas.insert(name.clone(), Arc::new(SchemaState { id: own, entries }));
        }
        let Some(id) = readable(What::Catalog, &name, &catalog_id, &mut loaded.leftovers) else { continue };
        catalogs.insert(name, Arc::new(CatalogState { id, schemas }));
    }
    loaded.leftovers.doubtful |= !entries.is_empty();
    loaded.snapshot = Some(Snapshot::restored(defaults, catalogs, Notes::restored(names.notes)).complete());
    Ok(loaded)
}

/// The id of a catalog or schema; without one, nothing of it can be served.
fn readable(what: What, name: &str, id: &str, leftovers: &mut Leftovers) -> Option<Uuid> {
    let read = Uuid::parse_str(id);
    if let Err(error) = &read {
        tracing::error!(name, %error, "a {what} of the data folder cannot be read: it is not served");
        leftovers.doubtful = true;
    }
    read.ok()
}

fn broken(entry: &EntryRow, error: &Error) -> Broken {
    let what = if entry.kind == "view" { What::View } else { What::Table };
    tracing::error!(name = entry.name, %error, "a {what} of the data folder cannot be read: it is not served");
    Broken {
        id: Uuid::parse_str(&entry.id).unwrap_or_else(|_| Uuid::new_v4()),
        what,
        body: entry.body.clone(),
        version: entry.version,
        reason: error.to_string(),
    }
}

/// See [`crate::examine`]. Rows that are in the catalog itself are looked at too, files are not.
pub(crate) fn broken_in(folder: &Path) -> Result<Vec<(String, String)>, Error> {
    if !Catalog::is_in(folder) {
        return Ok(Vec::new());
    }
    let catalog = Catalog::look_into(folder)?;
    let names = catalog.read(Names::read)?;
    let mut found = Vec::new();
    for entry in &names.entries {
        let schema = names.schemas.iter().find(|(id, _, _)| *id == entry.schema);
        let catalog_name = schema.and_then(|(_, id, _)| names.catalogs.iter().find(|(own, _)| own == id));
        let (Some((_, _, schema)), Some((_, catalog_name))) = (schema, catalog_name) else {
            found.push((entry.name.clone(), "its schema is not there".to_owned()));
            continue;
        };
        if let Err(error) = examined(&catalog, entry) {
            found.push((EntryName::new(catalog_name, schema, &entry.name).to_string(), error.to_string()));
        }
    }
    Ok(found)
}

/// See [`crate::notes_in`].
pub(crate) fn notes_of(folder: &Path) -> Result<BTreeMap<String, String>, Error> {
    if Catalog::is_in(folder) { Catalog::look_into(folder)?.read(notes) } else { Ok(BTreeMap::new()) }
}

fn examined(catalog: &Catalog, entry: &EntryRow) -> Result<(), Error> {
    let id = parsed(Uuid::parse_str(&entry.id))?;
    if entry.kind == "view" {
        return view_or_external(id, &entry.body).map(drop);
    }
    definition_from_text(&entry.body)?;
    let rows = segment_rows(catalog, id)?;
    rows.into_iter().try_for_each(|row| match (row.file, row.content) {
        (_, None) => Ok(()),
        (Some(_), Some(deleted)) => DeletedRows::from_bytes(&deleted, row.rows).map(drop),
        (None, Some(content)) => rows_from_bytes(content).map(drop),
    })
}

fn segment_rows(catalog: &Catalog, table: Uuid) -> Result<Vec<SegmentRow>, Error> {
    let sql = format!(
        "SELECT {} FROM segments WHERE table_id = ? AND removed IS NULL ORDER BY id",
        SegmentRow::COLUMNS
    );
    catalog.read(|connection| {
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map([table.to_string()], SegmentRow::of)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    })
}

fn table(catalog: &Catalog, id: Uuid, entry: &EntryRow, shelf: Shelf<'_>) -> Result<Table, Error> {
    let definition = definition_from_text(&entry.body)?;
    let rows = segment_rows(catalog, id)?;
    let segments = rows.into_iter().map(|row| row.segment(id, shelf)).collect::<Result<Vec<_>, _>>()?;
    // Of a table whose older versions are forgotten nobody knows when its rows came: as late as can be.
    let changed: Option<i64> = catalog.read(|connection| {
        let sql = "SELECT max(version) FROM versions WHERE table_id = ? AND operation <> 'OPTIMIZE'";
        connection.query_row(sql, [id.to_string()], |row| row.get(0))
    })?;
    let changed = changed.map_or(entry.version, i64::cast_unsigned);
    Ok(Table::restored(id, definition, segments, entry.version).numbered(entry.version, Some(changed)))
}

struct EntryRow {
    id: String,
    schema: String,
    name: String,
    kind: String,
    body: String,
    version: u64,
}

struct Names {
    catalogs: Vec<(String, String)>,
    /// Id, id of the catalog, name.
    schemas: Vec<(String, String, String)>,
    entries: Vec<EntryRow>,
    files: Vec<(Uuid, String)>,
    dropped: HashSet<Uuid>,
    last_segment: Option<u64>,
    notes: BTreeMap<String, String>,
}

impl Names {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let last: Option<i64> = connection.query_row("SELECT max(id) FROM segments", [], |row| row.get(0))?;
        Ok(Self {
            catalogs: all(connection, "SELECT id, name FROM catalogs", |row| Ok((row.get(0)?, row.get(1)?)))?,
            schemas: all(connection, "SELECT id, catalog, name FROM schemas", |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?,
            entries: all(connection, "SELECT id, schema, name, kind, body, version FROM entries", |row| {
                Ok(EntryRow {
                    id: row.get(0)?,
                    schema: row.get(1)?,
                    name: row.get(2)?,
                    kind: row.get(3)?,
                    body: row.get(4)?,
                    version: row.get::<_, i64>(5)?.cast_unsigned(),
                })
            })?,
            files: all(connection, "SELECT table_id, file FROM segments WHERE file IS NOT NULL", |row| {
                Ok((Uuid::parse_str(&row.get::<_, String>(0)?).unwrap_or_default(), row.get(1)?))
            })?,
            dropped: all(connection, "SELECT table_id FROM dropped", |row| {
                Ok(Uuid::parse_str(&row.get::<_, String>(0)?).unwrap_or_default())
            })?
            .into_iter()
            .collect(),
            last_segment: last.map(i64::cast_unsigned),
            notes: notes(connection)?,
        })
    }
}

/// The notes; a catalog of an earlier version has no table of them.
fn notes(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let there: i64 =
        connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'notes'", [], |row| row.get(0))?;
    if there == 0 {
        return Ok(BTreeMap::new());
    }
    let notes = all(connection, "SELECT key, text FROM notes", |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(notes.into_iter().collect())
}

pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], read)?.collect()
}
