//! Finds plans that were made before: that of the same text, or that of a statement about the rows with a key, or of rows that are
//! written out, whose text differs in literals alone, as `WHERE key = 1` and `WHERE key = 2`. The settings, the rights, and the tables
//! but for their rows must be the same. A lookup by a key whose text has the form of one that was parsed is not parsed again.

use crate::authorize::{Action, AuthorizedPlan};
use crate::plan;
use crate::reuse::SessionCache;
use crate::session::EngineSession;
use crate::session::cacheable_plan::{is_repeatable, reuses_plans};
use crate::session::plan_cache::{CachedPlan, PlanKey};
use crate::session::statement_literals::{
    Taken, are_literals_of, has_values, plain_value, put_literals, take_literals, with_literals,
};
use crate::session::update_by_key::is_change_by_key;
use crate::write::Write;
use crate::write::scalar_rows::are_scalar;
use crate::write::values::is_zero;
use bowshot_api::Result;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::rewrite::Source;
use bowshot_sql::{DialectName, PlainSelect, Statement};
use bowshot_tables::Entry;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

impl EngineSession {
    /// The plan of the same text, if one may be used again. A serializable transaction plans anew: it notes each name that
    /// planning looks up.
    ///
    /// # Errors
    /// `Denied` by whoever decides on statements beside the rules; `Unavailable` without that decision.
    pub(super) async fn plan_of_text(&self, sql: &str, pinned: &Pinned) -> Result<Option<AuthorizedPlan>> {
        let Some(plan) = self.known_plan(sql, pinned) else { return Ok(None) };
        self.decide_again(&plan).await?;
        Ok(Some(plan))
    }

    /// The same by the rules of this server alone: of the same text, or of one that has the form of another.
    pub(super) fn known_plan(&self, sql: &str, pinned: &Pinned) -> Option<AuthorizedPlan> {
        let options = self.options();
        if !reuses_plans(&options) || pinned.is_serializable() {
            return None;
        }
        let of_form = PlainSelect::read(sql).and_then(|select| {
            let find = |cached: &CachedPlan| cached.is_for(&options) && cached.is_of_form(&select);
            let (bare, counts) = self.plans.find(find)?;
            let literals = select.literals().iter().map(plain_value).collect();
            let plan = bare.on_with_literals(pinned, literals).filter(|plan| self.still_allows(plan))?;
            counts.hit();
            Some(plan)
        });
        match of_form {
            Some(plan) if self.asks_again() => Some(plan.with_text(sql)),
            Some(plan) => Some(plan),
            None => self.cached_plan(&options, pinned, |cached| cached.is_of_text(sql)),
        }
    }

    /// Keeps a plan for the next time that its text comes, if it may be used then. `options` are those that it was made with.
    /// Key lookups have plans for all their literals.
    pub(super) fn keep_plan(&self, sql: &str, options: Arc<ConfigOptions>, plan: &AuthorizedPlan) {
        let is_same = Arc::ptr_eq(&options, &self.options()) && reuses_plans(&options);
        let is_query = matches!(plan.action(), Action::Query) && plan.is_small();
        if is_same && is_query && !self.may_be_lookup_template(plan) && is_repeatable(plan.planned().plan()) {
            self.plans.add(PlanKey::Text(Arc::from(sql)), None, options, plan);
        }
    }

    /// Whether the next one who asks for this gets a plan that is there.
    pub(super) fn has_plan(&self, plan: &LogicalPlan) -> bool {
        let options = self.options();
        let is_same =
            |cached: &CachedPlan| cached.is_for(&options) && cached.plan.plan().planned().plan() == plan;
        self.plans.find(is_same).is_some_and(|(there, _)| there.fits(&self.pin()))
    }

    /// A plan that was made with the same settings and rights over the same tables, on the rows that they have now. The rule is
    /// that of the plans of prepared statements.
    fn cached_plan(
        &self,
        options: &Arc<ConfigOptions>,
        pinned: &Pinned,
        is_wanted: impl Fn(&CachedPlan) -> bool,
    ) -> Option<AuthorizedPlan> {
        let found = self.plans.find(|cached| cached.is_for(options) && is_wanted(cached));
        let (bare, counts) = found?;
        let plan = bare.on(pinned).filter(|plan| self.still_allows(plan))?;
        counts.hit();
        Some(plan)
    }

    /// Takes the literals out of a statement that may have a template, and leaves blanks. `None` for other statements, and where
    /// the session looks up no keys or uses no plan again.
    pub(super) fn take_literals(&self, statement: &mut Statement) -> Option<Taken> {
        let Statement::Sql(statement) = statement else { return None };
        let options = self.options();
        let is_on = options
            .extensions
            .get::<SessionCache>()
            .is_some_and(|session| session.key_lookups && session.plans);
        if is_on { take_literals(statement) } else { None }
    }

    /// Plans and authorizes a statement whose literals were taken out, or uses the plan of one like it.
    ///
    /// # Errors
    /// As [`EngineSession::plan`].
    pub(super) async fn plan_by_template(
        &self,
        (mut statement, Taken { literals, values }): (Statement, Taken),
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<AuthorizedPlan> {
        let options = self.options();
        let select = PlainSelect::read(source.text).filter(|select| {
            let known: Vec<ScalarValue> = values.iter().flatten().cloned().collect();
            has_values(select, &known)
        });
        let is_blank = |cached: &CachedPlan| match (&cached.key, &statement) {
            (PlanKey::Blank(blank), Statement::Sql(statement)) => blank == statement,
            _ => false,
        };
        if let Some(plan) = self.cached_plan(&options, pinned, is_blank)
            && !self.may_ask_for_numbers(&plan, &literals)
            && let Some(replaced) = with_literals(plan.planned().plan(), &values)
        {
            if let Some(select) = &select {
                self.plans.add_form(select, |cached| cached.is_for(&options) && is_blank(cached));
            }
            let plan = plan.with_literals(replaced);
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
        if let Some(statement) = blank.filter(|_| is_template) {
            self.plans.add(PlanKey::Blank(statement), select.as_ref(), options, &plan);
        }
        Ok(plan)
    }

    /// Whether a zero among the literals may ask for the next number of a column, as in MySQL.
    fn may_ask_for_numbers(&self, plan: &AuthorizedPlan, literals: &[ast::Expr]) -> bool {
        let Action::Write(change) = plan.action() else { return false };
        let Write::Insert(to) = change.write.as_ref() else { return false };
        let numbers_itself = || match plan.pinned().entry(&to.name) {
            Some(Entry::Table(table)) => !table.definition().identities.is_empty(),
            _ => true,
        };
        let is_mysql = plan::dialect(&self.options()).name() == DialectName::MySql;
        is_mysql && literals.iter().any(is_zero) && numbers_itself()
    }

    /// Whether other values of the same types make the same plan.
    fn may_be_template(&self, plan: &AuthorizedPlan) -> bool {
        let change = match plan.action() {
            Action::Query => return self.may_be_lookup_template(plan),
            Action::Write(change) if change.before.is_empty() => change,
            _ => return false,
        };
        if change.returning.as_ref().is_some_and(|returning| !are_scalar(returning.plan())) {
            return false;
        }
        match change.write.as_ref() {
            Write::Insert(_) => true,
            Write::Update(_) | Write::Delete(_) => is_change_by_key(plan.planned().plan()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::optimized_slot::NextRun;
    use crate::execute::{Parallelism, merged};
    use crate::reuse::SESSION_PLANS;
    use crate::session::engine::EngineConfig;
    use crate::session::key_lookup::tests::{engine, planned};
    use crate::session::plan_binding::tables_of;
    use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
    use bowshot_api::{Layout, Principal};
    use bowshot_tables::{Column, Definition, Entry, EntryName, Key, Table};
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
    use datafusion::arrow::record_batch::RecordBatch;
    use futures::TryStreamExt;
    use std::time::Instant;

    /// Whether the plan of a text is one that was made before.
    async fn is_reused(session: &EngineSession, sql: &str) -> bool {
        let began = Instant::now();
        planned(session, sql).await.made() < began
    }

    /// Commits `t` without its first row that is left.
    fn delete_a_row(session: &EngineSession) {
        let store = &session.tables.shared;
        let (name, base) = (EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "t"), store.snapshot());
        let Some(Entry::Table(table)) = base.entry(&name) else { panic!("there is a table") };
        let (left, _) = table.delete(store, &[0]).unwrap();
        let changed = base.with_entry(&name, Entry::Table(Arc::new(left))).unwrap();
        store.commit(&base, &Arc::new(changed)).unwrap();
    }

    /// Whether a plan is on tables that have no rows.
    fn is_bare(plan: &LogicalPlan) -> bool {
        tables_of(plan).is_some_and(|tables| tables.iter().all(|table| table.rows() == 0))
    }

    /// The least id, and whether it was optimized before.
    async fn least(session: &EngineSession, sql: &str) -> (i32, bool) {
        let plan = planned(session, sql).await;
        let is_optimized = matches!(plan.optimized().get(), NextRun::Reuses(_));
        let execution = session.execute(&plan, &[], Parallelism::Default, Layout::default()).await.unwrap();
        let rows: Vec<RecordBatch> = merged(execution.streams).try_collect().await.unwrap();
        (rows[0].column(0).as_primitive::<Int32Type>().value(0), is_optimized)
    }

    #[test]
    fn templates_end_with_what_they_were_made_of() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let other = engine.open_session(&Principal::anonymous()).unwrap();
            for (at, sql) in
                ["SELECT word FROM t WHERE id = 7", "SELECT max(id) AS m FROM t"].into_iter().enumerate()
            {
                assert!(!is_reused(&session, sql).await && is_reused(&session, sql).await);
                assert!(!is_reused(&other, sql).await, "another session");
                session.set_config("datafusion.execution.batch_size", &format!("10{at}")).unwrap();
                assert!(!is_reused(&session, sql).await, "another setting");
                assert!(is_reused(&session, sql).await);
                let field = Arc::new(Field::new("id", DataType::Int32, false));
                let columns = vec![Column { field, default: None, comment: None }];
                let table = Arc::new(Table::new(Definition { columns, ..Definition::default() }));
                let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, format!("u{at}"));
                let base = session.tables.shared.snapshot();
                let changed = base.with_entry(&name, Entry::Table(table)).unwrap();
                session.tables.shared.commit(&base, &Arc::new(changed)).unwrap();
                assert!(!is_reused(&session, sql).await, "another table is there");
                assert!(is_reused(&session, sql).await);
            }
            let ended = other.plans.session();
            drop(other);
            assert!(!session.plans.all().has_plans_of(ended));
        });
    }

    /// Commits `u`, whose key is a text.
    fn add_texts(session: &EngineSession) {
        let column = |name: &str, data_type| {
            let field = Arc::new(Field::new(name, data_type, false));
            Column { field, default: None, comment: None }
        };
        let columns = vec![column("code", DataType::Utf8), column("n", DataType::Int32)];
        let key = Key { name: None, columns: vec!["code".to_owned()], comment: None };
        let definition = Definition { columns, primary_key: Some(key), ..Definition::default() };
        let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "u");
        let base = session.tables.shared.snapshot();
        let changed = base.with_entry(&name, Entry::Table(Arc::new(Table::new(definition)))).unwrap();
        session.tables.shared.commit(&base, &Arc::new(changed)).unwrap();
    }

    /// What stands where a lookup has its literal, each behind a bar.
    const LITERALS: &str = r#"7|8|007|9223372036854775807|9223372036854775808|-8|+8|8.0|8.|8e0|0x8|8_0|NULL|TRUE|$1|?
        |'8'|'x'|''|'%'|'it''s'|'a\'b'|'a\n'|'a' 'b'|E'a'|N'a'|X'61'|_utf8'a'|_utf8 'a'|"x"|`id`|'8'::int|(8)|8 + 1
        |8 -- c|8 # c|8 /* c */|8;|8 LIMIT 1|8 ORDER BY 1|8 OR id = 9|8 AND id = 9|DATE '2020-01-01'|INTERVAL '1' day"#;

    #[test]
    fn texts_mean_what_they_mean_when_they_are_parsed() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let open = |dialect: Option<&str>| {
                let session = engine.open_session(&Principal::anonymous()).unwrap();
                if let Some(dialect) = dialect {
                    session.set_config("datafusion.sql_parser.dialect", dialect).unwrap();
                }
                session
            };
            add_texts(&open(None));
            for dialect in [None, Some("postgresql"), Some("mysql")] {
                let (session, ordinary) = (open(dialect), open(dialect));
                ordinary.set_config(SESSION_PLANS, "false").unwrap();
                for begin in ["SELECT word FROM t WHERE id = ", "SELECT * FROM u WHERE code = "] {
                    // Those that come later find what the earlier ones have left.
                    for literal in LITERALS.split('|').chain(LITERALS.rsplit('|')) {
                        let sql = format!("{begin}{literal}");
                        let plan = session.plan(&sql, &session.pin()).await;
                        let other = ordinary.plan(&sql, &ordinary.pin()).await;
                        assert_eq!(meaning(plan), meaning(other), "{dialect:?} {sql}");
                    }
                }
                let fresh = open(dialect);
                for (sql, other, is_quick) in [
                    ("SELECT word FROM t WHERE id = 7", "SELECT word FROM t WHERE id = 8", true),
                    // MySQL compares texts otherwise.
                    (
                        "SELECT * FROM u WHERE code = 'a'",
                        "SELECT * FROM u WHERE code = 'b'",
                        dialect != Some("mysql"),
                    ),
                ] {
                    planned(&fresh, sql).await;
                    assert_eq!(fresh.has_quick_plan(other), is_quick, "{dialect:?} {other}");
                }
            }
        });
    }

    /// The plan, or what is wrong with the statement.
    fn meaning(plan: Result<AuthorizedPlan>) -> std::result::Result<LogicalPlan, String> {
        plan.map(|plan| plan.planned().plan().clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn plans_serve_states_with_other_rows_and_keep_none() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            for (sql, other) in [
                ("SELECT max(id) AS m FROM t", "SELECT max(id) AS m FROM t"),
                ("SELECT word FROM t WHERE id = 7", "SELECT word FROM t WHERE id = 8"),
                (
                    "SELECT word FROM t WHERE id = 7 ORDER BY word LIMIT 21",
                    "SELECT word FROM t WHERE id = 8 ORDER BY word LIMIT 21",
                ),
                ("UPDATE t SET word = 'a' WHERE id = 7", "UPDATE t SET word = 'b' WHERE id = 8"),
                ("DELETE FROM t WHERE id = 7", "DELETE FROM t WHERE id = 8"),
                ("INSERT INTO t VALUES (2000, 'x')", "INSERT INTO t VALUES (2001, 'y')"),
                ("INSERT INTO t (id) VALUES (2002)", "INSERT INTO t (id) VALUES (2003)"),
                ("INSERT INTO t VALUES (2004, DEFAULT)", "INSERT INTO t VALUES (2005, DEFAULT)"),
                ("INSERT INTO t VALUES (2006, now())", "INSERT INTO t VALUES (2007, now())"),
                (
                    "INSERT INTO t VALUES (2008, 'x') RETURNING id, upper(word)",
                    "INSERT INTO t VALUES (2009, 'y') RETURNING id, upper(word)",
                ),
                ("DELETE FROM t WHERE id = 7 RETURNING *", "DELETE FROM t WHERE id = 8 RETURNING *"),
            ] {
                assert!(!is_reused(&session, sql).await, "{sql}");
                delete_a_row(&session);
                assert!(is_reused(&session, other).await, "{other}");
                let ordinary = engine.open_session(&Principal::anonymous()).unwrap();
                ordinary.set_config(SESSION_PLANS, "false").unwrap();
                let (plan, anew) = (planned(&session, other).await, planned(&ordinary, other).await);
                assert_eq!(plan.planned().plan(), anew.planned().plan(), "{other}");
                assert!(plan.pinned().is_same(&session.pin()), "{other}");
                let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "t");
                let Some(Entry::Table(newest)) = plan.pinned().entry(&name) else { panic!("no table") };
                let read = tables_of(plan.planned().plan()).unwrap();
                assert!(read.iter().all(|table| Arc::ptr_eq(table, newest)), "{other}");
            }
            for bare in session.plans.all().bare_plans() {
                let pinned = bare.plan().pinned();
                assert!(pinned.shared().tables().all(|(_, table)| table.rows() == 0));
                assert!(is_bare(bare.plan().planned().plan()));
            }
        });
    }

    #[test]
    fn optimized_plans_serve_states_with_other_rows_and_keep_none() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let joined = "SELECT min(a.id) AS m FROM t AS a JOIN t AS b USING (id)";
            for (at, sql) in ["SELECT min(id) AS m FROM t", joined].into_iter().enumerate() {
                let first = i32::try_from(at).unwrap();
                assert_eq!(least(&session, sql).await, (first, false), "{sql}");
                assert_eq!(least(&session, sql).await, (first, true), "{sql}");
                delete_a_row(&session);
                assert_eq!(least(&session, sql).await, (first + 1, true), "{sql}");
            }
            for bare in session.plans.all().bare_plans() {
                let NextRun::Reuses(optimized) = bare.plan().optimized().get() else { panic!("it ran") };
                assert!(is_bare(&optimized.plan));
            }
        });
    }

    #[test]
    fn templates_are_few() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let most = EngineConfig::default().plan_cache_entries;
            for number in 0..most + 10 {
                planned(&session, &format!("SELECT word AS w{number} FROM t WHERE id = 7")).await;
            }
            assert!(session.plans.all().bare_plans().len() <= most);
            assert!(!is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 7").await);
            assert!(is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 8").await);
        });
    }
}
