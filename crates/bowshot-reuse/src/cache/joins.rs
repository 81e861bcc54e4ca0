//! The joins of a store: which of them answer another one, and which make others superfluous.

use crate::cache::Error;
use crate::cache::entry::Entry;
use crate::cache::prediction::is_later;
use crate::cache::shape::{ColumnRef, JoinShape, Match, TableKey, TableName, columns_in};
use crate::cache::store::{Cacheable, Place, Sizes, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JoinInfo {
    pub(crate) shape: JoinShape,
    /// The columns of the rows in order.
    pub(crate) columns: Vec<ColumnRef>,
    /// Whether it was computed in advance.
    pub(crate) forecast: bool,
}

pub(crate) type CachedJoin = Entry<JoinInfo>;
pub(crate) type JoinStore = Store<JoinInfo>;

/// What a cached join lacks to answer another one of the same tables; the least first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mismatch {
    Columns,
    /// It has conditions that the other one does not have.
    Conditions,
    /// It has another version of this table.
    Version(TableName),
}

impl Cacheable for JoinInfo {
    const MAX_ENTRIES: usize = 2_000;
    const ALWAYS_ENTERS: bool = false;
    const CLAIMS_FOLDER: bool = true;

    bowshot_api::delegate! { shape: fn digest(&self) -> u64; }

    fn tables(&self) -> &[TableKey] {
        &self.shape.tables
    }

    /// It replaces older versions of the same join, and joins that it gives.
    fn replaces(&self, old: &CachedJoin) -> bool {
        let (shape, other) = (&self.shape, &old.about.shape);
        // An older version with other conditions, a slice, stays: its own rows will be brought up to date.
        let older = other.tables != shape.tables;
        let conditions = &other.tree.conditions;
        let has_rows = || shape.tree.conditions.iter().all(|condition| conditions.contains(condition));
        let has_columns = || old.about.columns.iter().all(|column| self.columns.contains(column));
        is_named_like(other, shape)
            && other.settings == shape.settings
            && other.tree.members == shape.tree.members
            && has_rows()
            && (older || (!old.is_pinned() && has_columns()))
    }

    fn follows(&self, other: &Self) -> bool {
        let (shape, earlier) = (&self.shape, &other.shape);
        shape.tree == earlier.tree
            && shape.settings == earlier.settings
            && is_later(&shape.names(), &earlier.names())
    }

    fn count_eviction(place: Place) {
        let place = if place == Place::Memory { "memory" } else { "disk" };
        metrics::counter!("bowshot_join_cache_evictions_total", "place" => place).increment(1);
    }

    fn publish(sizes: Sizes) {
        metrics::gauge!("bowshot_join_cache_bytes", "place" => "memory").set(sizes.memory as f64);
        metrics::gauge!("bowshot_join_cache_bytes", "place" => "disk").set(sizes.disk as f64);
    }

    fn failed(what: &'static str, error: &Error) {
        metrics::counter!("bowshot_join_cache_errors_total", "what" => what).increment(1);
        tracing::warn!(what, error = error as &dyn std::error::Error, "the join cache steps aside");
    }
}

impl JoinStore {
    /// The smallest join that answers `wanted` with these columns; `conditions` are those of `wanted` in the caller's order.
    pub(crate) fn find(
        &self,
        wanted: &JoinShape,
        conditions: &[String],
        columns: &BTreeSet<ColumnRef>,
    ) -> Option<(Arc<CachedJoin>, Match)> {
        let fitting = self.of_digest(wanted.digest()).into_iter().filter_map(|join| {
            let found = join.about.shape.gives(wanted, conditions)?;
            has_columns(&join.about, &found, conditions, columns).then_some((join, found))
        });
        fitting.min_by_key(|(join, _)| join.info.bytes)
    }

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

    /// Joins of the same tables and conditions, in any version, that this process has computed.
    pub(crate) fn earlier(&self, shape: &JoinShape) -> Vec<Arc<CachedJoin>> {
        let same = |join: &Arc<CachedJoin>| join.is_fresh() && is_version_of(&join.about.shape, shape);
        self.all().into_iter().filter(same).collect()
    }

    pub(crate) fn remove_versions_of(&self, shape: &JoinShape) {
        self.remove_all(|join| is_version_of(&join.about.shape, shape));
    }
}

fn has_columns(
    about: &JoinInfo,
    found: &Match,
    conditions: &[String],
    columns: &BTreeSet<ColumnRef>,
) -> bool {
    let there = |column: &ColumnRef| {
        let number = found.numbers.get(column.table).copied();
        about.columns.iter().any(|other| Some(other.table) == number && other.column == column.column)
    };
    let missing = found.missing.iter().filter_map(|place| conditions.get(*place));
    columns.iter().all(there)
        && missing.flat_map(|condition| columns_in(condition)).all(|column| there(&column))
}

/// Whether two joins are of tables with the same names, in whatever version.
fn is_named_like(one: &JoinShape, other: &JoinShape) -> bool {
    one.tables.iter().map(|table| &table.name).eq(other.tables.iter().map(|table| &table.name))
}

/// Whether two joins are the same one, of tables in whatever versions.
fn is_version_of(one: &JoinShape, other: &JoinShape) -> bool {
    is_named_like(one, other) && one.settings == other.settings && one.tree == other.tree
}
