//! The tables of one session: those that everybody shares, and its own. A commit shows the changes of both, or of neither.

use crate::snapshot::Pinned;
use bowshot_api::Result;
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_tables::{Snapshot, TableStore};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// A commit of the shared and the temporary tables of one session. Only this session changes its own tables.
#[derive(Debug)]
pub struct SessionTables {
    pub shared: Arc<TableStore>,
    pub own: Arc<TableStore>,
    /// Held alone by a commit that touches the session's own tables, together by those that do not.
    turn: RwLock<()>,
    /// What the session sees while a commit over both sides is on its way: the state before it. Locked for an instant.
    before: Mutex<Option<Pinned>>,
}

impl SessionTables {
    pub fn new(shared: Arc<TableStore>, own: Arc<TableStore>) -> Self {
        Self { shared, own, turn: RwLock::default(), before: Mutex::default() }
    }

    /// The tables as they are now.
    pub fn pin(&self) -> Pinned {
        // Both sides are taken under the lock, so that no commit can begin between them.
        let before = self.before.lock();
        before.clone().unwrap_or_else(|| self.newest())
    }

    /// The newest state, and what a transaction that began with `base` makes of it.
    ///
    /// # Errors
    /// `Conflict` when it has changed what another one has changed since.
    pub fn rebased(&self, base: &Pinned, changed: &Pinned) -> Result<[Pinned; 2]> {
        let newest = self.pin();
        let shared = Snapshot::rebased(base.shared(), changed.shared(), newest.shared())?;
        let own = Snapshot::rebased(base.own(), changed.own(), newest.own())?;
        Ok([newest.moved_on_from(base), Pinned::new(shared, own).noting_as(changed)])
    }

    /// Makes the changes between two states visible, all at once. Blocks while the store writes.
    ///
    /// # Errors
    /// `Conflict` when another one was first on either side, or has changed what a serializable transaction has read; then
    /// nothing has changed on both.
    pub fn commit(&self, base: &Pinned, changed: &Pinned) -> Result<()> {
        let reads = base.reads();
        let reads_own = reads.names.iter().any(|name| name.catalog == TEMPORARY_CATALOG);
        if Arc::ptr_eq(base.own(), changed.own()) && !reads_own {
            let _turn = self.turn.read();
            self.shared.commit_serializable(base.shared(), changed.shared(), reads)?;
            return Ok(());
        }
        let _turn = self.turn.write();
        // Nobody else commits to this side during the turn.
        self.own.check_unchanged(base.own(), &reads.names)?;
        let mut both = Both::begin(self);
        // First the side that is easily put back.
        self.own.commit(base.own(), changed.own())?;
        self.shared.commit_serializable(base.shared(), changed.shared(), reads)?;
        both.kept = true;
        Ok(())
    }

    fn newest(&self) -> Pinned {
        Pinned::new(self.shared.snapshot(), self.own.snapshot())
    }
}

/// A commit over both sides. Until it ends, the session sees what was before; if it fails, its own side is put back.
struct Both<'a> {
    tables: &'a SessionTables,
    before: Pinned,
    kept: bool,
}

impl<'a> Both<'a> {
    fn begin(tables: &'a SessionTables) -> Self {
        let mut place = tables.before.lock();
        let before = tables.newest();
        *place = Some(before.clone());
        Self { tables, before, kept: false }
    }
}

impl Drop for Both<'_> {
    fn drop(&mut self) {
        let mut place = self.tables.before.lock();
        if !self.kept {
            self.tables.own.reset(self.before.own());
        }
        *place = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Isolation;
    use bowshot_api::ErrorKind;
    use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
    use bowshot_tables::{Column, Definition, Entry, EntryName, Table};
    use datafusion::arrow::datatypes::{DataType, Field};

    fn tables() -> SessionTables {
        let store = |catalog| TableStore::in_memory(catalog, DEFAULT_SCHEMA, 1 << 20);
        SessionTables::new(store(DEFAULT_CATALOG), store(TEMPORARY_CATALOG))
    }

    fn shared(name: &str) -> EntryName {
        EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, name)
    }

    fn own(name: &str) -> EntryName {
        EntryName::new(TEMPORARY_CATALOG, DEFAULT_SCHEMA, name)
    }

    fn with(state: &Pinned, name: &EntryName) -> Pinned {
        let field = Arc::new(Field::new("a", DataType::Int64, true));
        let columns = vec![Column { field, default: None, comment: None }];
        let definition = Definition { columns, ..Definition::default() };
        let entry = Entry::Table(Arc::new(Table::new(definition)));
        state.changed(&name.catalog, |tables| tables.with_entry(name, entry)).expect("changes")
    }

    #[test]
    fn a_conflict_on_either_side_leaves_both_as_they_were() {
        for contested in [shared("t"), own("t")] {
            let tables = tables();
            let base = tables.pin();
            tables.commit(&base, &with(&base, &contested)).expect("the first one wins");
            let changed = with(&with(&base, &shared("t")), &own("t"));
            let error = tables.commit(&base, &changed).expect_err("somebody was first");
            assert_eq!(error.kind(), ErrorKind::Conflict, "{contested}: {error}");
            let now = tables.pin();
            for name in [shared("t"), own("t")] {
                assert_eq!(now.entry(&name).is_some(), name == contested, "{name} after {contested}");
            }
        }
    }

    #[test]
    fn a_commit_shows_both_sides_and_the_next_one_goes_on_from_there() {
        let tables = tables();
        for name in ["t", "u"] {
            let base = tables.pin();
            tables.commit(&base, &with(&with(&base, &shared(name)), &own(name))).expect("commits");
        }
        let now = tables.pin();
        assert!([shared("t"), own("t"), shared("u"), own("u")].iter().all(|name| now.entry(name).is_some()));
    }

    #[test]
    fn a_serializable_commit_needs_what_it_has_read_on_both_sides() {
        for read in [shared("t"), own("t")] {
            let tables = tables();
            let [first, second] = [(); 2].map(|()| tables.pin().isolated(Isolation::Serializable));
            first.note_read(&read);
            second.note_read(&shared("else"));
            tables.commit(&second, &with(&second, &read)).expect("nobody changed what it has read");
            let error =
                tables.commit(&first, &with(&first, &shared("u"))).expect_err("it has read the table");
            assert_eq!(error.kind(), ErrorKind::Conflict, "{read}: {error}");
            assert!(tables.pin().entry(&shared("u")).is_none());
        }
    }

    #[test]
    fn while_it_lasts_the_session_sees_what_was_before() {
        let tables = tables();
        let base = tables.pin();
        let both = Both::begin(&tables);
        tables.own.commit(base.own(), with(&base, &own("t")).own()).expect("commits");
        assert!(tables.pin().entry(&own("t")).is_none());
        drop(both);
        assert!(tables.pin().entry(&own("t")).is_none(), "it was not kept");
    }
}
