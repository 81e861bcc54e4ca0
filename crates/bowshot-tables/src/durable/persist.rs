//! Brings the catalog from one snapshot to the next.

use super::catalog::{Catalog, LAYOUT_WITH_DELETED_ROWS, LAYOUT_WITH_NOTES, raise_layout};
use super::codec::{definition_to_text, external_to_text, rows_to_bytes, view_to_text};
use super::file::StoredFile;
use crate::commit_views;
use crate::merge::{Node, changed_tables, restored_tables};
use crate::segment::Segment;
use crate::snapshot::{CatalogState, SchemaState, Snapshot};
use crate::table::Edits;
use crate::{Definition, Entry, Error, Table, What};
use chrono::Utc;
use rusqlite::{CachedStatement, Connection, params};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// What a commit did to the tables of the data folder.
#[derive(Debug, Default)]
pub(crate) struct Persisted {
    /// The tables that it made, redefined, or gave other files, as they are now: what others must be shown.
    pub(crate) changed: Vec<Arc<Table>>,
    pub(crate) dropped: Vec<Uuid>,
}

impl Persisted {
    pub(crate) fn add(&mut self, other: Self) {
        self.changed.extend(other.changed);
        self.dropped.extend(other.dropped);
    }
}

/// Numbers the versions of the tables that `next` changes, and writes the difference in one transaction.
pub(crate) fn persist(catalog: &Catalog, head: &Snapshot, next: &mut Snapshot) -> Result<Persisted, Error> {
    let before = Names::of_changed(head, next);
    number_versions(head, next, &before);
    let after = Names::of_changed(next, head);
    let mut persisted = Persisted::default();
    let mut kept = Vec::new();
    if before.same(&after) && head.notes().same(next.notes()) {
        return Ok(persisted);
    }
    let written = catalog.write(|connection| {
        let writer = Writer { catalog, connection };
        writer.names(&before, &after)?;
        writer.notes(head.notes().texts(), next.notes().texts())?;
        for (id, entry) in &after.entries {
            let Entry::Table(table) = &entry.entry else { continue };
            let old = before.table(*id);
            if old.is_some_and(|old| old.version() == table.version()) {
                continue;
            }
            writer.table(old.map(Arc::as_ref), table)?;
            kept.push(Arc::clone(table));
            if old.is_none_or(|old| looks_different(old, table)) {
                persisted.changed.push(Arc::clone(table));
            }
        }
        for (id, entry) in &before.entries {
            match &entry.entry {
                _ if after.entries.contains_key(id) => {}
                Entry::Table(table) => {
                    writer.dropped(table.id())?;
                    persisted.dropped.push(table.id());
                }
                Entry::Broken(broken) if broken.what == What::Table => {
                    writer.dropped(broken.id)?;
                    persisted.dropped.push(broken.id);
                }
                Entry::View(_) | Entry::External(_) | Entry::Broken(_) => {}
            }
        }
        Ok(())
    });
    // If nobody knows whether the catalog names the files, the next start finds out.
    if written.is_ok() || catalog.is_stopped() {
        let segments = kept.iter().flat_map(|table| table.shared_segments());
        segments.filter_map(|segment| segment.file()).for_each(StoredFile::keep);
    }
    written.map(|()| persisted)
}

/// Whether others see a difference: they see definitions and files, not what the catalog has of the rows.
fn looks_different(old: &Table, table: &Table) -> bool {
    let files = |table: &Table| -> Vec<String> {
        table.shared_segments().iter().filter_map(|segment| segment.file()).map(StoredFile::name).collect()
    };
    let has_few_rows =
        |table: &Table| table.shared_segments().iter().any(|segment| segment.memory().is_some());
    // They may have waited for those few rows.
    let waited = has_few_rows(old) && !has_few_rows(table);
    waited || old.definition() != table.definition() || files(old) != files(table)
}

/// A table that is new has version 0, a changed one the next.
fn number_versions(head: &Snapshot, next: &mut Snapshot, before: &Names) {
    for (name, _) in restored_tables(head, next) {
        if let Some(entry) = head.entry(&name) {
            next.replace(&name, entry.clone());
        }
    }
    let changed = changed_tables(head, next);
    for (name, table) in &changed {
        let old = before.table(table.id());
        let version = old.map_or(0, |old| old.version() + 1);
        let changed_version = match old {
            Some(old) if old.same_rows(table) => old.changed_version(),
            _ => Some(version),
        };
        if table.definition().is_durable() {
            next.replace(name, Entry::Table(Arc::new(table.numbered(version, changed_version))));
        }
    }
    commit_views::number_sources(next, &changed);
}

/// What is durable in the schemas of one snapshot that differ from those of another.
#[derive(Default)]
struct Names {
    catalogs: BTreeMap<Uuid, String>,
    schemas: BTreeMap<Uuid, (Uuid, String)>,
    entries: BTreeMap<Uuid, Named>,
}

struct Named {
    schema: Uuid,
    name: String,
    entry: Entry,
}

impl Names {
    fn of_changed(this: &Snapshot, other: &Snapshot) -> Self {
        let mut names = Self::default();
        for (name, catalog) in this.catalog_states() {
            let other = other.catalog_states().get(name);
            if other.is_none_or(|other| !Arc::ptr_eq(catalog, other)) {
                names.add_catalog(name, catalog, other);
            }
        }
        names
    }

    fn add_catalog(&mut self, name: &str, catalog: &CatalogState, other: Option<&Arc<CatalogState>>) {
        self.catalogs.insert(catalog.id, name.to_owned());
        for (name, schema) in &catalog.schemas {
            let other = other.and_then(|other| other.schemas.get(name));
            self.schemas.insert(schema.id, (catalog.id, name.clone()));
            if other.is_none_or(|other| !Arc::ptr_eq(schema, other)) {
                self.add_schema(schema, other);
            }
        }
    }

    fn add_schema(&mut self, schema: &SchemaState, other: Option<&Arc<SchemaState>>) {
        let other = other.filter(|other| other.id == schema.id);
        for (name, entry) in &schema.entries {
            if other.and_then(|other| other.entries.get(name)).is_some_and(|other| entry.same(other)) {
                continue;
            }
            let (id, durable) = match entry {
                Entry::Table(table) => (table.id(), table.definition().is_durable()),
                Entry::View(view) => (view.id, true),
                Entry::External(external) => (external.id, true),
                Entry::Broken(broken) => (broken.id, true),
            };
            if durable {
                let named = Named { schema: schema.id, name: name.clone(), entry: entry.clone() };
                self.entries.insert(id, named);
            }
        }
    }

    fn table(&self, id: Uuid) -> Option<&Arc<Table>> {
        match &self.entries.get(&id)?.entry {
            Entry::Table(table) => Some(table),
            Entry::View(_) | Entry::External(_) | Entry::Broken(_) => None,
        }
    }

    /// Whether there is nothing to write. What is the same in both snapshots is in neither of the entries.
    fn same(&self, other: &Self) -> bool {
        self.catalogs == other.catalogs
            && self.schemas == other.schemas
            && self.entries.is_empty()
            && other.entries.is_empty()
    }
}

impl Named {
    /// Whether both are written alike in the table `entries`.
    fn same(&self, other: &Self) -> bool {
        self.entry.same(&other.entry) && self.schema == other.schema && self.name == other.name
    }

    /// Whether both are written alike but for their version: tables with other rows, which most commits make.
    fn has_body_of(&self, other: &Self) -> bool {
        match (&self.entry, &other.entry) {
            (Entry::Table(table), Entry::Table(there)) => {
                Arc::ptr_eq(table.definition(), there.definition())
                    && self.schema == other.schema
                    && self.name == other.name
            }
            _ => false,
        }
    }

    fn version(&self) -> u64 {
        match &self.entry {
            Entry::Table(table) => table.version(),
            Entry::View(_) | Entry::External(_) => 0,
            Entry::Broken(broken) => broken.version,
        }
    }
}

/// Writes within one transaction.
struct Writer<'a> {
    catalog: &'a Catalog,
    connection: &'a Connection,
}

impl Writer<'_> {
    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, Error> {
        self.connection.prepare_cached(sql).map_err(|error| self.failed(&error))
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        self.statement(sql)?.execute(values).map(drop).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        self.catalog.failed("cannot be written", error)
    }

    /// Takes out what is gone or has changed before it puts anything in: names may have been swapped.
    fn names(&self, before: &Names, after: &Names) -> Result<(), Error> {
        for (id, named) in &before.entries {
            if !after.entries.get(id).is_some_and(|other| named.same(other) || named.has_body_of(other)) {
                match &named.entry {
                    // What is wrong with it may be its id.
                    Entry::Broken(_) => self.run(
                        "DELETE FROM entries WHERE schema = ? AND name = ?",
                        params![named.schema.to_string(), named.name],
                    )?,
                    _ => self.run("DELETE FROM entries WHERE id = ?", params![id.to_string()])?,
                }
            }
        }
        for id in before.schemas.keys().filter(|id| !after.schemas.contains_key(id)) {
            self.run("DELETE FROM schemas WHERE id = ?", params![id.to_string()])?;
        }
        for id in before.catalogs.keys().filter(|id| !after.catalogs.contains_key(id)) {
            self.run("DELETE FROM catalogs WHERE id = ?", params![id.to_string()])?;
        }
        for (id, name) in after.catalogs.iter().filter(|(id, _)| !before.catalogs.contains_key(id)) {
            self.run("INSERT INTO catalogs (id, name) VALUES (?, ?)", params![id.to_string(), name])?;
        }
        for (id, (catalog, name)) in after.schemas.iter().filter(|(id, _)| !before.schemas.contains_key(id)) {
            let values = params![id.to_string(), catalog.to_string(), name];
            self.run("INSERT INTO schemas (id, catalog, name) VALUES (?, ?, ?)", values)?;
        }
        for (id, named) in &after.entries {
            match before.entries.get(id) {
                Some(other) if named.same(other) => {}
                Some(other) if named.has_body_of(other) => {
                    let values = params![named.version().cast_signed(), id.to_string()];
                    self.run("UPDATE entries SET version = ? WHERE id = ?", values)?;
                }
                _ => self.entry(*id, named)?,
            }
        }
        Ok(())
    }

    fn notes(
        &self,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            self.run("DELETE FROM notes WHERE key = ?", params![key])?;
        }
        let changed = after.iter().filter(|(key, text)| before.get(*key) != Some(text));
        for (key, text) in changed {
            self.run("INSERT OR REPLACE INTO notes (key, text) VALUES (?, ?)", params![key, text])?;
        }
        if before.is_empty() && !after.is_empty() {
            raise_layout(self.connection, LAYOUT_WITH_NOTES).map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    fn entry(&self, id: Uuid, named: &Named) -> Result<(), Error> {
        let (kind, body) = match &named.entry {
            Entry::Table(table) => ("table", definition_to_text(table.definition())?),
            Entry::View(view) => ("view", view_to_text(view)),
            // Catalogs know two kinds; what the body says tells it from a view.
            Entry::External(external) => ("view", external_to_text(external)),
            // In another place, but as it is.
            Entry::Broken(broken) => (broken.kind(), broken.body.clone()),
        };
        let version = named.version().cast_signed();
        let values = params![id.to_string(), named.schema.to_string(), named.name, kind, body, version];
        self.run(
            "INSERT INTO entries (id, schema, name, kind, body, version) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )
    }

    fn table(&self, old: Option<&Table>, table: &Table) -> Result<(), Error> {
        let (id, version) = (table.id().to_string(), table.version().cast_signed());
        if old.is_none_or(|old| old.definition() != table.definition()) {
            let values = params![id, version, definition_to_text(table.definition())?];
            self.run("INSERT INTO definitions (table_id, version, body) VALUES (?, ?, ?)", values)?;
        }
        let edits = edits(old, table);
        let values = params![
            id,
            version,
            Utc::now().timestamp_micros(),
            operation(old, table),
            edits.inserted.cast_signed(),
            edits.deleted.cast_signed()
        ];
        self.run(
            "INSERT INTO versions (table_id, version, committed_us, operation, rows_added, rows_removed)
             VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )?;
        let there: HashSet<u64> = table.shared_segments().iter().map(|segment| segment.id()).collect();
        let known: HashSet<u64> =
            old.map(Table::shared_segments).unwrap_or_default().iter().map(|segment| segment.id()).collect();
        for gone in known.difference(&there) {
            self.run("UPDATE segments SET removed = ? WHERE id = ?", params![version, gone.cast_signed()])?;
        }
        let mut new = table.shared_segments().iter().filter(|segment| !known.contains(&segment.id()));
        new.try_for_each(|segment| self.segment(&id, version, segment))
    }

    fn segment(&self, table: &str, version: i64, segment: &Segment) -> Result<(), Error> {
        let (file, content) = match (segment.file(), segment.memory()) {
            (Some(file), _) if segment.deleted().is_empty() => (Some(file.name()), None),
            (Some(file), _) => {
                let raised = raise_layout(self.connection, LAYOUT_WITH_DELETED_ROWS);
                raised.map_err(|error| self.failed(&error))?;
                (Some(file.name()), Some(segment.deleted().to_bytes()))
            }
            (None, Some(rows)) => (None, Some(rows_to_bytes(rows.batch())?)),
            (None, None) => (None, None),
        };
        let values = params![
            segment.id().cast_signed(),
            table,
            version,
            segment.stored_rows() as i64,
            file,
            segment.bytes().cast_signed(),
            content
        ];
        self.run(
            "INSERT INTO segments (id, table_id, added, row_count, file, bytes, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    }

    fn dropped(&self, table: Uuid) -> Result<(), Error> {
        let id = table.to_string();
        for sql in [
            "DELETE FROM segments WHERE table_id = ?",
            "DELETE FROM versions WHERE table_id = ?",
            "DELETE FROM definitions WHERE table_id = ?",
            "DELETE FROM published WHERE table_id = ?",
            "INSERT OR IGNORE INTO dropped (table_id) VALUES (?)",
        ] {
            self.run(sql, params![id])?;
        }
        Ok(())
    }
}

fn edits(old: Option<&Table>, table: &Table) -> Edits {
    table.edits().minus(old.map(Table::edits).unwrap_or_default())
}

fn operation(old: Option<&Table>, table: &Table) -> &'static str {
    let edits = edits(old, table);
    match old {
        None => "CREATE",
        Some(old) if is_redefined(old, table) => "ALTER",
        Some(old) => match (edits.inserted > 0, edits.deleted > 0) {
            (true, true) => "UPDATE",
            (true, false) => "INSERT",
            (false, true) => "DELETE",
            (false, false) if old.definition() != table.definition() => "ALTER",
            (false, false) => "OPTIMIZE",
        },
    }
}

/// Whether a table has another definition. What a refresh notes of a materialized view is none.
fn is_redefined(old: &Table, table: &Table) -> bool {
    let plain = |table: &Table| Definition { materialized: None, ..table.definition().as_ref().clone() };
    match (&old.definition().materialized, &table.definition().materialized) {
        (Some(_), Some(_)) => plain(old) != plain(table),
        _ => old.definition() != table.definition(),
    }
}
