//! Finds plans that were made before: that of the same text, or that of a key lookup whose text differs in literals alone, as
//! `WHERE key = 1` and `WHERE key = 2`. The settings, the snapshot and the rights must be the same.

use crate::authorize::{Action, AuthorizedPlan};
use crate::reuse::SessionCache;
use crate::session::EngineSession;
use crate::session::key_lookup::is_key_lookup;
use crate::session::plan_cache::PlanKey;
use crate::session::repeatable::{is_repeatable, reuses_plans};
use bowshot_api::Result;
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::Statement;
use bowshot_sql::rewrite::Source;
use datafusion::common::ScalarValue;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value,
};
use std::sync::Arc;

impl EngineSession {
    /// The plan of the same text, if one may be used again.
    ///
    /// # Errors
    /// `Denied` by whoever decides on statements beside the rules; `Unavailable` without that decision.
    pub(super) async fn plan_of_text(&self, sql: &str, pinned: &Pinned) -> Result<Option<AuthorizedPlan>> {
        let options = self.options();
        if !reuses_plans(&options) {
            return Ok(None);
        }
        let is_text = |key: &PlanKey| matches!(key, PlanKey::Text(text) if **text == *sql);
        let Some(plan) = self.cached_plan(&options, pinned, is_text) else { return Ok(None) };
        self.decide_again(&plan).await?;
        Ok(Some(plan))
    }

    /// Keeps a plan for the next time that its text comes, if it may be used then. `options` are those that it was made with.
    /// Key lookups have plans for all their literals.
    pub(super) fn keep_plan(&self, sql: &str, options: Arc<ConfigOptions>, plan: &AuthorizedPlan) {
        let is_same = Arc::ptr_eq(&options, &self.options()) && reuses_plans(&options);
        let is_query = matches!(plan.action(), Action::Query) && plan.is_small() && !is_key_lookup(plan);
        if is_same && is_query && is_repeatable(plan.planned().plan()) {
            self.plans.add(PlanKey::Text(Arc::from(sql)), options, plan);
        }
    }

    /// Whether the next one who asks for this gets a plan that is there.
    pub(super) fn has_plan(&self, plan: &LogicalPlan) -> bool {
        let (options, pinned) = (self.options(), self.pin());
        let is_same = |there: &AuthorizedPlan| there.planned().plan() == plan;
        self.plans.find(|cached| cached.is_for(&options, &pinned) && is_same(&cached.plan)).is_some()
    }

    /// A plan that was made with the same settings and rights over the same tables. The rule is that of the plans of prepared
    /// statements.
    fn cached_plan(
        &self,
        options: &Arc<ConfigOptions>,
        pinned: &Pinned,
        is_wanted: impl Fn(&PlanKey) -> bool,
    ) -> Option<AuthorizedPlan> {
        let found = self.plans.find(|cached| is_wanted(&cached.key) && cached.is_for(options, pinned));
        let (plan, counts) = found.filter(|(plan, _)| self.still_allows(plan))?;
        counts.hit();
        Some(plan)
    }

    /// Takes the literals out of a statement that may be a key lookup, and leaves blanks. `None` for other statements, and where
    /// the session looks up no keys.
    pub(super) fn take_literals(&self, statement: &mut Statement) -> Option<Vec<Value>> {
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
        (mut statement, literals): (Statement, Vec<Value>),
        pinned: &Pinned,
        source: Source<'_>,
    ) -> Result<AuthorizedPlan> {
        let options = self.options();
        let values: Vec<ScalarValue> = literals.iter().filter_map(value).collect();
        let is_blank = |key: &PlanKey| match (key, &statement) {
            (PlanKey::Blank(blank), Statement::Sql(statement)) => blank == statement,
            _ => false,
        };
        if let Some(plan) = self.cached_plan(&options, pinned, is_blank)
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
        if let Some(statement) = blank.filter(|_| is_template) {
            self.plans.add(PlanKey::Blank(statement), options, &plan);
        }
        Ok(plan)
    }
}

fn take_literals(statement: &mut ast::Statement) -> Option<Vec<Value>> {
    let taken = literals(statement)?.into_iter().map(|literal| {
        let blank = match literal {
            Value::Number(..) => Value::Number("0".to_owned(), false),
            _ => Value::SingleQuotedString(String::new()),
        };
        std::mem::replace(literal, blank)
    });
    Some(taken.collect())
}

/// Puts literals where they were taken from.
fn put_literals(statement: &mut ast::Statement, taken: Vec<Value>) {
    let places = literals(statement).unwrap_or_default();
    places.into_iter().zip(taken).for_each(|(place, literal)| *place = literal);
}

/// The literals of `SELECT columns FROM table WHERE column = value AND …`, each a whole number, a text or a parameter.
fn literals(statement: &mut ast::Statement) -> Option<Vec<&mut Value>> {
    let ast::Statement::Query(query) = statement else { return None };
    if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
        return None;
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let is_table = matches!(from.relation, TableFactor::Table { args: None, version: None, .. });
    if !is_table || !from.joins.is_empty() || !select.projection.iter().all(is_plain) {
        return None;
    }
    let mut found = Vec::new();
    add_literals(select.selection.as_mut()?, &mut found)?;
    Some(found)
}

fn is_plain(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_column(expr),
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => true,
        _ => false,
    }
}

fn is_column(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
}

fn add_literals<'s>(condition: &'s mut ast::Expr, found: &mut Vec<&'s mut Value>) -> Option<()> {
    let ast::Expr::BinaryOp { left, op, right } = condition else { return None };
    match op {
        BinaryOperator::And => {
            add_literals(left, found)?;
            add_literals(right, found)
        }
        BinaryOperator::Eq => {
            let (column, other) = if is_column(left) { (left, right) } else { (right, left) };
            let ast::Expr::Value(literal) = &mut **other else { return None };
            if !is_column(column) {
                return None;
            }
            if !matches!(literal.value, Value::Placeholder(_)) {
                value(&literal.value)?;
                found.push(&mut literal.value);
            }
            Some(())
        }
        _ => None,
    }
}

/// The value that the planner makes of a literal. `None` for all that is no `Int64` and no plain text.
fn value(literal: &Value) -> Option<ScalarValue> {
    match literal {
        Value::Number(digits, false) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().ok().map(|number| ScalarValue::Int64(Some(number)))
        }
        Value::SingleQuotedString(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
        _ => None,
    }
}

/// The plan of a key lookup with other literals, which are of the same types and in the order of the text.
fn with_literals(plan: &LogicalPlan, values: &[ScalarValue]) -> Option<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return None };
    let (mut projection, mut filter) = (projection.clone(), filter.clone());
    let mut values = values.iter();
    replace_literals(&mut filter.predicate, &mut values)?;
    if values.next().is_some() {
        return None;
    }
    projection.input = Arc::new(LogicalPlan::Filter(filter));
    Some(LogicalPlan::Projection(projection))
}

fn replace_literals(predicate: &mut Expr, values: &mut std::slice::Iter<'_, ScalarValue>) -> Option<()> {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            replace_literals(left, values)?;
            replace_literals(right, values)
        }
        Expr::Literal(literal, None) => {
            let value = values.next()?;
            if literal.data_type() != value.data_type() {
                return None;
            }
            *literal = value.clone();
            Some(())
        }
        Expr::Column(_) | Expr::Placeholder(_) => Some(()),
        _ => None,
    }
}

/// Whether a plan has these literals and no others, in this order. Equal ones do not tell.
fn are_literals_of(plan: &LogicalPlan, values: &[ScalarValue]) -> bool {
    let are_different =
        values.iter().enumerate().all(|(at, value)| !values.iter().skip(at + 1).any(|other| other == value));
    are_different && with_literals(plan, values).is_some_and(|same| same == *plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::{Parallelism, merged};
    use crate::plan;
    use crate::reuse::SESSION_KEY_LOOKUPS;
    use crate::session::engine::EngineConfig;
    use crate::session::key_lookup::tests::{engine, planned};
    use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
    use bowshot_api::{Layout, Principal};
    use bowshot_tables::{Column, Definition, Entry, EntryName, Table};
    use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
    use datafusion::arrow::record_batch::RecordBatch;
    use futures::TryStreamExt;
    use std::time::Instant;

    /// Whether the plan of a text is one that was made before.
    async fn is_reused(session: &EngineSession, sql: &str) -> bool {
        let began = Instant::now();
        planned(session, sql).await.made() < began
    }

    #[test]
    fn literals_are_taken_from_conditions_alone_and_put_back() {
        let engine = engine();
        let session = engine.open_session(&Principal::anonymous()).unwrap();
        for (sql, expected) in [
            ("SELECT word FROM t WHERE id = 7", Some(1)),
            ("SELECT *, id AS a, t.* FROM t WHERE 'x' = word AND t.id = 7 AND id = $1", Some(2)),
            ("SELECT * FROM t WHERE id = $1", Some(0)),
            ("SELECT * FROM t WHERE id = 9223372036854775807", Some(1)),
            ("SELECT * FROM t WHERE id = 9223372036854775808", None),
            ("SELECT * FROM t WHERE id = -7", None),
            ("SELECT * FROM t WHERE id = 7.0", None),
            ("SELECT * FROM t WHERE id = NULL", None),
            ("SELECT * FROM t WHERE 7 = 7", None),
            ("SELECT * FROM t WHERE id = 7 OR id = 8", None),
            ("SELECT id + 1 FROM t WHERE id = 7", None),
            ("SELECT * FROM t WHERE id = 7 LIMIT 1", None),
            ("SELECT * FROM t WHERE id = 7 ORDER BY id", None),
            ("SELECT * FROM t, t AS u WHERE t.id = 7", None),
            ("SELECT * FROM (SELECT * FROM t) AS u WHERE id = 7", None),
            ("SELECT * FROM t", None),
            ("DELETE FROM t WHERE id = 7", None),
        ] {
            let parsed = || plan::parse(&session.options(), sql).unwrap();
            let (Statement::Sql(mut statement), Statement::Sql(written)) = (parsed(), parsed()) else {
                panic!("{sql}")
            };
            let taken = take_literals(&mut statement);
            assert_eq!(taken.as_ref().map(Vec::len), expected, "{sql}");
            assert_eq!(statement == written, expected.unwrap_or(0) == 0, "{sql}");
            put_literals(&mut statement, taken.unwrap_or_default());
            assert_eq!(statement, written, "{sql}");
        }
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
            assert!(!is_reused(&session, sql).await, "another snapshot");
            assert!(is_reused(&session, sql).await);
            let ended = other.plans.session();
            drop(other);
            assert!(!session.plans.all().has_plans_of(ended));
        });
    }

    #[test]
    fn plans_go_along_with_commits_that_change_rows_alone() {
        let engine = engine();
        engine.runtime().handle().block_on(async {
            let session = engine.open_session(&Principal::anonymous()).unwrap();
            let (sql, lookup) = ("SELECT max(id) AS m FROM t", "SELECT word FROM t WHERE id = 7");
            for sql in [sql, lookup] {
                assert!(!is_reused(&session, sql).await && is_reused(&session, sql).await, "{sql}");
            }
            let base = session.pin();
            let name = EntryName::new(DEFAULT_CATALOG, DEFAULT_SCHEMA, "t");
            let Some(Entry::Table(table)) = base.entry(&name) else { panic!("there is a table") };
            let columns: Vec<ArrayRef> =
                vec![Arc::new(Int32Array::from(vec![5_000])), Arc::new(StringArray::from(vec!["new"]))];
            let rows = RecordBatch::try_new(table.schema(), columns).unwrap();
            let segment = session.tables.shared.segment(&rows).unwrap();
            let entry = Entry::Table(Arc::new(table.append(vec![segment])));
            let changed =
                base.changed(DEFAULT_CATALOG, |snapshot| snapshot.with_entry(&name, entry)).unwrap();
            session.commit(&base, &changed).await.unwrap();
            for sql in [sql, lookup] {
                assert!(is_reused(&session, sql).await, "{sql}");
                assert!(planned(&session, sql).await.pinned().is_same(&session.pin()), "{sql}");
            }
            let plan = planned(&session, sql).await;
            let execution = session.execute(&plan, &[], Parallelism::Default, Layout::default());
            let rows: Vec<RecordBatch> =
                merged(execution.await.unwrap().streams).try_collect().await.unwrap();
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].column(0).as_primitive::<Int32Type>().values(), &[5_000]);
            let base = session.pin();
            let gone = base.changed(DEFAULT_CATALOG, |snapshot| snapshot.without_entry(&name)).unwrap();
            session.commit(&base, &gone).await.unwrap();
            assert!(!session.plans.all().has_plans_of(session.plans.session()), "another definition");
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
            assert!(session.plans.all().len() <= most);
            assert!(!is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 7").await);
            assert!(is_reused(&session, "SELECT word AS w0 FROM t WHERE id = 8").await);
        });
    }
}
