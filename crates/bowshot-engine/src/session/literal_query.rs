//! The row of a query that was optimized to literals, as `SELECT 1` and `SELECT version()` are, without a physical plan: making one
//! takes longer than all the rest of such a query.

use crate::authorize::AuthorizedPlan;
use crate::authorize::optimized_slot::NextRun;
use crate::error::classify;
use crate::session::EngineSession;
use crate::session::key_lookup::is_key_lookup;
use crate::session::plan_cache::PlanKey;
use crate::session::repeatable::Bound;
use bowshot_api::{BatchStream, Layout, Result};
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
        let options = self.options();
        let is_text = |key: &PlanKey| matches!(key, PlanKey::Text(text) if **text == *sql);
        let found = self.plans.find(|cached| is_text(&cached.key) && cached.is_for(&options));
        found.is_some_and(|(plan, _)| answers_at_once(plan.plan()))
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
}
