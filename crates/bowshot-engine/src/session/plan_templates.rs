//! Plans of statements about the rows with a key, and of rows that are written out, used again for texts that differ from an earlier
//! one in literals alone: `WHERE key = 1`, `WHERE key = 2`. A plan serves only the session that made it, with the same settings,
//! rights, and tables but for their rows, for as long as that of a prepared statement. What is kept of it has no rows.

use crate::authorize::{Action, AuthorizedPlan};
use crate::catalog::defaults::{WithDefaults, without_defaults};
use crate::reuse::SessionCache;
use crate::session::EngineSession;
use crate::session::changed_by_key::is_change_by_key;
use crate::session::key_lookup::FilteredScan;
use crate::session::statement_literals::{
    are_literals_of, put_literals, take_literals, value, with_literals,
};
use crate::write::Write;
use crate::write::change::ADDRESS;
use bowshot_api::Result;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Statement;
use bowshot_sql::rewrite::Source;
use bowshot_tables::{Entry, EntryName, Table};
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A second less than a prepared statement uses such a plan: one made of a template is not too old as soon as it is prepared.
const MAX_AGE: Duration = Duration::from_secs(4);
/// Templates of all sessions together. One holds what all tables are, so that idle sessions must not add up.
const MAX_TEMPLATES: usize = 256;
/// Tables and views up to which it is found out for each statement that they are the same.
const MAX_ENTRIES: usize = 4096;
/// Templates that may share what tables are with the next one.
const SHARING: usize = 8;

/// The plans that were made last, the most recent at the end.
#[derive(Debug, Default)]
pub(crate) struct PlanTemplates {
    next: AtomicU64,
    entries: Mutex<Vec<Template>>,
}

#[derive(Debug)]
struct Template {
    session: u64,
    /// Whoever changes a setting makes other options: these are held, and cannot change in place.
    options: Arc<ConfigOptions>,
    /// The statement with a blank in the place of each literal.
    statement: Box<ast::Statement>,
    plan: Bare,
}

/// A plan on tables without rows.
#[derive(Debug, Clone)]
struct Bare {
    plan: AuthorizedPlan,
    /// The table that it reads, if it reads one.
    table: Option<EntryName>,
}

impl PlanTemplates {
    fn find(&self, session: u64, options: &Arc<ConfigOptions>, statement: &ast::Statement) -> Option<Bare> {
        let entries = self.lock();
        let found = entries.iter().rev().find(|entry| {
            entry.session == session && Arc::ptr_eq(&entry.options, options) && *entry.statement == *statement
        });
        found.map(|entry| entry.plan.clone())
    }

    /// The tables of a recent template, if they are these but for their rows.
    fn find_pinned(&self, pinned: &Pinned) -> Option<Pinned> {
        let entries = self.lock();
        let mut recent = entries.iter().rev().take(SHARING).map(|entry| entry.plan.plan.pinned());
        recent.find(|there| there.is_same_but_for_rows(pinned)).cloned()
    }

    /// Adds a template in the place of an earlier one of the statement.
    fn add(&self, template: Template) {
        self.drop_where(|entry| {
            let is_replaced = entry.session == template.session && entry.statement == template.statement;
            is_replaced || entry.plan.plan.made().elapsed() >= MAX_AGE
        });
        let mut entries = self.lock();
        let oldest = (entries.len() >= MAX_TEMPLATES).then(|| entries.remove(0));
        entries.push(template);
        drop(entries);
        drop(oldest);
    }

    /// Without the lock, since a plan may be the last one that holds what tables are.
    fn drop_where(&self, is_gone: impl FnMut(&Template) -> bool) {
        let mut entries = self.lock();
        let (gone, left): (Vec<_>, Vec<_>) = std::mem::take(&mut *entries).into_iter().partition(is_gone);
        *entries = left;
        drop(entries);
        drop(gone);
    }

    /// A poisoned lock still guards whole templates.
    fn lock(&self) -> MutexGuard<'_, Vec<Template>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The templates of one session. They end with it.
#[derive(Debug)]
pub(crate) struct SessionTemplates {
    session: u64,
    all: Arc<PlanTemplates>,
}

impl SessionTemplates {
    pub(crate) fn new(all: &Arc<PlanTemplates>) -> Arc<Self> {
        Arc::new(Self { session: all.next.fetch_add(1, Ordering::Relaxed), all: Arc::clone(all) })
    }
}

impl Drop for SessionTemplates {
    fn drop(&mut self) {
        self.all.drop_where(|entry| entry.session == self.session);
    }
}

impl EngineSession {
    /// Takes the literals out of a statement that may have a template, and leaves blanks. `None` for other statements, and where
    /// the session looks up no keys.
    pub(super) fn take_literals(&self, statement: &mut Statement) -> Option<Vec<ast::Expr>> {
        let Statement::Sql(statement) = statement else { return None };
        let options = self.options();
        let is_on = options.extensions.get::<SessionCache>().is_some_and(|session| session.key_lookups);
        if is_on { take_literals(statement) } else { None }
    }

    /// Plans and authorizes a statement whose literals were taken out, or uses the plan of one like it.
    ///
    /// # Errors
    /// As [`EngineSession::plan`].
    pub(super) async fn plan_by_template(
        &self,
        (mut statement, literals): (Statement, Vec<ast::Expr>),
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<AuthorizedPlan> {
        let options = self.options();
        let values: Vec<ScalarValue> = literals.iter().filter_map(value).collect();
        if let Some(plan) = self.plan_of_template(&options, &statement, pinned)
            && let Some(replaced) = with_literals(plan.planned().plan(), &values)
        {
            let plan = plan.with_plan(replaced);
            self.decide_again(&plan).await?;
            return Ok(plan);
        }
        let mut blank = None;
        if let Statement::Sql(statement) = &mut statement {
            blank = Some(statement.clone());
            put_literals(statement, literals);
        }
        let plan = self.plan_parsed(statement, pinned, source).await?;
        let is_template = Arc::ptr_eq(&options, &self.options())
            && self.may_be_template(&plan)
            && are_literals_of(plan.planned().plan(), &values);
        if let Some(statement) = blank.filter(|_| is_template)
            && let Some(plan) = self.bare(&plan)
        {
            let session = self.templates.session;
            self.templates.all.add(Template { session, options, statement, plan });
        }
        Ok(plan)
    }

    /// Whether other values of the same types make the same plan.
    fn may_be_template(&self, plan: &AuthorizedPlan) -> bool {
        let change = match plan.action() {
            Action::Query => return self.may_be_lookup_template(plan),
            Action::Write(change) if change.returning.is_none() && change.before.is_empty() => change,
            _ => return false,
        };
        match change.write.as_ref() {
            Write::Insert(_) => true,
            Write::Update(_) | Write::Delete(_) => is_change_by_key(plan.planned().plan()),
            _ => false,
        }
    }

    /// What is kept of a plan. `None` if it reads what is no table of the state that it was planned on.
    fn bare(&self, plan: &AuthorizedPlan) -> Option<Bare> {
        let [_, _, entries] = plan.pinned().shared().counts();
        if entries > MAX_ENTRIES {
            return None;
        }
        let known = self.templates.all.find_pinned(plan.pinned());
        let pinned = known.unwrap_or_else(|| plan.pinned().without_rows());
        let (query, table) = match table_of(plan.planned().plan()) {
            Some(table) => {
                let name = name_of(&table, &pinned)?;
                let bare = Arc::new(table.part(&[], true));
                (on_table(plan.planned().plan(), &bare, &self.context)?, Some(name))
            }
            None if matches!(plan.action(), Action::Write(_)) => (plan.planned().plan().clone(), None),
            None => return None,
        };
        Some(Bare { plan: plan.on(query, pinned), table })
    }

    /// The plan on the tables as a statement sees them. The rule is that of the plans of prepared statements.
    fn plan_of_template(
        &self,
        options: &Arc<ConfigOptions>,
        statement: &Statement,
        pinned: &Pinned,
    ) -> Option<AuthorizedPlan> {
        let Statement::Sql(statement) = statement else { return None };
        let Bare { plan, table } = self.templates.all.find(self.templates.session, options, statement)?;
        let is_valid = plan.made().elapsed() < MAX_AGE && plan.pinned().is_same_but_for_rows(pinned);
        let query = match (table, plan.planned().plan()) {
            _ if !is_valid => return None,
            (None, query) => query.clone(),
            (Some(name), query) => {
                let Some(Entry::Table(table)) = pinned.entry(&name) else { return None };
                pinned.note_read(&name);
                on_table(query, table, &self.context)?
            }
        };
        let plan = plan.on(query, pinned.clone());
        self.still_allows(&plan).then_some(plan)
    }
}

/// The plan with the table that it reads in another state.
fn on_table(plan: &LogicalPlan, table: &Arc<Table>, context: &SessionContext) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(node) => {
            let mut node = node.clone();
            node.input = Arc::new(on_table(&node.input, table, context)?);
            Some(LogicalPlan::Projection(node))
        }
        LogicalPlan::Filter(node) => {
            let mut node = node.clone();
            node.input = Arc::new(on_table(&node.input, table, context)?);
            Some(LogicalPlan::Filter(node))
        }
        LogicalPlan::SubqueryAlias(node) => {
            let mut node = node.clone();
            node.input = Arc::new(on_table(&node.input, table, context)?);
            Some(LogicalPlan::SubqueryAlias(node))
        }
        LogicalPlan::TableScan(scan) => {
            let has_address = scan.source.schema().fields().len() > table.definition().columns.len();
            let provider = if has_address {
                table.addressed_provider(ADDRESS)
            } else {
                WithDefaults::wrap(table.provider(), table.definition(), context).ok()?
            };
            let mut scan = scan.clone();
            scan.source = provider_as_source(provider);
            Some(LogicalPlan::TableScan(scan))
        }
        _ => None,
    }
}

/// The table that a plan reads, where it reads one as it is.
fn table_of(plan: &LogicalPlan) -> Option<Arc<Table>> {
    let scan = FilteredScan::recognise(plan)?.scan;
    let provider = source_as_provider(&scan.source).ok()?;
    Table::read_by(without_defaults(provider.as_ref())).map(Arc::clone)
}

/// The name of a table, if a statement on this state finds just that.
fn name_of(table: &Table, pinned: &Pinned) -> Option<EntryName> {
    let mut all = pinned.shared().tables().chain(pinned.own().tables());
    all.find(|(_, there)| is_alike(there, table)).map(|(name, _)| name)
}

/// Whether both are the same table, perhaps with other rows.
fn is_alike(one: &Table, other: &Table) -> bool {
    one.id() == other.id() && Arc::ptr_eq(one.definition(), other.definition())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reuse::SESSION_KEY_LOOKUPS;
    use crate::session::key_lookup::tests::{engine, planned};
    use bowshot_api::Principal;
    use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
    use bowshot_tables::{Column, Definition};
    use datafusion::arrow::datatypes::{DataType, Field};
    use std::time::Instant;

    /// Whether the plan of a text is one that was made before.
    async fn is_reused(session: &EngineSession, sql: &str) -> bool {
        let began = Instant::now();
        planned(session, sql).await.made() < began
    }

    #[test]
    fn plans_by_templates_are_the_ordinary_ones() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let ordinary = engine.open_session(&Principal::anonymous()).unwrap();
            ordinary.set_config(SESSION_KEY_LOOKUPS, "false").unwrap();
            for (sql, expected) in [
                ("SELECT word FROM t WHERE id = 7", false),
                ("SELECT word FROM t WHERE id = 8", true),
                ("SELECT word FROM t WHERE id = 3000000000", true),
                ("SELECT word FROM t WHERE id = 9223372036854775808", false),
                ("SELECT word FROM t WHERE id = '8'", false),
                ("SELECT word FROM t WHERE id = '9'", false),
                ("SELECT word FROM t WHERE 9 = id", false),
                ("SELECT id FROM t WHERE id = 9", false),
                ("SELECT word FROM t AS a WHERE id = 9", false),
                ("SELECT word FROM t WHERE word = 'word 1'", false),
                ("SELECT word FROM t WHERE word = 'word 2'", false),
                ("SELECT word FROM t WHERE id = $1", false),
                ("SELECT word FROM t WHERE id = $1", true),
                ("select word from t where id = 9 -- as before", true),
            ] {
                assert_eq!(is_reused(&session, sql).await, expected, "{sql}");
                assert!(!is_reused(&ordinary, sql).await, "{sql}");
                let (plan, other) = (planned(&session, sql).await, planned(&ordinary, sql).await);
                assert_eq!(plan.planned().plan(), other.planned().plan(), "{sql}");
                assert_eq!(plan.planned().parameters(), other.planned().parameters(), "{sql}");
            }
        });
    }

    #[test]
    fn templates_end_with_what_they_were_made_of() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let sql = "SELECT word FROM t WHERE id = 7";
            assert!(!is_reused(&session, sql).await && is_reused(&session, sql).await);
            let other = engine.open_session(&Principal::anonymous()).unwrap();
            assert!(!is_reused(&other, sql).await, "another session");
            session.set_config("datafusion.execution.batch_size", "100").unwrap();
            assert!(!is_reused(&session, sql).await, "another setting");
            assert!(is_reused(&session, sql).await);
            let field = Arc::new(Field::new("id", DataType::Int32, false));
            let columns = vec![Column { field, default: None, comment: None }];
            let table = Arc::new(Table::new(Definition { columns, ..Definition::default() }));
            let (name, base) =
                (EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "u"), session.tables.shared.snapshot());
            let changed = base.with_entry(&name, Entry::Table(table)).unwrap();
            session.tables.shared.commit(&base, &Arc::new(changed)).unwrap();
            assert!(!is_reused(&session, sql).await, "another table is there");
            assert!(is_reused(&session, sql).await);
            let ended = other.templates.session;
            drop(other);
            assert!(session.templates.all.lock().iter().all(|entry| entry.session != ended));
        });
    }

    #[test]
    fn templates_serve_states_with_other_rows_and_keep_none() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for (sql, other) in [
                ("SELECT word FROM t WHERE id = 7", "SELECT word FROM t WHERE id = 8"),
                ("UPDATE t SET word = 'a' WHERE id = 7", "UPDATE t SET word = 'b' WHERE id = 8"),
                ("DELETE FROM t WHERE id = 7", "DELETE FROM t WHERE id = 8"),
                ("INSERT INTO t VALUES (2000, 'x')", "INSERT INTO t VALUES (2001, 'y')"),
            ] {
                assert!(!is_reused(&session, sql).await, "{sql}");
                let store = &session.tables.shared;
                let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "t");
                let base = store.snapshot();
                let Some(Entry::Table(table)) = base.entry(&name) else { panic!("no table") };
                let (left, _) = table.delete(store, &[0]).unwrap();
                let changed = base.with_entry(&name, Entry::Table(Arc::new(left))).unwrap();
                store.commit(&base, &Arc::new(changed)).unwrap();
                assert!(is_reused(&session, other).await, "{other}");
                let (plan, planned) = (planned(&session, other).await, {
                    let ordinary = engine.open_session(&Principal::anonymous()).unwrap();
                    ordinary.set_config(SESSION_KEY_LOOKUPS, "false").unwrap();
                    planned(&ordinary, other).await
                });
                assert_eq!(plan.planned().plan(), planned.planned().plan(), "{other}");
                assert!(plan.pinned().is_same(&session.pin()), "{other}");
                if let Some(table) = table_of(plan.planned().plan()) {
                    let Some(Entry::Table(newest)) = plan.pinned().entry(&name) else { panic!("no table") };
                    assert!(Arc::ptr_eq(&table, newest), "{other}");
                }
            }
            let entries = session.templates.all.lock();
            assert!(entries.iter().all(|entry| {
                entry.plan.plan.pinned().shared().tables().all(|(_, table)| table.rows() == 0)
            }));
        });
    }

    #[test]
    fn templates_are_few() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for number in 0..MAX_TEMPLATES + 10 {
                planned(&session, &format!("SELECT word AS w{number} FROM t WHERE id = 7")).await;
            }
            assert!(session.templates.all.lock().len() <= MAX_TEMPLATES);
            assert!(!is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 7").await);
            assert!(is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 8").await);
        });
    }
}
