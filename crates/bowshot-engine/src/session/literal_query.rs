//! The row of a query that was optimized to literals, as `SELECT 1` and `SELECT version()` are, without a physical plan: making one
//! takes longer than all the rest of such a query.

use crate::authorize::AuthorizedPlan;
use crate::authorize::optimized_slot::NextRun;
use crate::error::classify;
use crate::session::EngineSession;
use crate::session::key_lookup::is_key_lookup;
use crate::session::plan_cache::PlanKey;
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
