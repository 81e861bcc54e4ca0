//! What the joins of a store require of a query, in a few bits: rules most queries out before their plans are analysed.

use crate::cache::shape::{JoinShape, Member, Tree, columns_in};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A Bloom filter of column names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ColumnNames(u128);

impl ColumnNames {
    pub(crate) fn add(&mut self, name: &str) {
        self.0 |= 1 << (hashed(name) % u64::from(u128::BITS));
    }

    /// Those of both.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn are_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The columns that a join's conditions compare, those of its outer parts too.
    fn of(tree: &Tree) -> Self {
        let mut names = Self::default();
        tree.conditions.iter().for_each(|text| names.add_all(text));
        for member in &tree.members {
            if let Member::Outer(outer) = member {
                outer.on.iter().for_each(|text| names.add_all(text));
                names = names.with(Self::of(&outer.left)).with(Self::of(&outer.right));
            }
        }
        names
    }

    fn add_all(&mut self, condition: &str) {
        columns_in(condition).iter().for_each(|column| self.add(&column.column));
    }
}

/// For each set of tables with joins, in any version, the columns that each join compares.
#[derive(Debug, Default)]
pub(crate) struct Needs(HashMap<u64, Vec<ColumnNames>>);

impl Needs {
    pub(crate) fn add(&mut self, (tables, compared): (u64, ColumnNames)) {
        let needs = self.0.entry(tables).or_default();
        if !needs.contains(&compared) {
            needs.push(compared);
        }
    }

    /// Whether there are joins of these tables. `tables` is the sum of their [`identity_digest`]s.
    #[cfg(test)]
    pub(crate) fn has(&self, tables: u64) -> bool {
        self.0.contains_key(&tables)
    }

    /// Whether one of these joins may fit a query whose conditions compare at most the columns `compared`.
    pub(crate) fn may_fit(&self, tables: u64, compared: ColumnNames) -> bool {
        let needs = self.0.get(&tables).map(Vec::as_slice).unwrap_or_default();
        needs.iter().any(|needed| needed.are_within(compared))
    }
}

/// What a join of these tables needs.
pub(crate) fn of_join(shape: &JoinShape) -> (u64, ColumnNames) {
    let tables = shape.tables.iter().map(|table| identity_digest(table.identity()));
    (tables.fold(0, u64::wrapping_add), ColumnNames::of(&shape.tree))
}

/// A digest of [`TableKey::identity`](crate::cache::TableKey::identity). Different tables may share it.
pub(crate) fn identity_digest(identity: &str) -> u64 {
    hashed(identity)
}

fn hashed(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
