//! What a transaction has read that nobody else may have changed when it commits.

use super::{EntryName, Snapshot, Table};
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default, Clone)]
pub struct Reads {
    /// Names under which all must be as it was when the transaction began.
    pub names: BTreeSet<EntryName>,
    pub rows: Vec<SeenRows>,
}

/// Rows of a table, as they were.
#[derive(Debug, Clone)]
pub struct SeenRows {
    pub table: Arc<Table>,
    /// Where they are. `None` for all rows.
    pub addresses: Option<Vec<u64>>,
}

impl SeenRows {
    /// Whether none of them was changed or deleted up to this state.
    pub fn are_in(&self, state: &Snapshot) -> bool {
        state.table(self.table.id()).is_some_and(|now| {
            now.has_all_rows_of(&self.table)
                || self.addresses.as_ref().is_some_and(|places| now.has_rows_at(places, &self.table))
        })
    }
}
