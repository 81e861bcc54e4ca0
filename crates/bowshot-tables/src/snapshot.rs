//! All catalogs, schemas, tables and views as they were at one moment, and the copies in which something is changed.

use super::catalog_kv::{self, Notes};
use super::definition_check;
use super::merge::{Node, Sides, all_children, merge_children};
use super::{Broken, EntryName, Error, External, Materialized, SourceVersion, Table, What};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub enum Entry {
    Table(Arc<Table>),
    View(Arc<View>),
    External(Arc<External>),
    /// One that the catalog has and that cannot be read.
    Broken(Arc<Broken>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Tells the view from all others, also from earlier ones of the same name.
    #[serde(skip)]
    pub id: Uuid,
    pub sql: String,
    /// Name of the dialect that it is written in, which is not always that of whoever reads it.
    #[serde(default = "first_dialect")]
    pub dialect: String,
    /// Catalog of the names in the query that name none.
    pub default_catalog: String,
    /// Schema of the names in the query that name none.
    pub default_schema: String,
    /// Names of the columns; empty: those of the query.
    pub columns: Vec<String>,
    pub comment: Option<String>,
}

/// Views of earlier versions name none.
fn first_dialect() -> String {
    "ansi".to_owned()
}

/// All tables at one moment. Immutable: each change gives a copy, which shares what is not changed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: u64,
    defaults: Arc<Defaults>,
    catalogs: BTreeMap<String, Arc<CatalogState>>,
    notes: Arc<Notes>,
}

#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) catalog: String,
    pub(super) schema: String,
}

/// The id tells a catalog from an earlier one of the same name.
#[derive(Debug, Clone)]
pub(super) struct CatalogState {
    pub(super) id: Uuid,
    pub(super) schemas: BTreeMap<String, Arc<SchemaState>>,
}

/// The id tells a schema from an earlier one of the same name.
#[derive(Debug, Clone)]
pub(super) struct SchemaState {
    pub(super) id: Uuid,
    pub(super) entries: BTreeMap<String, Entry>,
}

impl Snapshot {
    pub(super) fn first(defaults: Defaults) -> Self {
        let catalog = CatalogState::with_schema(&defaults.schema);
        let catalogs = BTreeMap::from([(defaults.catalog.clone(), Arc::new(catalog))]);
        Self { version: 0, defaults: Arc::new(defaults), catalogs, notes: Arc::default() }
    }

    /// Nothing at all: what a new data folder has.
    pub(super) fn empty(defaults: Defaults) -> Self {
        Self::restored(defaults, BTreeMap::new(), Notes::default())
    }

    pub(super) fn restored(
        defaults: Defaults,
        catalogs: BTreeMap<String, Arc<CatalogState>>,
        notes: Notes,
    ) -> Self {
        Self { version: 0, defaults: Arc::new(defaults), catalogs, notes: Arc::new(notes) }
    }

    /// The same with the catalog and the schema that are always there, though what was restored has none that can be read.
    pub(super) fn complete(mut self) -> Self {
        let schema = self.defaults.schema.clone();
        let catalog = self.catalogs.entry(self.defaults.catalog.clone());
        let catalog = catalog.or_insert_with(|| Arc::new(CatalogState::with_schema(&schema)));
        if !catalog.schemas.contains_key(&schema) {
            Arc::make_mut(catalog).schemas.insert(schema, Arc::new(SchemaState::empty()));
        }
        self
    }

    pub fn notes(&self) -> &Arc<Notes> {
        &self.notes
    }

    pub fn with_notes(
        &self,
        changes: impl IntoIterator<Item = (String, Option<String>)>,
    ) -> Result<Self, Error> {
        Ok(Self { notes: self.notes.changed(changes)?, ..self.clone() })
    }

    /// What is left for somebody to see: the entries as `entry` shows them, and of the catalogs and schemas those with
    /// something in them, or that `schema` shows. Never to be committed.
    pub fn seen(
        &self,
        entry: impl Fn(&EntryName, &Entry) -> Option<Entry>,
        schema: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let mut catalogs = BTreeMap::new();
        for (catalog, state) in &self.catalogs {
            let mut schemas = BTreeMap::new();
            for (name, there) in &state.schemas {
                let entries = there.entries.iter().filter_map(|(table, found)| {
                    Some((table.clone(), entry(&EntryName::new(catalog, name, table), found)?))
                });
                let entries: BTreeMap<String, Entry> = entries.collect();
                if !entries.is_empty() || schema(catalog, name) {
                    schemas.insert(name.clone(), Arc::new(SchemaState { id: there.id, entries }));
                }
            }
            if !schemas.is_empty() {
                catalogs.insert(catalog.clone(), Arc::new(CatalogState { id: state.id, schemas }));
            }
        }
        Self { catalogs, ..self.clone() }
    }

    /// The same without the rows of its tables. Never to be committed.
    pub fn without_rows(&self) -> Self {
        let without = |_: &EntryName, entry: &Entry| match entry {
            Entry::Table(table) => Some(Entry::Table(Arc::new(table.without_rows()))),
            other => Some(other.clone()),
        };
        self.seen(without, |_, _| true)
    }

    /// Whether both have the same contents, but perhaps for rows of tables.
    pub fn is_same_but_for_rows(&self, other: &Self) -> bool {
        self.notes.same(&other.notes) && self.has_definitions_of(other)
    }

    /// Whether both have the same names and definitions, but perhaps other notes.
    pub fn has_definitions_of(&self, other: &Self) -> bool {
        let are_alike = |one: &Entry, other: &Entry| match (one, other) {
            (Entry::Table(one), Entry::Table(other)) => {
                one.id() == other.id() && Arc::ptr_eq(one.definition(), other.definition())
            }
            (one, other) => one.same(other),
        };
        all_children(&self.catalogs, &other.catalogs, |one, other| {
            one.id == other.id
                && all_children(&one.schemas, &other.schemas, |one, other| {
                    one.id == other.id && all_children(&one.entries, &other.entries, are_alike)
                })
        })
    }

    /// The names of everything in it, with the ids by which what was renamed is known again: catalogs and schemas with
    /// the parts of a name that they have.
    pub fn names_and_ids(&self) -> BTreeMap<Vec<&str>, Uuid> {
        let mut names = BTreeMap::new();
        for (catalog, state) in &self.catalogs {
            names.insert(vec![catalog.as_str()], state.id);
            for (schema, state) in &state.schemas {
                names.insert(vec![catalog.as_str(), schema.as_str()], state.id);
                for (name, entry) in &state.entries {
                    names.insert(vec![catalog.as_str(), schema.as_str(), name.as_str()], Node::id(entry));
                }
            }
        }
        names
    }

    pub fn tables(&self) -> impl Iterator<Item = (EntryName, &Arc<Table>)> {
        self.entries(|entry| match entry {
            Entry::Table(table) => Some(table),
            Entry::View(_) | Entry::External(_) | Entry::Broken(_) => None,
        })
    }

    fn entries<'a, T>(&'a self, wanted: fn(&'a Entry) -> Option<T>) -> impl Iterator<Item = (EntryName, T)> {
        self.catalogs.iter().flat_map(move |(catalog, state)| {
            state.schemas.iter().flat_map(move |(schema, state)| {
                state.entries.iter().filter_map(move |(name, entry)| {
                    let found = wanted(entry)?;
                    Some((EntryName::new(catalog, schema, name), found))
                })
            })
        })
    }

    /// Whether a materialized view shows its tables as they are here; `None` where that is not known.
    pub fn is_fresh(&self, view: &Materialized) -> Option<bool> {
        let shows = |source: &SourceVersion| {
            self.table(source.table).is_some_and(|table| table.has_rows_of(source.version))
        };
        (!view.sources.is_empty()).then(|| view.sources.iter().all(shows))
    }

    pub fn table(&self, id: Uuid) -> Option<&Arc<Table>> {
        let schemas = self.catalogs.values().flat_map(|catalog| catalog.schemas.values());
        schemas.flat_map(|schema| schema.entries.values()).find_map(|entry| match entry {
            Entry::Table(table) if table.id() == id => Some(table),
            _ => None,
        })
    }

    pub fn commit_views(&self) -> Vec<(EntryName, Arc<Table>)> {
        let is_one =
            |table: &Table| table.definition().materialized.as_ref().is_some_and(|view| view.on_commit);
        let views = self.entries(|entry| match entry {
            Entry::Table(table) if table.definition().materialized.is_some() => Some(table),
            _ => None,
        });
        views.filter(|(_, table)| is_one(table)).map(|(name, table)| (name, Arc::clone(table))).collect()
    }

    pub fn externals(&self) -> impl Iterator<Item = (EntryName, &Arc<External>)> {
        self.entries(|entry| match entry {
            Entry::External(external) => Some(external),
            Entry::Table(_) | Entry::View(_) | Entry::Broken(_) => None,
        })
    }

    pub fn broken(&self) -> impl Iterator<Item = (EntryName, &Arc<Broken>)> {
        self.entries(|entry| match entry {
            Entry::Broken(broken) => Some(broken),
            Entry::Table(_) | Entry::View(_) | Entry::External(_) => None,
        })
    }

    /// Number of the commit that published it; changed copies keep that of their origin.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn catalogs(&self) -> Vec<String> {
        self.catalogs.keys().cloned().collect()
    }

    /// Names of the schemas of a catalog, sorted; none if there is no such catalog.
    pub fn schemas(&self, catalog: &str) -> Vec<String> {
        self.catalogs.get(catalog).map_or_else(Vec::new, |catalog| catalog.schemas.keys().cloned().collect())
    }

    /// How many catalogs there are, schemas in all of them, and tables and views in all of those.
    pub fn counts(&self) -> [usize; 3] {
        let schemas = self.catalogs.values().flat_map(|catalog| catalog.schemas.values());
        schemas.fold([self.catalogs.len(), 0, 0], |[catalogs, schemas, entries], schema| {
            [catalogs, schemas + 1, entries + schema.entries.len()]
        })
    }

    pub fn has_catalog(&self, catalog: &str) -> bool {
        self.catalogs.contains_key(catalog)
    }

    pub fn has_schema(&self, catalog: &str, schema: &str) -> bool {
        self.schema(catalog, schema).is_some()
    }

    /// Names of the tables and views of a schema, sorted; none if there is no such schema.
    pub fn names(&self, catalog: &str, schema: &str) -> Vec<String> {
        self.schema(catalog, schema).map_or_else(Vec::new, |schema| schema.entries.keys().cloned().collect())
    }

    pub fn entry(&self, name: &EntryName) -> Option<&Entry> {
        self.schema(&name.catalog, &name.schema)?.entries.get(&name.name)
    }

    /// Makes a catalog, and in it the schema that is the store's default schema.
    pub fn create_catalog(&self, name: &str) -> Result<Self, Error> {
        if self.has_catalog(name) {
            return Err(Error::Exists { what: What::Catalog, name: name.to_owned() });
        }
        definition_check::check_name(What::Catalog, name)?;
        let mut changed = self.clone();
        let catalog = CatalogState::with_schema(&self.defaults.schema);
        changed.catalogs.insert(name.to_owned(), Arc::new(catalog));
        Ok(changed)
    }

    /// Drops a catalog, but never the default one. Without `cascade` it may hold only its first schema, empty.
    pub fn drop_catalog(&self, name: &str, cascade: bool) -> Result<Self, Error> {
        let Some(catalog) = self.catalogs.get(name) else {
            return Err(Error::Missing { what: What::Catalog, name: name.to_owned() });
        };
        if name == self.defaults.catalog {
            return Err(Error::IsDefault { what: What::Catalog, name: name.to_owned() });
        }
        let mut schemas = catalog.schemas.iter();
        if !cascade
            && !schemas.all(|(name, schema)| *name == self.defaults.schema && schema.entries.is_empty())
        {
            return Err(Error::NotEmpty { what: What::Catalog, name: name.to_owned() });
        }
        let mut changed = self.clone();
        changed.catalogs.remove(name);
        Ok(changed)
    }

    pub fn create_schema(&self, catalog: &str, name: &str) -> Result<Self, Error> {
        if self.has_schema(catalog, name) {
            return Err(Error::Exists { what: What::Schema, name: format!("{catalog}.{name}") });
        }
        definition_check::check_name(What::Schema, name)?;
        let mut changed = self.clone();
        changed.catalog_mut(catalog)?.schemas.insert(name.to_owned(), Arc::new(SchemaState::empty()));
        Ok(changed)
    }

    /// Drops a schema, but never the default schema of the default catalog. Without `cascade` it must be empty.
    pub fn drop_schema(&self, catalog: &str, name: &str, cascade: bool) -> Result<Self, Error> {
        let mut changed = self.clone();
        let whole_name = || format!("{catalog}.{name}");
        let schemas = &mut changed.catalog_mut(catalog)?.schemas;
        let Some(schema) = schemas.remove(name) else {
            return Err(Error::Missing { what: What::Schema, name: whole_name() });
        };
        if catalog == self.defaults.catalog && name == self.defaults.schema {
            return Err(Error::IsDefault { what: What::Schema, name: whole_name() });
        }
        if !cascade && !schema.entries.is_empty() {
            return Err(Error::NotEmpty { what: What::Schema, name: whole_name() });
        }
        Ok(changed)
    }

    /// Adds the entry, or puts it in the place of the one that has the name. Fails with [`Error::TooMuch`] for one that is
    /// new or has another definition, and could not be kept.
    pub fn with_entry(&self, name: &EntryName, entry: Entry) -> Result<Self, Error> {
        entry.check(name, self.entry(name))?;
        let mut changed = self.clone();
        changed.schema_mut(name)?.entries.insert(name.name.clone(), entry);
        Ok(changed)
    }

    pub fn without_entry(&self, name: &EntryName) -> Result<Self, Error> {
        let mut changed = self.clone();
        match changed.schema_mut(name)?.entries.remove(&name.name) {
            Some(_) => Ok(changed),
            None => Err(Error::Missing { what: What::Table, name: name.to_string() }),
        }
    }

    /// Puts another state of a table in its place, if it is there.
    pub(super) fn replace(&mut self, name: &EntryName, entry: Entry) {
        if let Some(place) = self.schema_mut(name).ok().and_then(|schema| schema.entries.get_mut(&name.name))
        {
            *place = entry;
        }
    }

    /// The snapshot after the head in which the head's catalogs have the changes between base and changed.
    pub(super) fn merge(sides: Sides<'_, Self>) -> Result<Self, Error> {
        let catalogs = merge_children(sides.part(|snapshot| &snapshot.catalogs), "")?;
        let notes = catalog_kv::merge(&sides.part(|snapshot| &snapshot.notes))?;
        let (version, defaults) = (sides.head.version + 1, Arc::clone(&sides.head.defaults));
        Ok(Self { version, defaults, catalogs, notes })
    }

    /// What a transaction that began with `base` makes of a later state.
    ///
    /// Fails with [`Error::Conflict`] as a commit does.
    pub fn rebased(base: &Arc<Self>, changed: &Arc<Self>, head: &Arc<Self>) -> Result<Arc<Self>, Error> {
        if Arc::ptr_eq(base, head) {
            return Ok(Arc::clone(changed));
        }
        if base.same(changed) {
            return Ok(Arc::clone(head));
        }
        let sides = Sides { base: base.as_ref(), changed: changed.as_ref(), head: head.as_ref() };
        Ok(Arc::new(Self::merge(sides)?.in_place_of(head)))
    }

    /// A changed copy of the head, which is no new version yet.
    pub(super) fn in_place_of(self, head: &Self) -> Self {
        Self { version: head.version, notes: self.notes.changed_since(&head.notes), ..self }
    }

    /// Whether both have the very same contents.
    pub(super) fn same(&self, other: &Self) -> bool {
        all_children(&self.catalogs, &other.catalogs, Node::same) && self.notes.same(&other.notes)
    }

    pub(super) fn catalog_states(&self) -> &BTreeMap<String, Arc<CatalogState>> {
        &self.catalogs
    }

    fn schema(&self, catalog: &str, schema: &str) -> Option<&Arc<SchemaState>> {
        self.catalogs.get(catalog)?.schemas.get(schema)
    }

    fn catalog_mut(&mut self, name: &str) -> Result<&mut CatalogState, Error> {
        let missing = || Error::Missing { what: What::Catalog, name: name.to_owned() };
        self.catalogs.get_mut(name).map(Arc::make_mut).ok_or_else(missing)
    }

    fn schema_mut(&mut self, name: &EntryName) -> Result<&mut SchemaState, Error> {
        let missing =
            || Error::Missing { what: What::Schema, name: format!("{}.{}", name.catalog, name.schema) };
        let catalog = self.catalog_mut(&name.catalog)?;
        catalog.schemas.get_mut(&name.schema).map(Arc::make_mut).ok_or_else(missing)
    }
}

impl Entry {
    /// What was there already, or has the definition that was there, is left in peace.
    fn check(&self, name: &EntryName, there: Option<&Self>) -> Result<(), Error> {
        if there.is_none() {
            let what = if matches!(self, Self::View(_)) { What::View } else { What::Table };
            definition_check::check_name(what, &name.name)?;
        }
        match (self, there) {
            (Self::Table(table), Some(Self::Table(there)))
                if Arc::ptr_eq(table.definition(), there.definition()) =>
            {
                Ok(())
            }
            (Self::Table(table), _) => definition_check::check_table(table.definition()),
            (Self::View(view), _) => definition_check::check_view(view),
            (Self::External(external), _) => definition_check::check_external(external),
            (Self::Broken(_), _) => Ok(()),
        }
    }
}

impl CatalogState {
    fn with_schema(name: &str) -> Self {
        let schemas = BTreeMap::from([(name.to_owned(), Arc::new(SchemaState::empty()))]);
        Self { id: Uuid::new_v4(), schemas }
    }
}

impl SchemaState {
    fn empty() -> Self {
        Self { id: Uuid::new_v4(), entries: BTreeMap::new() }
    }
}
