//! What a transaction has read that nobody else may have changed when it commits.

use super::{EntryName, Snapshot, Table};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Debug, Default, Clone)]
pub struct Reads {
    /// Names under which all must be as it was when the transaction began.
    pub names: BTreeSet<EntryName>,
    pub rows: Vec<SeenRows>,
}

#[derive(Debug, Clone)]
pub struct SeenRows {
    pub table: Arc<Table>,
    /// Where they are. `None` for all rows.
    pub addresses: Option<Vec<u64>>,
    /// A later state that has them.
    pub checked: Option<Arc<Table>>,
}

impl Reads {
    /// Whether no row was changed or deleted up to this state, which looks up each table once.
    pub(super) fn has_rows_in(&self, state: &Snapshot) -> bool {
        let mut tables = HashMap::new();
        self.rows.iter().all(|rows| {
            let id = rows.table.id();
            tables.entry(id).or_insert_with(|| state.table(id)).is_some_and(|now| rows.are_in(now))
        })
    }
}

impl SeenRows {
    pub fn are_in(&self, now: &Table) -> bool {
        now.has_all_rows_of(self.checked.as_ref().unwrap_or(&self.table))
            || self.addresses.as_ref().is_some_and(|places| now.has_rows_at(places, &self.table))
    }
}
