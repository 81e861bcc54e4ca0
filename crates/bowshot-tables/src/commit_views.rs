//! Materialized views that are refreshed by the commits of their tables (`REFRESH ON COMMIT`). No commit may leave one behind its
//! tables: whoever commits has computed its rows, and what it was computed of must be what is committed.

use super::merge::{Sides, changed_tables};
use super::{Entry, EntryName, Error, Materialized, Snapshot, SourceVersion, Table};
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

/// Checks what a transaction makes of the head: [`Error::NotSerializable`], without a name, where a view would be stale.
pub(super) fn check(sides: &Sides<'_, Snapshot>, merged: &Snapshot) -> Result<(), Error> {
    let views = merged.commit_views();
    if views.is_empty() {
        return Ok(());
    }
    let (touched, redefines) = (touched(sides), !sides.base.is_same_but_for_rows(sides.changed));
    let is_current = |(_, table): &(EntryName, Arc<Table>)| {
        let Some(view) = &table.definition().materialized else { return true };
        shows_tables(sides, (table, view), &touched) && (!redefines || is_meant(sides, (table, view)))
    };
    if views.iter().all(is_current) { Ok(()) } else { Err(Error::NotSerializable) }
}

/// Gives the tables that a refresh within the commit has read the versions that the commit gives them.
pub(super) fn number_sources(next: &mut Snapshot, changed: &[(EntryName, Arc<Table>)]) {
    for (name, _) in changed {
        let Some(Entry::Table(table)) = next.entry(name) else { continue };
        let Some(view) = &table.definition().materialized else { continue };
        if view.sources.iter().all(|source| source.version != SourceVersion::COMMITTING) {
            continue;
        }
        let numbered = |source: &SourceVersion| match next.table(source.table) {
            Some(table) if source.version == SourceVersion::COMMITTING => {
                SourceVersion { version: table.version(), ..*source }
            }
            _ => *source,
        };
        let view = Materialized { sources: view.sources.iter().map(numbered).collect(), ..view.clone() };
        let (version, changed_version) = (table.version(), table.changed_version());
        let table = table.with_materialized(view).numbered(version, changed_version);
        next.replace(name, Entry::Table(Arc::new(table)));
    }
}

/// The tables whose rows or definition the transaction has changed, or that it has made or dropped.
fn touched(sides: &Sides<'_, Snapshot>) -> HashSet<Uuid> {
    let (base, changed) = (sides.base, sides.changed);
    let both = changed_tables(base, changed).into_iter().chain(changed_tables(changed, base));
    let ids = both.map(|(_, table)| table.id());
    ids.filter(|id| !is_alike(base.table(*id), changed.table(*id))).collect()
}

/// Whether the view shows its tables: where the transaction has touched them or the view, the head has all of them as they were,
/// and the view was computed.
fn shows_tables(
    sides: &Sides<'_, Snapshot>,
    (table, view): (&Table, &Materialized),
    touched: &HashSet<Uuid>,
) -> bool {
    let (id, sources) = (table.id(), || view.sources.iter().map(|source| source.table));
    let has_new_rows = sources().any(|source| touched.contains(&source));
    if !has_new_rows && !touched.contains(&id) {
        return true;
    }
    let is_refreshed = match (sides.base.table(id), sides.changed.table(id)) {
        (Some(base), Some(changed)) => !Arc::ptr_eq(base.definition(), changed.definition()),
        (None, changed) => changed.is_some(),
        (Some(_), None) => false,
    };
    (is_refreshed || !has_new_rows)
        && sources().chain([id]).all(|id| is_alike(sides.base.table(id), sides.head.table(id)))
}

/// Whether the query of the view means what it was taken for, though the transaction has changed names or definitions: it has seen
/// the view, and what it has made of the view is of names that are the newest.
fn is_meant(sides: &Sides<'_, Snapshot>, (table, view): (&Table, &Materialized)) -> bool {
    let before = sides.base.table(table.id());
    if before.is_none() && sides.changed.table(table.id()).is_none() {
        return false;
    }
    let before = before.and_then(|before| before.definition().materialized.as_ref());
    let is_known = before.is_some_and(|before| before.on_commit && before.meaning == view.meaning);
    is_known || sides.base.is_same_but_for_rows(sides.head)
}

/// Whether both are the same but for where rows are kept, or are not there.
fn is_alike(one: Option<&Arc<Table>>, other: Option<&Arc<Table>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.same_rows(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
