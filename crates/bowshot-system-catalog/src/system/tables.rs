//! What `system` says about tables: `system.tables`, `system.table_history`, `system.materialized_views`, and the pipes into them.

use super::{ViewMeanings, materialized_views, pipes};
use bowshot_api::{Error, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_policy::{Access, Reading};
use bowshot_tables::{Storage, TableStore};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
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
        let mut names = Names::default();
        let (mut storage, mut location) = (Vec::new(), Vec::new());
        let (mut rows, mut bytes, mut segments, mut version, mut error) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for snapshot in [self.pinned.shared(), self.pinned.own()] {
            for (name, table) in snapshot.tables() {
                names.add([&name.catalog, &name.schema, &name.name]);
                let durable = table.definition().storage == Storage::Durable;
                storage.push(if durable { "durable" } else { "memory" });
                // How much there is of what one may not see is not told.
                let whole = self.access.reading(&name) == Reading::All;
                rows.push(whole.then(|| table.rows().cast_signed()));
                bytes.push(whole.then(|| table.bytes().cast_signed()));
                segments.push(whole.then(|| table.segment_count() as i64));
                version.push((durable && whole).then(|| table.version().cast_signed()));
                let place = self.store.location(table).filter(|_| whole);
                location.push(place.map(|path| path.display().to_string()));
                error.push(None);
            }
            for (name, external) in snapshot.externals() {
                names.add([&name.catalog, &name.schema, &name.name]);
                storage.push("external");
                // How much there is only their files know.
                rows.push(None);
                bytes.push(None);
                segments.push(None);
                version.push(None);
                // Where they are is told to who owns the table, and nothing stands there for others.
                location.push(Some(external.location.clone()).filter(|location| !location.is_empty()));
                error.push(None);
            }
            for (name, broken) in snapshot.broken() {
                names.add([&name.catalog, &name.schema, &name.name]);
                storage.push("durable");
                rows.push(Some(0));
                bytes.push(Some(0));
                segments.push(Some(0));
                version.push(None);
                location.push(None);
                error.push(Some(broken.reason().to_owned()));
            }
        }
        let mut columns = names.columns();
        columns.extend([
            ("storage", Arc::new(StringArray::from(storage)) as ArrayRef),
            ("row_count", Arc::new(Int64Array::from(rows))),
            ("bytes", Arc::new(Int64Array::from(bytes))),
            ("segments", Arc::new(Int64Array::from(segments))),
            ("version", Arc::new(Int64Array::from(version))),
            ("location", Arc::new(StringArray::from(location))),
            ("error", Arc::new(StringArray::from(error))),
        ]);
        batch(columns)
    }

    /// The commits of durable tables that are kept.
    fn history(&self) -> Result<RecordBatch> {
        let known: HashMap<_, _> =
            self.pinned.shared().tables().map(|(name, table)| (table.id(), name)).collect();
        let mut names = Names::default();
        let (mut version, mut committed, mut operation) = (Vec::new(), Vec::new(), Vec::new());
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for commit in self.store.history()? {
            let Some(name) = known.get(&commit.table) else { continue };
            names.add([&name.catalog, &name.schema, &name.name]);
            version.push(commit.version.cast_signed());
            committed.push(commit.committed.timestamp_micros());
            operation.push(commit.operation);
            added.push(commit.rows_added.cast_signed());
            removed.push(commit.rows_removed.cast_signed());
        }
        let mut columns = names.columns();
        columns.extend([
            ("version", Arc::new(Int64Array::from(version)) as ArrayRef),
            ("committed_at", Arc::new(TimestampMicrosecondArray::from(committed).with_timezone("UTC"))),
            ("operation", Arc::new(StringArray::from(operation))),
            ("rows_added", Arc::new(Int64Array::from(added))),
            ("rows_removed", Arc::new(Int64Array::from(removed))),
        ]);
        batch(columns)
    }
}

#[derive(Default)]
pub(super) struct Names([Vec<String>; 3]);

impl Names {
    pub(super) fn add(&mut self, parts: [&String; 3]) {
        for (column, part) in self.0.iter_mut().zip(parts) {
            column.push(part.clone());
        }
    }

    pub(super) fn columns(self) -> Vec<(&'static str, ArrayRef)> {
        let names = ["table_catalog", "table_schema", "table_name"];
        let column = |values| Arc::new(StringArray::from(values)) as ArrayRef;
        names.into_iter().zip(self.0).map(|(name, values)| (name, column(values))).collect()
    }
}

pub(crate) fn batch(columns: Vec<(&'static str, ArrayRef)>) -> Result<RecordBatch> {
    RecordBatch::try_from_iter(columns)
        .map_err(|error| Error::internal("a system table cannot be made").with_source(error))
}
