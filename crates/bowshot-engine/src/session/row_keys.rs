//! The rows that a statement changes, or locks to read them, by their whole primary key: for these a transaction waits, so that it goes
//! on with what others have committed. Behind a row policy, a mask, a grant on columns or a view a plan has another source, and no row
//! is known.

use crate::authorize::{Action, AuthorizedPlan};
use crate::catalog::defaults::without_defaults;
use crate::plan::{self, parameters};
use crate::secured_scan;
use crate::session::EngineSession;
use crate::session::key_lookup::{FilteredScan, in_column, key_of, value};
use crate::write::Write;
use bowshot_api::{Error, ErrorKind, Reason, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::{DialectName, Privilege};
use bowshot_tables::{SeenRows, Snapshot, Table};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use std::collections::{BTreeSet, HashMap, HashSet};
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

/// All rows that a transaction watches, in the order in which it has locked them.
#[derive(Debug, Default)]
pub struct WatchList {
    tables: HashMap<Uuid, WatchedTable>,
    /// The table of each entry.
    order: Vec<Uuid>,
}

#[derive(Debug, Default)]
struct WatchedTable {
    rows: Vec<WatchedRows>,
    keys: HashSet<Option<RowKey>>,
    /// The last state that had the rows, and how many there were: only a table that has lost rows since is looked through again.
    checked: Option<(Arc<Table>, usize)>,
}

impl WatchList {
    /// Adds rows that nobody else may change meanwhile.
    pub fn extend(&mut self, all: Vec<WatchedRows>) {
        for rows in all {
            let id = rows.rows.table.id();
            let table = self.tables.entry(id).or_default();
            if !table.keys.contains(&None) && table.keys.insert(rows.key) {
                table.rows.push(rows);
                self.order.push(id);
            }
        }
    }

    /// How many entries it has.
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// Forgets all but the first so many entries.
    pub fn truncate(&mut self, count: usize) {
        for id in self.order.drain(count.min(self.order.len())..) {
            let Some(table) = self.tables.get_mut(&id) else { continue };
            if let Some(rows) = table.rows.pop() {
                table.keys.remove(&rows.key);
            }
            if let Some((_, count)) = &mut table.checked {
                *count = table.rows.len().min(*count);
            }
        }
        self.tables.retain(|_, table| !table.rows.is_empty());
    }

    fn are_in(&mut self, state: &Snapshot) -> bool {
        self.tables.iter_mut().all(|(id, table)| state.table(*id).is_some_and(|now| table.are_in(now)))
    }

    fn seen_rows(&self) -> Vec<SeenRows> {
        let rows = |table: &WatchedTable| {
            let checked = table.checked.as_ref().filter(|(_, count)| *count == table.rows.len());
            let checked = checked.map(|(state, _)| Arc::clone(state));
            let seen = |watched: &WatchedRows| SeenRows { checked: checked.clone(), ..watched.rows.clone() };
            table.rows.iter().map(seen).collect::<Vec<_>>()
        };
        self.tables.values().flat_map(rows).collect()
    }
}

impl WatchedTable {
    fn are_in(&mut self, now: &Arc<Table>) -> bool {
        let checked = self.checked.as_ref().filter(|(state, _)| now.has_all_rows_of(state));
        let known = checked.map_or(0, |(_, count)| *count);
        let are_there = self.rows.iter().skip(known).all(|watched| watched.rows.are_in(now));
        if are_there {
            self.checked = Some((Arc::clone(now), self.rows.len()));
        }
        are_there
    }
}

impl WatchedRows {
    fn new(table: &Arc<Table>, addresses: Option<Vec<u64>>, key: Option<RowKey>) -> Self {
        Self { rows: SeenRows { table: Arc::clone(table), addresses, checked: None }, key }
    }
}

impl EngineSession {
    /// Checks that who asks a query that locks rows may lock them, for which others wait.
    ///
    /// # Errors
    /// `Denied` for who may change no column of its tables, `NotFound` for a name that is not in FROM.
    pub fn check_row_lock(&self, plan: &AuthorizedPlan) -> Result<()> {
        let locked: HashSet<Uuid> = locked_tables(plan)?.iter().map(|table| table.id()).collect();
        let access = self.gate.access(plan.pinned());
        if locked.is_empty() || access.is_everything() {
            return Ok(());
        }
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
            let tables = locked_tables(plan)?;
            let tables = tables.iter().filter_map(|table| state.shared().table(table.id()));
            return Ok(tables.map(|table| WatchedRows::new(table, None, None)).collect());
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
            watched.push(WatchedRows::new(table, addresses, key));
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
    pub fn check_watched(&self, watched: &mut WatchList) -> Result<()> {
        if watched.order.is_empty() || watched.are_in(self.pin().shared()) {
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
        watched: &mut WatchList,
    ) -> Result<()> {
        self.check_watched(watched)?;
        self.commit(&base.clone().watching(watched.seen_rows()), made).await
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
        let mut hasher = DefaultHasher::new();
        for (at, expr) in &self.key {
            let value = in_column(&value(expr, parameters)?, &self.table, *at)?;
            ScalarValue::try_from_array(&value, 0).ok()?.hash(&mut hasher);
        }
        Some(RowKey { table: self.table.id().into_bytes(), key: hasher.finish() })
    }
}

/// The tables of this server whose rows a query locks, whoever sees a part of them.
fn locked_tables(plan: &AuthorizedPlan) -> Result<Vec<Arc<Table>>> {
    let mut found = Vec::new();
    let (Some(clause), form) = (plan.row_lock(), plan.planned().form()) else { return Ok(found) };
    if clause.of.is_empty() {
        add_tables(form, &mut found);
    }
    for name in clause.of.iter() {
        let named = in_from(form, name).ok_or_else(|| {
            Error::not_found(format!("table `{name}` of FOR UPDATE is not in FROM"))
                .with_reason(Reason::UndefinedTable)
        })?;
        add_tables(named, &mut found);
    }
    Ok(found)
}

/// What FROM calls by a name.
fn in_from<'p>(plan: &'p LogicalPlan, name: &str) -> Option<&'p LogicalPlan> {
    let called = match plan {
        LogicalPlan::SubqueryAlias(node) => &node.alias,
        LogicalPlan::TableScan(node) => &node.table_name,
        _ => return plan.inputs().into_iter().find_map(|input| in_from(input, name)),
    };
    called.table().eq_ignore_ascii_case(name).then_some(plan)
}

fn add_tables(plan: &LogicalPlan, found: &mut Vec<Arc<Table>>) {
    // A plan that was authorised has been walked before.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found.extend(scanned_table(scan));
        }
        Ok(TreeNodeRecursion::Continue)
    });
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
            let mut watched = WatchList::default();
            watched.extend(session.watch_rows(&plan, &[], plan.pinned()).await.unwrap());
            session.check_watched(&mut watched).unwrap();
            change("UPDATE t SET word = 'x' WHERE id = 8").await;
            change("DELETE FROM t WHERE id = 6").await;
            session.check_watched(&mut watched).unwrap();
            // Seen before those changes, added behind them.
            let other = planned(&session, "SELECT * FROM t WHERE id = 9 FOR UPDATE").await;
            let mut rows = session.watch_rows(&other, &[], plan.pinned()).await.unwrap();
            rows.extend(session.watch_rows(&plan, &[], plan.pinned()).await.unwrap());
            watched.extend(rows);
            assert_eq!(watched.count(), 2, "each row once");
            session.check_watched(&mut watched).unwrap();
            change("UPDATE t SET word = 'x' WHERE id = 9").await;
            assert_eq!(session.check_watched(&mut watched).unwrap_err().kind(), ErrorKind::Conflict);
            watched.truncate(1);
            session.check_watched(&mut watched).unwrap();
            // What was changed before it was added.
            watched.extend(session.watch_rows(&other, &[], plan.pinned()).await.unwrap());
            assert_eq!(session.check_watched(&mut watched).unwrap_err().kind(), ErrorKind::Conflict);
            watched.truncate(1);
            change("UPDATE t SET word = 'x' WHERE id = 7").await;
            assert_eq!(session.check_watched(&mut watched).unwrap_err().kind(), ErrorKind::Conflict);
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
                let mut watched = WatchList::default();
                watched.extend(session.watch_rows(&plan, &[], plan.pinned()).await.unwrap());
                assert_eq!(watched.count(), 1, "{sql}");
                let (base, made) = write("UPDATE t SET word = 'mine' WHERE id = 7").await;
                let (now, added) = write("INSERT INTO t SELECT max(id) + 1, 'new' FROM t").await;
                session.commit(&now, &added).await.unwrap();
                session.commit_watched((&base, &made), &mut watched).await.unwrap();
                let (base, made) = write("DELETE FROM t WHERE id = 8").await;
                let error = session.commit_watched((&base, &made), &mut watched).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{sql}");
                // A commit that takes its turn after the check finds it too.
                let error = session.commit(&base.watching(watched.seen_rows()), &made).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{sql}");
            }
            let plain = planned(&session, "SELECT * FROM t").await;
            assert!(session.watch_rows(&plain, &[], plain.pinned()).await.unwrap().is_empty());
        });
    }
}
