//! The rows of `INSERT … VALUES` with scalar expressions, such as CURRENT_TIMESTAMP, casts, defaults and the next number, and what
//! RETURNING computes of rows: they mean what they mean in a query, and are evaluated without optimizing one and making operators of it.

use crate::catalog::identity;
use crate::catalog::lazy_state::LazyState;
use crate::error::classify;
use crate::write::literal::{batch, evaluated_within, is_cast_by_arrow, no_columns, written_rows};
use bowshot_api::Result;
use bowshot_api::catalog_names::{CHANGE_SCHEMA, TARGET};
use bowshot_types::zone;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, TableScan, Volatility,
};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use std::sync::Arc;

/// Rows up to which planning is what takes the time.
const MAX_ROWS: usize = 100;

/// The rows of a plan that computes nothing but scalar expressions over a few rows that are written out, or over `changed` rows.
/// `None` for any other plan, and where something is wrong: a plan of the query says what.
pub(crate) fn rows(
    plan: &LogicalPlan,
    changed: Option<&RecordBatch>,
    state: &LazyState,
) -> Option<RecordBatch> {
    if !are_scalar(plan) {
        return None;
    }
    let is_settled = is_in_plan(plan, is_settled);
    let computed = if is_settled { in_plan(plan, changed, state) } else { analysed(plan, changed, state) };
    computed.unwrap_or_else(|error| {
        tracing::debug!(%error, "rows of scalar expressions are computed by a plan");
        None
    })
}

/// Whether a plan computes nothing but scalar expressions over a few rows that are written out, or over changed rows.
pub(crate) fn are_scalar(plan: &LogicalPlan) -> bool {
    is_in_plan(plan, is_scalar)
}

/// Whether a plan is projections over such rows, all of such expressions.
fn is_in_plan(plan: &LogicalPlan, is: fn(&Expr) -> bool) -> bool {
    match plan {
        LogicalPlan::Values(values) => {
            values.values.len() <= MAX_ROWS && values.values.iter().flatten().all(is)
        }
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(is) && is_in_plan(&projection.input, is)
        }
        LogicalPlan::SubqueryAlias(alias) => is_in_plan(&alias.input, is),
        LogicalPlan::TableScan(scan) => gives_changed_rows(scan),
        _ => false,
    }
}

/// Whether a scan stands for the rows that a statement has changed, with all their columns.
fn gives_changed_rows(scan: &TableScan) -> bool {
    let name = &scan.table_name;
    let is_target = name.schema() == Some(CHANGE_SCHEMA) && name.table() == TARGET;
    is_target && scan.projection.is_none() && scan.filters.is_empty() && scan.fetch.is_none()
}

/// Whether an expression is computed of one row alone and, but for the next number, has the same value however often it is.
fn is_scalar(expr: &Expr) -> bool {
    let is_other = |part: &Expr| match part {
        Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Alias(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::Negative(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::BinaryExpr(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_)
        | Expr::Case(_) => false,
        Expr::ScalarFunction(call) => !is_stable(call) && !identity::is_call(part),
        _ => true,
    };
    expr.exists(|part| Ok(is_other(part))).is_ok_and(|found| !found)
}

fn is_stable(call: &ScalarFunction) -> bool {
    call.func.signature().volatility != Volatility::Volatile && call.func.as_async().is_none()
}

/// Whether analysis leaves an expression as it is: the casts of SQL have been put in when the INSERT was planned.
fn is_settled(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_settled(&alias.expr),
        Expr::Cast(cast) => is_settled(&cast.expr) && is_plain_cast(cast),
        Expr::ScalarFunction(call) => {
            call.args.is_empty()
                || identity::is_call(expr)
                || zone::is_clock(expr) && call.args.iter().all(is_settled)
        }
        _ => false,
    }
}

/// Whether Arrow casts as SQL does.
fn is_plain_cast(cast: &Cast) -> bool {
    if matches!(cast.expr.as_ref(), Expr::Literal(..)) {
        return is_cast_by_arrow(cast);
    }
    let Ok(from) = cast.expr.get_type(&DFSchema::empty()) else { return false };
    match (&from, cast.field.data_type()) {
        (DataType::Timestamp(..), DataType::Timestamp(..)) => true,
        (from, to) => from.is_integer() && to.is_integer(),
    }
}

/// The rows of a plan, with the types and operators that the analysis of a query gives it. Columns with marks, such as those of CHAR
/// and ENUM, have operators of their own, which are for a plan.
fn analysed(
    plan: &LogicalPlan,
    changed: Option<&RecordBatch>,
    state: &SessionState,
) -> Result<Option<RecordBatch>> {
    let is_marked = |node: &LogicalPlan| {
        matches!(node, LogicalPlan::TableScan(scan)
            if scan.projected_schema.fields().iter().any(|field| !field.metadata().is_empty()))
    };
    if plan.exists(|node| Ok(is_marked(node))).map_err(classify)? {
        return Ok(None);
    }
    let analysed = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    let analysed = analysed.map_err(classify)?;
    if are_scalar(&analysed) { in_plan(&analysed, changed, state) } else { Ok(None) }
}

fn in_plan(
    plan: &LogicalPlan,
    changed: Option<&RecordBatch>,
    state: &SessionState,
) -> Result<Option<RecordBatch>> {
    match plan {
        LogicalPlan::Values(values) => {
            let (no_columns, one_row) = (Arc::new(DFSchema::empty()), no_columns(1)?);
            written_rows(values, |cell| value(cell, &no_columns, &one_row, state))
        }
        LogicalPlan::Projection(projection) => {
            let Some(input) = in_plan(&projection.input, changed, state)? else { return Ok(None) };
            let columns = projection.expr.iter().map(|expr| {
                let value = value(expr, projection.input.schema(), &input, state)?;
                value.into_array(input.num_rows()).map_err(classify)
            });
            batch(projection.schema.as_ref(), columns.collect::<Result<_>>()?, input.num_rows()).map(Some)
        }
        LogicalPlan::SubqueryAlias(alias) => in_plan(&alias.input, changed, state),
        LogicalPlan::TableScan(scan) => {
            let wanted = scan.projected_schema.fields().iter().map(|field| field.data_type());
            let is_same = |rows: &&RecordBatch| {
                rows.schema_ref().fields().iter().map(|field| field.data_type()).eq(wanted)
            };
            Ok(changed.filter(is_same).cloned())
        }
        _ => Ok(None),
    }
}

/// The value of an expression for some rows.
fn value(
    expr: &Expr,
    schema: &DFSchemaRef,
    rows: &RecordBatch,
    state: &SessionState,
) -> Result<ColumnarValue> {
    let props = state.execution_props();
    let calls = expr.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_)))).map_err(classify)?;
    if !calls {
        return evaluated_within(props, (expr, schema.as_ref()), rows);
    }
    // What `now()` and the like are is known to the simplifier alone.
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(schema))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(props.query_execution_start_time)
        .build();
    let simplified = ExprSimplifier::new(context).simplify(expr.clone()).map_err(classify)?;
    evaluated_within(props, (&simplified, schema.as_ref()), rows)
}
