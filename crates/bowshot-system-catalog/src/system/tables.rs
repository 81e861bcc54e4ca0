//! What `system` says about tables: `system.tables`, `system.table_history`, `system.materialized_views`, and the pipes into them.

use super::{ViewMeanings, materialized_views, pipes};
use crate::lazy_table::{Cell, Kind, arrays, cells, columns};
use bowshot_api::{Error, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{Access, Reading};
use bowshot_tables::{EntryName, Storage, TableStore};
use datafusion::arrow::array::RecordBatch;
use std::collections::HashMap;
use std::sync::Arc;

/// The tables of `system` that are made here.
pub(crate) const NAMES: [&str; 5] =
    [materialized_views::NAME, pipes::ERRORS, pipes::NAME, "table_history", "tables"];

/// The tables that one statement sees, and their store.
#[derive(Debug)]
pub struct AboutTables {
    pinned: Pinned,
    store: Arc<TableStore>,
    access: Access,
    meanings: Arc<dyn ViewMeanings>,
}

impl AboutTables {
    pub fn new(
        pinned: &Pinned,
        store: &Arc<TableStore>,
        access: &Access,
        meanings: Arc<dyn ViewMeanings>,
    ) -> Self {
        Self { pinned: pinned.clone(), store: Arc::clone(store), access: access.clone(), meanings }
    }

    /// The rows of one of [`NAMES`].
    pub(crate) async fn rows(&self, name: &str) -> Option<Result<RecordBatch>> {
        match name {
            "tables" => Some(self.tables()),
            "table_history" => Some(self.history()),
            materialized_views::NAME => {
                let meanings = self.meanings.as_ref();
                Some(materialized_views::rows(&self.pinned, &self.store, &self.access, meanings).await)
            }
            pipes::NAME => Some(pipes::rows(&self.pinned, &self.store, &self.access)),
            pipes::ERRORS => Some(pipes::errors(&self.pinned, &self.access)),
            _ => None,
        }
    }

    /// The tables with their sizes, and where those are that are kept in files.
    fn tables(&self) -> Result<RecordBatch> {
        let mut rows = Vec::new();
        for snapshot in [self.pinned.shared(), self.pinned.own()] {
            for (name, table) in snapshot.tables() {
                let durable = table.definition().storage == Storage::Durable;
                // How much there is of what one may not see is not told.
                let whole = self.access.reading(&name) == Reading::All;
                let sizes = [table.rows(), table.bytes(), table.segment_count() as u64];
                let [count, bytes, segments] = sizes.map(|size| whole.then_some(size));
                let version = (durable && whole).then(|| table.version());
                let place = self.store.location(table).filter(|_| whole);
                let location = place.map(|path| path.display().to_string());
                let storage = if durable { "durable" } else { "memory" };
                rows.push(row(&name, cells![storage, count, bytes, segments, version, location]));
            }
            for (name, external) in snapshot.externals() {
                // How much there is only their files know. Where they are is told to who owns the table, and nothing stands there for others.
                let location = Some(&external.location).filter(|location| !location.is_empty());
                let rest = cells!["external", Cell::Null, Cell::Null, Cell::Null, Cell::Null, location];
                rows.push(row(&name, rest));
            }
            for (name, broken) in snapshot.broken() {
                let rest = cells!["durable", 0, 0, 0, Cell::Null, Cell::Null, broken.reason()];
                rows.push(row(&name, rest));
            }
        }
        let columns = columns![
            table_catalog Text, table_schema Text, table_name Text, storage Text, row_count Long, bytes Long,
            segments Long, version Long, location Text, error Text
        ];
        batch(columns, rows)
    }

    /// The commits of durable tables that are kept.
    fn history(&self) -> Result<RecordBatch> {
        let known: HashMap<_, _> =
            self.pinned.shared().tables().map(|(name, table)| (table.id(), name)).collect();
        let rows = self.store.history()?.into_iter().filter_map(|commit| {
            let committed = commit.committed.timestamp_micros();
            let (added, removed) = (commit.rows_added, commit.rows_removed);
            let rest = cells![commit.version, committed, commit.operation, added, removed];
            Some(row(known.get(&commit.table)?, rest))
        });
        let columns = columns![
            table_catalog Text, table_schema Text, table_name Text, version Long, committed_at Time,
            operation Text, rows_added Long, rows_removed Long
        ];
        batch(columns, rows)
    }
}

/// Catalog, schema and name of a table, and what else is told of it.
pub(super) fn row(name: &EntryName, rest: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
    cells![&name.catalog, &name.schema, &name.name].into_iter().chain(rest).collect()
}

/// A table of these columns and rows. Columns are nullable that have nulls.
pub(crate) fn batch<R: IntoIterator<Item = Cell>>(
    columns: &'static [(&'static str, Kind)],
    rows: impl IntoIterator<Item = R>,
) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(arrays(columns, rows))
        .map_err(|error| Error::internal("a system table cannot be made").with_source(error))
}
