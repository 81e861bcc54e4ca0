//! Why a cached join cannot answer another one, for EXPLAIN.

use crate::cache::shape::{JoinShape, TableName};
use crate::cache::store::{Store, is_named_like};

/// What a cached join lacks to answer another one of the same tables; the least first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mismatch {
    Columns,
    /// It has conditions that the other one does not have.
    Conditions,
    /// It has another version of this table.
    Version(TableName),
}

impl Store {
    /// What the nearest join lacks, when [`Self::find`] finds none.
    pub(crate) fn near(&self, wanted: &JoinShape, conditions: &[String]) -> Option<Mismatch> {
        let near = self.all().into_iter().filter_map(|join| {
            let there = &join.about.shape;
            if !is_named_like(there, wanted)
                || there.settings != wanted.settings
                || there.tree.without_filters() != wanted.tree.without_filters()
            {
                return None;
            }
            let mut pairs = there.tables.iter().zip(&wanted.tables);
            Some(match pairs.find(|(there, wanted)| there != wanted) {
                Some((changed, _)) => Mismatch::Version(changed.name.clone()),
                None if there.gives(wanted, conditions).is_some() => Mismatch::Columns,
                None => Mismatch::Conditions,
            })
        });
        near.min()
    }
}
