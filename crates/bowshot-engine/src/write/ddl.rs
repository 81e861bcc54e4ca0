//! Changes of the catalog.

use crate::catalog::names::Names;
use crate::write::access::AccessChange;
use crate::write::alter::{self, Alteration, column_of, no_constraint};
use crate::write::enums::TypeChange;
use crate::write::functions::FunctionChange;
use crate::write::models::{self, NewModel};
use crate::write::pipes::PipeDdl;
use crate::write::secrets::SecretChange;
use crate::write::{NewExternal, NewTable, NewView, WhenThere, external, refresh};
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::RefreshMode;
use bowshot_system_catalog::information_schema::{KeyKind, key_name, reference_name};
use bowshot_tables::{Definition, Entry, EntryName, External, Table, TableStore, View, What};
use chrono::Duration;
use std::sync::Arc;
use uuid::Uuid;

/// What all catalogs may hold together, and once more the temporary tables of one session: every snapshot and every
/// listing goes over the names.
const MAX_CATALOGS: usize = 1_000;
const MAX_SCHEMAS: usize = 10_000;
const MAX_ENTRIES: usize = 100_000;

/// What of a table is commented on.
#[derive(Debug, Clone)]
pub(crate) enum Commented {
    Whole,
    Column(String),
    Constraint(String),
}

/// A change of the catalog.
#[derive(Debug, Clone)]
pub(crate) enum Ddl {
    CreateCatalog {
        name: String,
        keep: bool,
    },
    CreateSchema {
        catalog: String,
        name: String,
        keep: bool,
    },
    CreateTable(NewTable),
    CreateView(NewView),
    CreateExternal(NewExternal),
    DropCatalog {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    DropSchema {
        catalog: String,
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    DropTable {
        name: EntryName,
        if_exists: bool,
    },
    DropView {
        name: EntryName,
        if_exists: bool,
    },
    Alter {
        name: EntryName,
        if_exists: bool,
        changes: Vec<Alteration>,
    },
    Comment {
        name: EntryName,
        about: Commented,
        text: Option<String>,
    },
    Truncate {
        names: Vec<EntryName>,
        /// Whether columns number the rows to come from the beginning.
        restarts: bool,
    },
    Optimize {
        name: EntryName,
    },
    Vacuum {
        name: EntryName,
        retain: Duration,
    },
    DropMaterialized {
        name: EntryName,
        if_exists: bool,
    },
    SetRefresh {
        name: EntryName,
        mode: RefreshMode,
    },
    CreateModel(NewModel),
    DropModel {
        name: EntryName,
        if_exists: bool,
    },
    /// Enumerated types.
    Type(TypeChange),
    /// Functions of SQL.
    Function(FunctionChange),
    /// Who may do what.
    Access(AccessChange),
    /// Credentials of sources.
    Secret(SecretChange),
    /// Files that are loaded as they come.
    Pipe(PipeDdl),
    /// One after the other, or none.
    Several(Vec<Ddl>),
}

impl Ddl {
    /// Whether it tells a number: of rows that are gone, of segments that are united, of files that are gone.
    pub(crate) fn counts(&self) -> bool {
        matches!(self, Self::Truncate { .. } | Self::Optimize { .. } | Self::Vacuum { .. })
    }

    /// Whether its plan gives rows: the file of a model that the client sends along.
    pub(crate) fn takes_rows(&self) -> bool {
        matches!(self, Self::CreateModel(new) if new.is_sent())
    }

    /// The state after the change, and the number of rows that it changed.
    pub(crate) fn apply(&self, names: &Names, store: &Stores) -> Result<(Pinned, u64)> {
        let pinned = &names.pinned;
        let changed = match self {
            Self::CreateCatalog { name, keep: true } if pinned.shared().has_catalog(name) => pinned.clone(),
            Self::CreateCatalog { name, .. } => {
                let [catalogs, schemas, _] = pinned.counts(name);
                check_room(catalogs, MAX_CATALOGS, "catalogs")?;
                check_room(schemas, MAX_SCHEMAS, "schemas")?;
                pinned.changed(name, |tables| tables.create_catalog(name))?
            }
            Self::CreateSchema { catalog, name, keep: true } if pinned.has_schema(catalog, name) => {
                pinned.clone()
            }
            Self::CreateSchema { catalog, name, .. } => {
                let [_, schemas, _] = pinned.counts(catalog);
                check_room(schemas, MAX_SCHEMAS, "schemas")?;
                pinned.changed(catalog, |tables| tables.create_schema(catalog, name))?
            }
            Self::CreateTable(new) => create_table(new, names)?,
            Self::CreateView(new) => create_view(new, names)?,
            Self::CreateExternal(new) => external::create(new, names)?,
            Self::DropCatalog { name, if_exists: true, .. } if !pinned.shared().has_catalog(name) => {
                pinned.clone()
            }
            Self::DropCatalog { name, cascade, .. } => {
                check_empty(models::are_in(name, None, names) && !cascade, "catalog", name)?;
                pinned.changed(name, |tables| tables.drop_catalog(name, *cascade))?
            }
            Self::DropSchema { catalog, name, if_exists: true, .. } if !pinned.has_schema(catalog, name) => {
                pinned.clone()
            }
            Self::DropSchema { catalog, name, cascade, .. } => {
                check_empty(models::are_in(catalog, Some(name), names) && !cascade, "schema", name)?;
                pinned.changed(catalog, |tables| tables.drop_schema(catalog, name, *cascade))?
            }
            Self::DropTable { name, if_exists } => drop_table(name, *if_exists, names)?,
            Self::DropView { name, if_exists } => drop_view(name, *if_exists, names)?,
            Self::Alter { name, if_exists, changes } => {
                check_view_columns(name, changes, names)?;
                alter::alter(name, *if_exists, changes, names, store)?
            }
            Self::Comment { name, about, text } => comment((name, about), text.as_ref(), names, store)?,
            Self::DropMaterialized { name, if_exists } => drop_materialized(name, *if_exists, names)?,
            Self::SetRefresh { name, mode } => {
                let table = names.table(name)?;
                let view = refresh::in_mode(refresh::definition(name, &table)?, *mode);
                put(pinned, name, Entry::Table(Arc::new(table.with_materialized(view))))?
            }
            Self::CreateModel(new) => models::create(new, names, None)?,
            Self::DropModel { name, if_exists } => models::drop_model(name, *if_exists, names)?,
            Self::Type(change) => change.apply(names, store)?,
            Self::Function(change) => change.apply(names)?,
            Self::Access(change) => change.apply(pinned)?,
            Self::Secret(change) => change.apply(names)?,
            Self::Pipe(change) => change.apply(names)?,
            Self::Several(changes) => {
                let (mut names, mut rows) = (names.clone(), 0);
                for change in changes {
                    let (pinned, changed) = change.apply(&names, store)?;
                    names.pinned = pinned;
                    rows += changed;
                }
                return Ok((names.pinned, rows));
            }
            Self::Truncate { names: tables, restarts } => return truncate(tables, *restarts, names, store),
            Self::Optimize { name } => return optimize(name, names, store),
            Self::Vacuum { name, retain } => {
                let done = store.of(name).vacuum(names.table(name)?.as_ref(), *retain)?;
                return Ok((pinned.clone(), done.files as u64));
            }
        };
        Ok((changed, 0))
    }
}

fn check_empty(there: bool, what: &str, name: &str) -> Result<()> {
    if !there {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} `{name}` is not empty: there are models, types or functions in it"))
        .with_reason(Reason::DependentObjects)
        .with_hint("drop what is in it first, or add CASCADE"))
}

/// Where new rows of a table are kept.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    pub(crate) shared: Arc<TableStore>,
    pub(crate) own: Arc<TableStore>,
}

impl Stores {
    pub(crate) fn of(&self, name: &EntryName) -> &Arc<TableStore> {
        if name.catalog == bowshot_api::catalog_names::TEMPORARY_CATALOG { &self.own } else { &self.shared }
    }
}

/// The state with a table or view under its name.
///
/// # Errors
/// `LimitReached` for one more than there may be.
pub(crate) fn put(pinned: &Pinned, name: &EntryName, entry: Entry) -> Result<Pinned> {
    if pinned.entry(name).is_none() {
        let [.., entries] = pinned.counts(&name.catalog);
        check_room(entries, MAX_ENTRIES, "tables and views")?;
    }
    pinned.changed(&name.catalog, |tables| tables.with_entry(name, entry))
}

/// The state without what is under this name.
pub(crate) fn without(name: &EntryName, names: &Names) -> Result<Pinned> {
    names.pinned.changed(&name.catalog, |tables| tables.without_entry(name))
}

/// There are as many notes of a kind as there may be.
pub(crate) fn full(limit: usize, what: &str) -> Error {
    Error::new(ErrorKind::LimitReached, format!("there are {limit} {what}, which is the limit"))
        .with_hint(format!("drop {what} that are not needed"))
}

/// Transactions that run side by side do not see what the others make, and may go over the limit together.
fn check_room(there: usize, limit: usize, what: &str) -> Result<()> {
    if there < limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitReached, format!("there are {there} {what}, and the limit is {limit}"))
        .with_hint(format!("drop {what} that are not needed")))
}

/// What is to happen to a name for something new: `None` to leave everything as it is.
pub(crate) fn room_for(
    names: &Names,
    name: &EntryName,
    when_there: WhenThere,
    view: bool,
) -> Result<Option<()>> {
    names.check_new(name)?;
    // Also what is not seen has its name.
    let Some(there) = names.pinned.entry(name) else { return Ok(Some(())) };
    match when_there {
        WhenThere::Keep => Ok(None),
        WhenThere::Replace if (kind(there) == "view") == view => Ok(Some(())),
        WhenThere::Replace => Err(Error::invalid(format!("`{name}` is a {}", kind(there)))
            .with_reason(Reason::WrongObject)
            .with_hint(format!("drop it first: `{} {name}`", dropped_by(there)))),
        WhenThere::Fail => {
            Err(Error::new(ErrorKind::AlreadyExists, format!("{} `{name}` already exists", kind(there)))
                .with_reason(Reason::DuplicateTable)
                .with_hint("use IF NOT EXISTS to keep it, OR REPLACE to make it anew, or another name"))
        }
    }
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Table(table) if table.definition().materialized.is_some() => "materialized view",
        Entry::Table(_) => "table",
        Entry::View(_) => "view",
        Entry::External(_) => "table of files",
        Entry::Broken(broken) if broken.what() == What::View => "view",
        Entry::Broken(_) => "table",
    }
}

/// The statement that drops it.
fn dropped_by(entry: &Entry) -> String {
    match entry {
        Entry::External(_) => "DROP TABLE".to_owned(),
        other => format!("DROP {}", kind(other).to_uppercase()),
    }
}

fn create_table(new: &NewTable, names: &Names) -> Result<Pinned> {
    match room_for(names, &new.name, new.when_there, false)? {
        Some(()) => put(&names.pinned, &new.name, Entry::Table(Arc::new(Table::new(new.definition.clone())))),
        None => Ok(names.pinned.clone()),
    }
}

fn create_view(new: &NewView, names: &Names) -> Result<Pinned> {
    match room_for(names, &new.name, new.when_there, true)? {
        Some(()) => put(&names.pinned, &new.name, Entry::View(Arc::new(new.view.clone()))),
        None => Ok(names.pinned.clone()),
    }
}

/// A materialized view has the columns of its query: by their places it answers queries of its tables.
fn check_view_columns(name: &EntryName, changes: &[Alteration], names: &Names) -> Result<()> {
    use Alteration::{AddColumn, DropColumn, SetType};
    let Some(Entry::Table(table)) = names.entry(name) else { return Ok(()) };
    let changes_columns =
        |change: &Alteration| matches!(change, AddColumn(_) | DropColumn { .. } | SetType { .. });
    if table.definition().materialized.is_none() || !changes.iter().any(changes_columns) {
        return Ok(());
    }
    Err(Error::invalid(format!("`{name}` is a materialized view: it has the columns of its query"))
        .with_reason(Reason::WrongObject)
        .with_hint("make it anew with `CREATE OR REPLACE MATERIALIZED VIEW … AS …`"))
}

fn drop_table(name: &EntryName, if_exists: bool, names: &Names) -> Result<Pinned> {
    if if_exists && names.is_nothing(name) {
        return Ok(names.pinned.clone());
    }
    let goes = match names.entry(name) {
        Some(Entry::Broken(broken)) => broken.what() == What::Table,
        Some(Entry::External(_)) => true,
        _ => false,
    };
    if goes {
        return without(name, names);
    }
    let table = names.table(name).map_err(|error| match names.entry(name) {
        Some(Entry::View(_)) => error.with_hint(format!("use `DROP VIEW {name}`")),
        _ => error,
    })?;
    if table.definition().materialized.is_some() {
        return Err(Error::invalid(format!("`{name}` is a materialized view"))
            .with_reason(Reason::WrongObject)
            .with_hint(format!("use `DROP MATERIALIZED VIEW {name}`")));
    }
    without(name, names)
}

fn drop_materialized(name: &EntryName, if_exists: bool, names: &Names) -> Result<Pinned> {
    match names.entry(name) {
        Some(Entry::Table(table)) if table.definition().materialized.is_some() => without(name, names),
        Some(there) => Err(Error::invalid(format!("`{name}` is a {}", kind(there)))
            .with_reason(Reason::WrongObject)
            .with_hint(format!("use `{} {name}`", dropped_by(there)))),
        None if if_exists => Ok(names.pinned.clone()),
        None => Err(Error::not_found(format!("materialized view `{name}` not found"))
            .with_reason(Reason::UndefinedTable)),
    }
}

fn drop_view(name: &EntryName, if_exists: bool, names: &Names) -> Result<Pinned> {
    match names.entry(name) {
        Some(Entry::View(_) | Entry::External(_)) => without(name, names),
        Some(Entry::Broken(broken)) if broken.what() == What::View => without(name, names),
        Some(Entry::Table(_) | Entry::Broken(_)) => {
            Err(Error::invalid(format!("`{name}` is a table, not a view"))
                .with_reason(Reason::WrongObject)
                .with_hint(format!("use `DROP TABLE {name}`")))
        }
        None if if_exists => Ok(names.pinned.clone()),
        None => Err(Error::not_found(format!("view `{name}` not found")).with_reason(Reason::UndefinedTable)),
    }
}

fn truncate(tables: &[EntryName], restarts: bool, names: &Names, stores: &Stores) -> Result<(Pinned, u64)> {
    let (mut pinned, mut rows) = (names.pinned.clone(), 0);
    for name in tables {
        let table = names.table(name)?;
        names.pinned.note_read(name);
        rows += table.rows();
        let mut empty = table.truncate();
        if restarts && !table.definition().identities.is_empty() {
            let mut definition = table.definition().as_ref().clone();
            definition.identities.iter_mut().for_each(|identity| identity.id = Uuid::new_v4());
            empty = empty.redefine(stores.of(name), definition, true, |rows| Ok(rows.clone()))?;
        }
        pinned = put(&pinned, name, Entry::Table(Arc::new(empty)))?;
    }
    Ok((pinned, rows))
}

fn optimize(name: &EntryName, names: &Names, stores: &Stores) -> Result<(Pinned, u64)> {
    let (table, done) = names.table(name)?.optimized(stores.of(name))?;
    if done.before == 0 {
        return Ok((names.pinned.clone(), 0));
    }
    Ok((put(&names.pinned, name, Entry::Table(Arc::new(table)))?, done.before as u64))
}

fn comment(
    (name, about): (&EntryName, &Commented),
    text: Option<&String>,
    names: &Names,
    store: &Stores,
) -> Result<Pinned> {
    if let (Some(Entry::View(view)), Commented::Whole) = (names.entry(name), about) {
        let view = View { comment: text.cloned(), ..view.as_ref().clone() };
        return put(&names.pinned, name, Entry::View(Arc::new(view)));
    }
    if let (Some(Entry::External(external)), Commented::Whole) = (names.entry(name), about) {
        let external = External { comment: text.cloned(), ..external.as_ref().clone() };
        return put(&names.pinned, name, Entry::External(Arc::new(external)));
    }
    let table = names.table(name)?;
    let mut definition = table.definition().as_ref().clone();
    let said = match about {
        Commented::Whole => &mut definition.comment,
        Commented::Column(column) => &mut column_of(&mut definition, name, column)?.comment,
        Commented::Constraint(constraint) => constraint_comment(&mut definition, name, constraint)
            .ok_or_else(|| no_constraint(name, constraint))?,
    };
    *said = text.cloned();
    let table = table.redefine(store.of(name), definition, true, |rows| Ok(rows.clone()))?;
    put(&names.pinned, name, Entry::Table(Arc::new(table)))
}

/// What is said about a constraint, by the name that it has in the catalog.
fn constraint_comment<'a>(
    definition: &'a mut Definition,
    table: &EntryName,
    name: &str,
) -> Option<&'a mut Option<String>> {
    let primary = definition.primary_key.iter_mut().map(|key| (key, KeyKind::Primary));
    let unique = definition.unique.iter_mut().map(|key| (key, KeyKind::Unique));
    if let Some((key, _)) = primary.chain(unique).find(|(key, kind)| key_name(table, key, *kind) == name) {
        return Some(&mut key.comment);
    }
    if let Some(check) = definition.checks.iter_mut().find(|check| check.name == name) {
        return Some(&mut check.comment);
    }
    let mut references = definition.references.iter_mut();
    references.find(|other| reference_name(table, other) == name).map(|found| &mut found.comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_that_fits_is_made_and_the_next_one_refused() {
        check_room(MAX_CATALOGS - 1, MAX_CATALOGS, "catalogs").expect("there is room for one");
        let error = check_room(MAX_CATALOGS, MAX_CATALOGS, "catalogs").expect_err("there is none");
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert_eq!(error.message(), "there are 1000 catalogs, and the limit is 1000");
    }
}
