//! What one statement sees of the tables that Bowshot writes: one snapshot of those that everybody shares, one of those
//! that belong to the session alone.

pub(crate) mod commit;
pub(crate) mod input;
pub(crate) mod names;

use bowshot_api::Result;
use bowshot_storage::tables::{Entry, EntryName, Error, Snapshot};
use input::StreamedTable;
use names::TEMPORARY_CATALOG;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The state of all tables at one moment. Cheap to clone; changes make a new one.
#[derive(Debug, Clone)]
pub struct Pinned {
    shared: Arc<Snapshot>,
    own: Arc<Snapshot>,
    /// Rows that come along with the statement.
    input: Option<Arc<StreamedTable>>,
    /// Which names were looked up in it, where somebody wants to know.
    found: Option<Arc<Mutex<BTreeSet<EntryName>>>>,
}

impl Pinned {
    pub(crate) fn new(shared: Arc<Snapshot>, own: Arc<Snapshot>) -> Self {
        Self { shared, own, input: None, found: None }
    }

    /// The same with rows that come along with one statement.
    #[must_use]
    pub fn with_input(self, input: Option<Arc<StreamedTable>>) -> Self {
        Self { input, ..self }
    }

    /// The rows that come along with the statement.
    pub fn input(&self) -> Option<&Arc<StreamedTable>> {
        self.input.as_ref()
    }

    /// The same, and from now on a note of the tables that are looked up in it and in what is made of it.
    pub(crate) fn noting(&self) -> Self {
        Self { found: Some(Arc::default()), ..self.clone() }
    }

    /// The same tables in another state, and the same note.
    pub(crate) fn noting_as(self, other: &Self) -> Self {
        Self { found: other.found.clone(), ..self }
    }

    pub(crate) fn note(&self, name: &EntryName) {
        if let Some(found) = &self.found {
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        }
    }

    /// The tables that were looked up.
    pub(crate) fn noted(&self) -> BTreeSet<EntryName> {
        let found =
            self.found.as_ref().map(|found| found.lock().unwrap_or_else(PoisonError::into_inner).clone());
        found.unwrap_or_default()
    }

    /// The tables that everybody sees.
    pub(crate) fn shared(&self) -> &Arc<Snapshot> {
        &self.shared
    }

    /// The tables of the session alone.
    pub(crate) fn own(&self) -> &Arc<Snapshot> {
        &self.own
    }

    /// Whether this is the very same state.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && Arc::ptr_eq(&self.own, &other.own)
    }

    pub(crate) fn entry(&self, name: &EntryName) -> Option<&Entry> {
        self.side(&name.catalog).entry(name)
    }

    pub(crate) fn has_schema(&self, catalog: &str, schema: &str) -> bool {
        self.side(catalog).has_schema(catalog, schema)
    }

    /// How many catalogs, schemas, tables and views there are on the side where `catalog` is.
    pub(crate) fn counts(&self, catalog: &str) -> [usize; 3] {
        self.side(catalog).counts()
    }

    /// The state after a change of something in `catalog`.
    pub(crate) fn changed(
        &self,
        catalog: &str,
        change: impl FnOnce(&Snapshot) -> Result<Snapshot, Error>,
    ) -> Result<Self> {
        let changed = Arc::new(change(self.side(catalog))?);
        Ok(if catalog == TEMPORARY_CATALOG {
            Self { own: changed, ..self.clone() }
        } else {
            Self { shared: changed, ..self.clone() }
        })
    }

    fn side(&self, catalog: &str) -> &Arc<Snapshot> {
        if catalog == TEMPORARY_CATALOG { &self.own } else { &self.shared }
    }
}
