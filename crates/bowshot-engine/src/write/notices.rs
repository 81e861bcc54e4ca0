//! What a statement on the catalog leaves undone, or finds done already: its client is told, and it succeeds.

use crate::catalog::names::Names;
use crate::write::ddl::Ddl;
use crate::write::{WhenThere, Write};
use bowshot_api::Notice;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Entry, EntryName};

/// The notices of a change that has succeeded: `names` are those before it, `after` is the state that it has made.
pub(crate) fn collect(write: &Write, names: &Names, after: &Pinned) -> Vec<Notice> {
    let mut notices = Vec::new();
    match write {
        Write::Ddl(ddl) => add(ddl, (names, after), &mut notices),
        Write::CreateAs(new) => notices.extend(already_there("table", (&new.name, new.when_there), names)),
        _ => {}
    }
    notices
}

fn add(ddl: &Ddl, (names, after): (&Names, &Pinned), notices: &mut Vec<Notice>) {
    let pinned = &names.pinned;
    let is_nothing = |name: &EntryName| names.entry(name).is_none();
    let missing = |what, name: &str| Some(Notice::Missing(what, name.to_owned()));
    let exists = |what, name: &str| Some(Notice::Exists(what, name.to_owned()));
    let notice = match ddl {
        Ddl::Several(changes) => {
            changes.iter().for_each(|change| add(change, (names, after), notices));
            None
        }
        Ddl::DropTable { name, if_exists: true } if names.is_nothing(name) => missing("table", &name.name),
        Ddl::DropView { name, if_exists: true } if is_nothing(name) => missing("view", &name.name),
        Ddl::DropMaterialized { name, if_exists: true } if is_nothing(name) => {
            missing("materialized view", &name.name)
        }
        Ddl::Function(change) => change.missing(pinned).and_then(|name| missing("function", name)),
        Ddl::Alter { name, if_exists: true, .. } if is_nothing(name) => missing("table", &name.name),
        Ddl::DropSchema { catalog, name, if_exists: true, .. } if !pinned.has_schema(catalog, name) => {
            missing("schema", name)
        }
        Ddl::DropCatalog { name, if_exists: true, .. } if !pinned.shared().has_catalog(name) => {
            missing("catalog", name)
        }
        Ddl::CreateSchema { catalog, name, keep: true } if pinned.has_schema(catalog, name) => {
            exists("schema", name)
        }
        Ddl::CreateCatalog { name, keep: true } if pinned.shared().has_catalog(name) => {
            exists("catalog", name)
        }
        Ddl::CreateView(new) => already_there("view", (&new.name, new.when_there), names),
        Ddl::CreateExternal(new) => already_there("table", (&new.name, new.when_there), names),
        Ddl::CreateTable(new) => already_there("table", (&new.name, new.when_there), names)
            .or_else(|| (!new.definition.references.is_empty()).then_some(Notice::ForeignKeysNotEnforced)),
        Ddl::Alter { name, .. } => {
            (references(after, name) > references(pinned, name)).then_some(Notice::ForeignKeysNotEnforced)
        }
        _ => None,
    };
    notices.extend(notice);
}

/// That something was to be made which is there.
fn already_there(
    what: &'static str,
    (name, when_there): (&EntryName, WhenThere),
    names: &Names,
) -> Option<Notice> {
    let is_there = when_there == WhenThere::Keep && names.pinned.entry(name).is_some();
    is_there.then(|| Notice::Exists(what, name.name.clone()))
}

/// How many keys of other tables a table has.
fn references(pinned: &Pinned, name: &EntryName) -> usize {
    match pinned.entry(name) {
        Some(Entry::Table(table)) => table.definition().references.len(),
        _ => 0,
    }
}
