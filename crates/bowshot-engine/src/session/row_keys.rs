//! The rows that a statement changes, or locks to read them, by their whole primary key: for these a transaction waits, so that it goes
//! on with what others have committed. Behind a row policy, a mask, a grant on columns or a view a plan has another source, and no row
//! is known.

use crate::authorize::{Action, AuthorizedPlan};
use crate::catalog::defaults::without_defaults;
use crate::plan::{self, parameters};
use crate::secured_scan;
use crate::session::EngineSession;
use crate::session::key_lookup::{FilteredScan, in_type, key_of, value};
use crate::write::Write;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::{DialectName, Privilege};
use bowshot_tables::{SeenRows, Table};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use uuid::Uuid;

/// Rows of parameters up to which a statement locks the rows that it changes: one with more does not take the locks of all others.
const MAX_KEYS: usize = 1 << 16;

/// A row by its table and the hash of its primary key. Two rows that are taken for one wait for one another, which is right, if slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The id of the table.
    pub table: [u8; 16],
    /// The hash.
    pub key: u64,
}

/// Rows that a transaction has locked to read them, as they were then.
#[derive(Debug, Clone)]
pub struct WatchedRows {
    rows: SeenRows,
    /// The row, where an index tells it. `None` where it does not, and where a query names its rows otherwise: then no row of the table
    /// may change.
    key: Option<RowKey>,
}

impl WatchedRows {
    /// Whether a change of the other rows is one of these.
    pub fn includes(&self, other: &Self) -> bool {
        let is_same_table = self.rows.table.id() == other.rows.table.id();
        is_same_table && (self.key.is_none() || self.key == other.key)
    }
}

impl EngineSession {
    /// Checks that who asks a query that locks rows may lock them, for which others wait.
    ///
    /// # Errors
    /// `Denied` for who may change no column of its tables.
    pub fn check_row_lock(&self, plan: &AuthorizedPlan) -> Result<()> {
        let access = self.gate.access(plan.pinned());
        if plan.row_lock().is_none() || access.is_everything() {
            return Ok(());
        }
        let locked: HashSet<Uuid> = locked_tables(plan).iter().map(|table| table.id()).collect();
        for (name, _) in plan.pinned().shared().tables().filter(|(_, table)| locked.contains(&table.id())) {
            access.check_columns(Privilege::Update, &name, &BTreeSet::new())?;
        }
        Ok(())
    }

    /// The rows that a statement changes or locks. None of other statements, and of those that do not name their rows by the whole
    /// primary key.
    ///
    /// # Errors
    /// `Invalid` for parameters that do not fit.
    pub fn row_keys(&self, plan: &AuthorizedPlan, bound: &[RecordBatch]) -> Result<Vec<RowKey>> {
        if bound.iter().map(RecordBatch::num_rows).sum::<usize>() > MAX_KEYS {
            return Ok(Vec::new());
        }
        let Some(rows) = self.keyed_rows(plan) else { return Ok(Vec::new()) };
        let mut keys = Vec::new();
        self.each_binding(plan, bound, |values| keys.extend(rows.row_key(values)))?;
        Ok(keys)
    }

    /// The rows of a query that locks them, as they are in a state, so that it is known later whether somebody has changed them.
    ///
    /// # Errors
    /// `Invalid` for parameters that do not fit.
    pub async fn watch_rows(
        &self,
        plan: &AuthorizedPlan,
        bound: &[RecordBatch],
        state: &Pinned,
    ) -> Result<Vec<WatchedRows>> {
        let Some(rows) = self.keyed_rows(plan) else {
            let tables = locked_tables(plan);
            let tables = tables.iter().filter_map(|table| state.shared().table(table.id()));
            let rows = tables.map(|table| SeenRows { table: Arc::clone(table), addresses: None });
            return Ok(rows.map(|rows| WatchedRows { rows, key: None }).collect());
        };
        // Nobody else changes the tables of the session.
        let Some(table) = state.shared().table(rows.table.id()) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        self.each_binding(plan, bound, |values| all.push((rows.row_key(values), rows.key_values(values))))?;
        let mut watched = Vec::with_capacity(all.len());
        for (key, values) in all {
            let addresses = match &values {
                Some(values) if key.is_some() => self.addresses(table, values).await,
                _ => None,
            };
            let key = key.filter(|_| addresses.is_some());
            watched.push(WatchedRows { rows: SeenRows { table: Arc::clone(table), addresses }, key });
        }
        Ok(watched)
    }

    async fn addresses(&self, table: &Table, key: &[(usize, ScalarValue)]) -> Option<Vec<u64>> {
        // The first lookup in many rows makes no index, the second one does.
        let found = match self.find_rows(table, key, &[]).await {
            None => self.find_rows(table, key, &[]).await,
            found => found,
        };
        found.map(|found| found.addresses)
    }

    /// Checks that nobody has changed the rows.
    ///
    /// # Errors
    /// `Conflict` when somebody has.
    pub fn check_watched(&self, watched: &[WatchedRows]) -> Result<()> {
        let newest = self.pin();
        if watched.iter().all(|watched| watched.rows.are_in(newest.shared())) {
            return Ok(());
        }
        let message = "a row that the transaction has locked was changed by another transaction";
        Err(Error::new(ErrorKind::Conflict, message).with_hint(
            "run the transaction again; statements that find rows by their whole primary key wait for the \
             lock",
        ))
    }

    /// Commits what a transaction has made of `base`, unless somebody has changed the rows.
    ///
    /// # Errors
    /// As [`EngineSession::commit`], and `Conflict` when somebody has.
    pub async fn commit_watched(
        &self,
        (base, made): (&Pinned, &Pinned),
        watched: &[WatchedRows],
    ) -> Result<()> {
        self.check_watched(watched)?;
        let rows = watched.iter().map(|watched| watched.rows.clone()).collect();
        self.commit(&base.clone().watching(rows), made).await
    }

    fn keyed_rows<'p>(&self, plan: &'p AuthorizedPlan) -> Option<KeyedRows<'p>> {
        let locks = match plan.action() {
            Action::Query => plan.row_lock().is_some(),
            Action::Write(change) => {
                change.before.is_empty()
                    && matches!(change.write.as_ref(), Write::Update(_) | Write::Delete(_))
            }
            _ => false,
        };
        let rows = KeyedRows::recognise(plan.planned().plan()).filter(|_| locks && !self.scratch)?;
        let is_mysql = plan::dialect(&self.options()).name() == DialectName::MySql;
        let schema = rows.table.schema();
        // There, equal texts may have other bytes.
        let is_known =
            !(is_mysql && rows.key.iter().any(|(at, _)| schema.field(*at).data_type().is_string()));
        is_known.then_some(rows)
    }

    /// Does something with each row of parameters, or once where there are none.
    fn each_binding(
        &self,
        plan: &AuthorizedPlan,
        bound: &[RecordBatch],
        mut work: impl FnMut(Option<&ParamValues>),
    ) -> Result<()> {
        let planned = plan.planned();
        if planned.parameters().fields().is_empty() || bound.is_empty() {
            work(None);
            return Ok(());
        }
        for batch in bound {
            for row in 0..batch.num_rows() {
                work(Some(&parameters::values(planned.plan(), planned.parameters(), batch, row)?));
            }
        }
        Ok(())
    }
}

/// The rows of one table that have a primary key.
struct KeyedRows<'p> {
    table: Arc<Table>,
    key: Vec<(usize, &'p Expr)>,
}

impl<'p> KeyedRows<'p> {
    fn recognise(plan: &'p LogicalPlan) -> Option<Self> {
        let mut plan = plan;
        loop {
            plan = match plan {
                LogicalPlan::Sort(sort) => sort.input.as_ref(),
                LogicalPlan::Limit(limit) => limit.input.as_ref(),
                _ => break,
            };
        }
        let FilteredScan { filter, scan, .. } = FilteredScan::recognise(plan)?;
        let provider = source_as_provider(&scan.source).ok()?;
        let table = Arc::clone(Table::read_by(without_defaults(provider.as_ref()))?);
        let key = key_of(&table, &provider.schema(), &filter.predicate)?;
        is_primary(&table, &key).then_some(Self { table, key })
    }

    /// `None` where a parameter has no value.
    fn key_values(&self, parameters: Option<&ParamValues>) -> Option<Vec<(usize, ScalarValue)>> {
        self.key.iter().map(|(at, expr)| Some((*at, value(expr, parameters)?))).collect()
    }

    /// `None` for a null, and for a value of another kind: there is no such row.
    fn row_key(&self, parameters: Option<&ParamValues>) -> Option<RowKey> {
        let (schema, mut hasher) = (self.table.schema(), DefaultHasher::new());
        for (at, expr) in &self.key {
            let value = in_type(&value(expr, parameters)?, schema.field(*at).data_type())?;
            ScalarValue::try_from_array(&value, 0).ok()?.hash(&mut hasher);
        }
        Some(RowKey { table: self.table.id().into_bytes(), key: hasher.finish() })
    }
}

/// The tables of this server that a query with FOR UPDATE reads, whoever sees a part of them.
fn locked_tables(plan: &AuthorizedPlan) -> Vec<Arc<Table>> {
    let mut found = Vec::new();
    if plan.row_lock().is_none() {
        return found;
    }
    // A plan that was authorised has been walked before.
    let _ = plan.planned().form().apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found.extend(scanned_table(scan));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

fn scanned_table(scan: &TableScan) -> Option<Arc<Table>> {
    let provider = source_as_provider(&scan.source).ok()?;
    Table::read_by(without_defaults(secured_scan::unguarded(provider.as_ref()))).cloned()
}

/// Whether these columns, each of which is there once, are those of the primary key.
fn is_primary(table: &Table, columns: &[(usize, &Expr)]) -> bool {
    let definition = table.definition();
    let is_there = |name: &String| {
        let place = definition.position(name);
        columns.iter().any(|(at, _)| place == Some(*at))
    };
    definition
        .primary_key
        .as_ref()
        .is_some_and(|key| key.columns.len() == columns.len() && key.columns.iter().all(is_there))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::key_lookup::tests::{engine, planned};
    use bowshot_api::Principal;
    use datafusion::arrow::array::{ArrayRef, Int32Array};

    #[test]
    fn rows_are_known_by_their_whole_primary_key() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let mut known = Vec::new();
            for (sql, count) in [
                ("UPDATE t SET word = 'x' WHERE id = 7", 1),
                ("UPDATE t SET word = upper(word) WHERE 7 = id", 1),
                ("DELETE FROM t WHERE id = 7", 1),
                ("SELECT * FROM t WHERE id = 7 FOR UPDATE", 1),
                (
                    "SELECT upper(word) AS w FROM t WHERE id = 7 ORDER BY w LIMIT 1 FOR NO KEY UPDATE NOWAIT",
                    1,
                ),
                ("SELECT * FROM t WHERE id = 7", 0),
                ("SELECT * FROM t WHERE id > 7 FOR UPDATE", 0),
                ("SELECT * FROM t WHERE id = NULL FOR UPDATE", 0),
                ("SELECT * FROM t AS a JOIN t AS b USING (id) WHERE a.id = 7 FOR UPDATE", 0),
                ("UPDATE t SET word = 'x' WHERE id IN (7, 8)", 0),
                ("UPDATE t SET word = 'x' WHERE word = 'word 7'", 0),
                ("INSERT INTO t VALUES (5000, 'x')", 0),
            ] {
                let keys = session.row_keys(&planned(&session, sql).await, &[]).unwrap();
                assert_eq!(keys.len(), count, "{sql}");
                known.extend(keys);
            }
            assert!(known.windows(2).all(|pair| pair[0] == pair[1]), "{known:?}");
            let other = planned(&session, "DELETE FROM t WHERE id = 8").await;
            assert_ne!(session.row_keys(&other, &[]).unwrap(), known[..1]);
            let bound = planned(&session, "DELETE FROM t WHERE id = $1").await;
            for (count, locked) in [(2, 2), (MAX_KEYS + 1, 0)] {
                let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count as i32));
                let rows = RecordBatch::try_from_iter([("$1", ids)]).unwrap();
                assert_eq!(session.row_keys(&bound, &[rows]).unwrap().len(), locked, "{count}");
            }
        });
    }

    #[test]
    fn changes_of_watched_rows_are_noticed() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let change = async |sql: &str| {
                let plan = planned(&session, sql).await;
                let written = session.write(sql, &plan, &[]).await.unwrap();
                session.commit(plan.pinned(), &written.pinned).await.unwrap();
            };
            let plan = planned(&session, "SELECT * FROM t WHERE id = 7 FOR UPDATE").await;
            let watched = session.watch_rows(&plan, &[], plan.pinned()).await.unwrap();
            session.check_watched(&watched).unwrap();
            change("UPDATE t SET word = 'x' WHERE id = 8").await;
            change("DELETE FROM t WHERE id = 6").await;
            session.check_watched(&watched).unwrap();
            change("UPDATE t SET word = 'x' WHERE id = 7").await;
            assert_eq!(session.check_watched(&watched).unwrap_err().kind(), ErrorKind::Conflict);
        });
    }

    #[test]
    fn a_query_that_names_its_rows_otherwise_watches_its_tables() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let write = async |sql: &str| {
                let plan = planned(&session, sql).await;
                let written = session.write(sql, &plan, &[]).await.unwrap();
                (plan.pinned().clone(), written.pinned)
            };
            for sql in [
                "SELECT * FROM t WHERE id IN (7, 8) FOR UPDATE",
                "SELECT * FROM t WHERE word = 'word 7' LIMIT 1 FOR UPDATE SKIP LOCKED",
                "SELECT * FROM (SELECT * FROM t) AS a JOIN t AS b USING (id) FOR UPDATE",
            ] {
                let plan = planned(&session, sql).await;
                let watched = session.watch_rows(&plan, &[], plan.pinned()).await.unwrap();
                assert!(watched.iter().all(|rows| watched[0].includes(rows)) && !watched.is_empty(), "{sql}");
                let (base, made) = write("UPDATE t SET word = 'mine' WHERE id = 7").await;
                let (now, added) = write("INSERT INTO t SELECT max(id) + 1, 'new' FROM t").await;
                session.commit(&now, &added).await.unwrap();
                session.commit_watched((&base, &made), &watched).await.unwrap();
                let (base, made) = write("DELETE FROM t WHERE id = 8").await;
                let error = session.commit_watched((&base, &made), &watched).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{sql}");
                // A commit that takes its turn after the check finds it too.
                let rows = watched.iter().map(|watched| watched.rows.clone()).collect();
                let error = session.commit(&base.watching(rows), &made).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{sql}");
            }
            let plain = planned(&session, "SELECT * FROM t").await;
            assert!(session.watch_rows(&plain, &[], plain.pinned()).await.unwrap().is_empty());
        });
    }
}
