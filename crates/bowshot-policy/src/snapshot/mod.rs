//! What one statement sees of the tables that Bowshot writes: one snapshot of those that everybody shares, one of those
//! that belong to the session alone.

pub mod commit;
pub mod input;

use bowshot_api::Result;
use bowshot_api::catalog_names::TEMPORARY_CATALOG;
use bowshot_tables::{Entry, EntryName, Error, Notes, Reads, SeenRows, Snapshot};
use input::StreamedTable;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of tables, which all clones of a state add to.
type NameSet = Arc<Mutex<BTreeSet<EntryName>>>;

/// What a transaction is sure of when it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each of its statements has read what was committed when it began.
    ReadCommitted,
    /// All that it has read was of one moment.
    Snapshot,
    /// It is as if all that write had run one after the other.
    Serializable,
}

/// The state of all tables at one moment. Cheap to clone; changes make a new one.
#[derive(Debug, Clone)]
pub struct Pinned {
    shared: Arc<Snapshot>,
    own: Arc<Snapshot>,
    /// Rows that come along with the statement.
    input: Option<Arc<StreamedTable>>,
    /// Which names were looked up in it, where somebody wants to know.
    found: Option<NameSet>,
    /// What a serializable transaction has read in it and in what was made of it.
    reads: Option<NameSet>,
    /// Rows that a transaction has locked to read them.
    watched: Arc<[SeenRows]>,
    /// The rules by which the first statement of its transaction was checked, where that has moved on since.
    first_rules: Option<Arc<Notes>>,
}

impl Pinned {
    pub fn new(shared: Arc<Snapshot>, own: Arc<Snapshot>) -> Self {
        Self {
            shared,
            own,
            input: None,
            found: None,
            reads: None,
            watched: Arc::default(),
            first_rules: None,
        }
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
    pub fn noting(&self) -> Self {
        Self { found: Some(Arc::default()), ..self.clone() }
    }

    /// The same tables in another state, and the same notes.
    pub fn noting_as(self, other: &Self) -> Self {
        let (found, reads) = (other.found.clone(), other.reads.clone());
        Self { found, reads, watched: Arc::clone(&other.watched), ..self }
    }

    /// The same for a commit before which nobody may have changed these rows.
    #[must_use]
    pub fn watching(self, rows: Vec<SeenRows>) -> Self {
        Self { watched: rows.into(), ..self }
    }

    /// The same for a transaction that began with `base`, which is checked by the rules of then when it commits.
    #[must_use]
    pub(crate) fn moved_on_from(self, base: &Self) -> Self {
        Self { first_rules: Some(Arc::clone(base.first_rules())), ..self.noting_as(base) }
    }

    /// The rules by which the first statement of its transaction was checked.
    pub(crate) fn first_rules(&self) -> &Arc<Notes> {
        self.first_rules.as_ref().unwrap_or_else(|| self.shared.notes())
    }

    /// The state that a transaction begins with.
    #[must_use]
    pub fn isolated(self, isolation: Isolation) -> Self {
        let reads = (isolation == Isolation::Serializable).then(Arc::default);
        Self { reads, ..self }
    }

    /// Notes that a name was looked up.
    pub fn note(&self, name: &EntryName) {
        insert(self.found.as_ref(), name);
    }

    /// Notes that rows are read: what a plan says depends on all that is under the name.
    pub fn note_read(&self, name: &EntryName) {
        self.note(name);
        insert(self.reads.as_ref(), name);
    }

    /// The tables that were looked up.
    pub fn noted(&self) -> BTreeSet<EntryName> {
        all(self.found.as_ref())
    }

    /// What must not have changed when a transaction that began with this state writes.
    pub fn reads(&self) -> Reads {
        Reads { names: all(self.reads.as_ref()), rows: self.watched.to_vec() }
    }

    /// Whether a serializable transaction wants to know what is read.
    pub fn is_serializable(&self) -> bool {
        self.reads.is_some()
    }

    /// The tables that everybody sees.
    pub fn shared(&self) -> &Arc<Snapshot> {
        &self.shared
    }

    /// The tables of the session alone.
    pub fn own(&self) -> &Arc<Snapshot> {
        &self.own
    }

    /// Whether this is the very same state, and belongs to the same transaction if that one is serializable: a plan of another
    /// one has noted its tables elsewhere.
    pub fn is_same(&self, other: &Self) -> bool {
        let reads = match (&self.reads, &other.reads) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        reads && Arc::ptr_eq(&self.shared, &other.shared) && Arc::ptr_eq(&self.own, &other.own)
    }

    /// The same without the rows of its tables, for nobody's notes.
    pub fn without_rows(&self) -> Self {
        Self::new(Arc::new(self.shared.without_rows()), Arc::new(self.own.without_rows()))
    }

    /// Whether names stand for the same in both, and only rows of tables are others.
    pub fn is_same_but_for_rows(&self, other: &Self) -> bool {
        self.shared.is_same_but_for_rows(&other.shared) && self.own.is_same_but_for_rows(&other.own)
    }

    pub fn entry(&self, name: &EntryName) -> Option<&Entry> {
        self.side(&name.catalog).entry(name)
    }

    pub fn has_schema(&self, catalog: &str, schema: &str) -> bool {
        self.side(catalog).has_schema(catalog, schema)
    }

    /// How many catalogs, schemas, tables and views there are on the side where `catalog` is.
    pub fn counts(&self, catalog: &str) -> [usize; 3] {
        self.side(catalog).counts()
    }

    /// The state after a change of something in `catalog`.
    pub fn changed(
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

fn insert(names: Option<&NameSet>, name: &EntryName) {
    if let Some(names) = names {
        names.lock().insert(name.clone());
    }
}

fn all(names: Option<&NameSet>) -> BTreeSet<EntryName> {
    names.map(|names| names.lock().clone()).unwrap_or_default()
}
