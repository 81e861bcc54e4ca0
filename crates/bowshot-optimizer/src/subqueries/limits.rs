//! LIMIT and OFFSET by the number of a row: for each combination of values from outside, or where the limit is a subquery.

use super::correlation_values::Domain;
use super::forms::Outside;
use super::{Names, plans};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::{
    Expr, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, Window, WindowFrame, cast, lit,
};
use std::sync::Arc;

/// What a limit stands above: rows, the order of them, and what is computed of each row behind that order.
pub(super) struct Ordered {
    pub(super) outputs: Vec<LogicalPlan>,
    pub(super) keys: Vec<SortExpr>,
    pub(super) rows: LogicalPlan,
}

impl Ordered {
    /// What stands between LIMIT and ORDER BY is computed for each row, and may as well come behind both.
    pub(super) fn of(mut plan: LogicalPlan) -> Self {
        let mut outputs = Vec::new();
        loop {
            let below = match &plan {
                LogicalPlan::Projection(node) if sorted(&plan) => LogicalPlan::clone(&node.input),
                LogicalPlan::SubqueryAlias(node) if sorted(&plan) => LogicalPlan::clone(&node.input),
                _ => break,
            };
            outputs.push(std::mem::replace(&mut plan, below));
        }
        match plan {
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => {
                Self { outputs, keys: expr, rows: Arc::unwrap_or_clone(input) }
            }
            rows => Self { outputs, keys: Vec::new(), rows },
        }
    }
}

/// Whether there is an ORDER BY under nodes that compute each row by itself.
fn sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(node) => node.fetch.is_none(),
        LogicalPlan::Projection(node) => sorted(&node.input) && !node.expr.iter().any(Expr::is_volatile),
        LogicalPlan::SubqueryAlias(node) => sorted(&node.input),
        _ => false,
    }
}

/// The rows that a limit leaves within each group of equal values of some columns.
pub(super) fn limited(
    rows: LogicalPlan,
    keys: Vec<SortExpr>,
    by: Vec<Expr>,
    (skip, fetch): (Option<Expr>, Option<Expr>),
    names: &Names,
) -> Result<LogicalPlan> {
    let columns = plans::all(&rows);
    let mut function = WindowFunction::new(row_number_udwf(), Vec::new());
    function.params.window_frame = WindowFrame::new((!keys.is_empty()).then_some(false));
    function.params.partition_by = by;
    function.params.order_by = keys;
    let name = names.next("__number");
    let number = Expr::WindowFunction(Box::new(function)).alias(name.as_str());
    let rows = LogicalPlan::Window(Window::try_new(vec![number], Arc::new(rows))?);
    let mut number = cast(Expr::Column(Column::from_name(name)), DataType::Int64);
    let mut kept = Vec::new();
    if let Some(skip) = skip.filter(|skip| *skip != lit(0_i64)) {
        let skip = if is_number(&skip) { skip } else { coalesce(vec![skip, lit(0_i64)]) };
        number = number - skip;
        kept.push(number.clone().gt(lit(0_i64)));
    }
    match fetch {
        Some(fetch) if is_number(&fetch) => kept.push(number.lt_eq(fetch)),
        Some(fetch) => kept.push(fetch.clone().is_null().or(number.lt_eq(fetch))),
        None => {}
    }
    plans::project(plans::filtered(rows, kept)?, columns)
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Int64(Some(_)), _))
}

/// A limit whose numbers are subqueries.
pub(super) fn computed(node: Limit, names: &Names) -> Result<LogicalPlan> {
    let Ordered { outputs, keys, rows } = Ordered::of(Arc::unwrap_or_clone(node.input));
    let mut outside = Outside::new(rows, names);
    let columns = plans::all(&outside.plan);
    let skip = node.skip.map(|skip| outside.value(*skip)).transpose()?;
    let fetch = node.fetch.map(|fetch| outside.value(*fetch)).transpose()?;
    let mut plan = limited(outside.plan, keys.clone(), Vec::new(), (skip, fetch), names)?;
    if !keys.is_empty() {
        plan = LogicalPlan::Sort(Sort { expr: keys, input: Arc::new(plan), fetch: None });
    }
    plan = plans::project(plan, columns)?;
    outputs.into_iter().rev().try_fold(plan, |plan, output| above(output, plan))
}

/// A node of one input over another one.
fn above(node: LogicalPlan, input: LogicalPlan) -> Result<LogicalPlan> {
    let input = Arc::new(input);
    match node {
        LogicalPlan::Projection(node) => Projection::try_new(node.expr, input).map(LogicalPlan::Projection),
        LogicalPlan::SubqueryAlias(node) => {
            SubqueryAlias::try_new(input, node.alias).map(LogicalPlan::SubqueryAlias)
        }
        other => Ok(other),
    }
}

/// The sort keys of a plan over the columns of a domain.
pub(super) fn bound(keys: Vec<SortExpr>, domain: &Domain) -> Result<Vec<SortExpr>> {
    keys.into_iter()
        .map(|key| {
            let expr = domain.bound(key.expr.clone())?;
            Ok(key.with_expr(expr))
        })
        .collect()
}
