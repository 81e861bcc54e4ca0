//! The row of a query that was optimized to literals, as `SELECT 1` and `SELECT version()` are, without a physical plan: making one
//! takes longer than all the rest of such a query.

use crate::authorize::AuthorizedPlan;
use crate::authorize::optimized_slot::NextRun;
use crate::error::classify;
use crate::session::EngineSession;
use crate::session::cacheable_plan::Bound;
use crate::session::key_lookup::is_key_lookup;
use crate::session::plan_cache::CachedPlan;
use bowshot_api::{BatchStream, Layout, Result};
use bowshot_policy::snapshot::Pinned;
use bowshot_sql::{PlainSelect, is_small};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan};
use std::sync::Arc;

/// Whether a plan is known to give its rows from memory within microseconds: those with a key, or literals.
pub fn answers_at_once(plan: &AuthorizedPlan) -> bool {
    is_key_lookup(plan)
        || matches!(plan.optimized().get(), NextRun::Reuses(optimized) if literals(&optimized.plan).is_some())
}

impl EngineSession {
    /// Whether the plan cache has a plan for this text that [`answers_at_once`].
    pub fn has_quick_plan(&self, sql: &str) -> bool {
        let (options, select) = (self.options(), PlainSelect::read(sql));
        let is_wanted = |cached: &CachedPlan| {
            let is_of_form = select.as_ref().is_some_and(|select| cached.is_of_form(select));
            (is_of_form || cached.is_of_text(sql)) && cached.is_for(&options)
        };
        self.plans.find(is_wanted).is_some_and(|(plan, _)| answers_at_once(plan.plan()))
    }

    /// The same plan on the tables of one moment. `None` where a service decides on statements beside the rules: asking it takes
    /// longer.
    pub fn quick_plan(&self, sql: &str, pinned: &Pinned) -> Option<AuthorizedPlan> {
        let is_planned_anew = self.scratch || self.has_decider() || pinned.input().is_some();
        if is_planned_anew || !is_small(sql) || self.settle_search_path(pinned).is_err() {
            return None;
        }
        self.known_plan(sql, pinned).filter(answers_at_once)
    }

    /// Whether this run of a plan has nothing to optimize, and gives literals.
    pub(super) fn has_literals(&self, plan: &AuthorizedPlan, bound: Bound<'_>) -> bool {
        matches!(plan.optimized().get(), NextRun::Reuses(optimized)
            if optimized.made_for == self.made_for(bound) && literals(&optimized.plan).is_some())
    }

    /// To be called before what takes longer than waking another thread: a statement that has begun on the thread of a connection
    /// goes on on the query runtime.
    pub(super) async fn leave_connection(&self) {
        if !self.shared.runtime.is_here() {
            tokio::task::yield_now().await;
        }
    }
}

/// The row of an optimized query of literals, laid out as `schema` says; `None` for other queries.
///
/// # Errors
/// `Internal` for a plan whose schema is not that of its values.
pub(super) fn row(plan: &LogicalPlan, layout: Layout, schema: &SchemaRef) -> Result<Option<BatchStream>> {
    let Some(values) = literals(plan) else { return Ok(None) };
    let columns = values.into_iter().map(ScalarValue::to_array).collect::<Result<Vec<ArrayRef>, _>>();
    let row = RecordBatch::try_new(Arc::clone(plan.schema().inner()), columns.map_err(classify)?);
    let row = row.map_err(|error| classify(error.into()))?;
    Ok(Some(BatchStream::from_batches(SchemaRef::clone(schema), vec![layout.apply(row, schema)?])))
}

fn literals(plan: &LogicalPlan) -> Option<Vec<&ScalarValue>> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let is_one_row = matches!(
        projection.input.as_ref(),
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, .. })
    );
    if !is_one_row || projection.expr.is_empty() {
        return None;
    }
    projection.expr.iter().map(literal).collect()
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Parallelism;
    use crate::session::key_lookup::tests::{engine, planned};
    use bowshot_api::Principal;
    use futures::future::poll_immediate;

    #[test]
    fn what_has_to_be_planned_leaves_the_thread_of_the_connection() {
        let engine = engine();
        let session = engine.open_session(&Principal::anonymous()).unwrap();
        let connection = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let run = |sql: &'static str, layout: Layout| {
            let session = session.clone();
            async move {
                let plan = planned(&session, sql).await;
                session.execute(&plan, &[], Parallelism::Default, layout).await.unwrap();
            }
        };
        for (sql, is_quick) in [("SELECT 1 + 1", true), ("SELECT count(*) FROM t WHERE word > 'a'", false)] {
            let begun =
                |layout: Layout| connection.block_on(poll_immediate(Box::pin(run(sql, layout)))).is_some();
            assert!(!begun(Layout::default()), "{sql}: planned");
            for _ in 0..2 {
                engine.runtime().handle().block_on(run(sql, Layout::default()));
            }
            assert_eq!(session.has_quick_plan(sql), is_quick, "{sql}");
            assert_eq!(begun(Layout::default()), is_quick, "{sql}: run again");
            let other = Layout { views: true, ..Layout::default() };
            assert!(!begun(other), "{sql}: optimized anew");
        }
    }

    #[test]
    fn lookups_of_a_known_form_are_not_parsed() {
        let engine = engine();
        let session = engine.open_session(&Principal::anonymous()).unwrap();
        let connection = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let run = |sql: &'static str| {
            let session = session.clone();
            async move {
                let plan = planned(&session, sql).await;
                session.execute(&plan, &[], Parallelism::Default, Layout::default()).await.unwrap()
            }
        };
        let begun = |sql: &'static str| connection.block_on(poll_immediate(Box::pin(run(sql))));
        assert!(begun("SELECT word FROM t WHERE id = 7").is_none());
        for _ in 0..2 {
            engine.runtime().handle().block_on(run("SELECT word FROM t WHERE id = 7"));
            engine.runtime().handle().block_on(run("SELECT word FROM t WHERE id = 7 LIMIT 21"));
        }
        for (sql, rows) in [
            ("SELECT word FROM t WHERE id = 8", Some(1)),
            ("SELECT word FROM t WHERE id = 0999;", Some(1)),
            ("SELECT word FROM t WHERE id = 1000", Some(0)),
            ("SELECT word FROM t WHERE id = 8 LIMIT 21", Some(1)),
            // Parsed, and answered in the same way.
            ("SELECT word FROM t WHERE  id = 8", None),
            ("SELECT word FROM t WHERE id = -8", None),
            ("SELECT word FROM t WHERE id = 8 LIMIT 1", None),
            ("SELECT id FROM t WHERE id = 8", None),
        ] {
            assert_eq!(session.has_quick_plan(sql), rows.is_some(), "{sql}");
            let quick = session.quick_plan(sql, &session.pin());
            assert_eq!(quick.is_some(), rows.is_some(), "{sql}");
            assert_eq!(begun(sql).and_then(|execution| execution.rows), rows, "{sql}");
        }
        engine.runtime().handle().block_on(run("SELECT word FROM t WHERE  id = 8"));
        assert!(begun("SELECT word FROM t WHERE  id = 9").is_some(), "in another spelling, once parsed");
        session.set_config("datafusion.execution.batch_size", "100").unwrap();
        assert!(!session.has_quick_plan("SELECT word FROM t WHERE id = 8"), "other settings");
    }
}
