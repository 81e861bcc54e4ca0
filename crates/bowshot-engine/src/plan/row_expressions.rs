//! Expressions over the columns of one row that are computed outside of queries: checks, generated columns, defaults, and policies
//! for rows that are written. They mean what they mean in a query.

use chrono::Utc;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, Projection};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

/// The expressions with their types settled, and operators as SQL means them. `None` if they need more than the row.
pub(crate) fn analysed(
    state: &SessionState,
    exprs: Vec<Expr>,
    columns: &DFSchema,
) -> Result<Option<Vec<Expr>>> {
    let row = EmptyRelation { produce_one_row: true, schema: Arc::new(columns.clone()) };
    let plan = Projection::try_new(exprs, Arc::new(LogicalPlan::EmptyRelation(row)))?;
    let plan = LogicalPlan::Projection(plan);
    let analysed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    Ok(match analysed {
        LogicalPlan::Projection(plan) if matches!(plan.input.as_ref(), LogicalPlan::EmptyRelation(_)) => {
            Some(plan.expr)
        }
        _ => None,
    })
}

/// An expression in the form that is computed.
pub(crate) fn physical(
    state: &SessionState,
    expr: Expr,
    columns: &DFSchema,
) -> Result<Arc<dyn PhysicalExpr>> {
    let Some(expr) = analysed(state, vec![expr], columns)?.and_then(|mut exprs| exprs.pop()) else {
        return plan_err!("an expression over one row cannot have subqueries");
    };
    let start = state.execution_props().query_execution_start_time;
    // What `now()` and `coalesce` are is known to the simplifier alone.
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(columns.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(start.or_else(|| Some(Utc::now())))
        .build();
    let expr = ExprSimplifier::new(context).simplify(expr)?;
    let expr = state.create_physical_expr(expr, columns)?;
    Ok(bowshot_optimizer::guarded(expr, columns.as_arrow())?.data)
}
