//! Where a subquery can stand: what a node becomes whose expressions have subqueries.

use super::forms::Outside;
use super::{Names, expressions, join_condition, limits, native, plans};
use datafusion::common::{Column, DFSchema, Result, not_impl_err};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, EmptyRelation, Expr, Filter, LogicalPlan, Projection, Sort, Union,
    Values, Window, cast,
};
use std::sync::Arc;

pub(super) fn rewritten(plan: LogicalPlan, names: &Names) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(node) => filter(node, names),
        LogicalPlan::Projection(node) => projection(node, names),
        LogicalPlan::Aggregate(node) => aggregate(node, names),
        LogicalPlan::Window(node) => window(node, names),
        LogicalPlan::Sort(node) => sort(node, names),
        LogicalPlan::Distinct(Distinct::On(node)) => distinct_on(node, names),
        LogicalPlan::Join(node) => join_condition::rewritten(node, names),
        LogicalPlan::Values(node) => values(node, names),
        LogicalPlan::Limit(node) => limits::computed(node, names),
        other => Ok(other),
    }
}

fn filter(node: Filter, names: &Names) -> Result<LogicalPlan> {
    let columns = node.input.schema().columns();
    let predicates = split_conjunction_owned(node.predicate.clone());
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for predicate in predicates {
        let predicate = expressions::without_not(predicate);
        if plans::contains_subquery(&predicate)? { with.push(predicate) } else { plain.push(predicate) }
    }
    let kept = with.iter().map(|predicate| native::condition(predicate, &node.input));
    let kept = kept.collect::<Result<Vec<_>>>()?;
    if kept.iter().all(|kept| *kept) {
        return Ok(LogicalPlan::Filter(node));
    }
    let input = plans::filtered(Arc::unwrap_or_clone(node.input), plain)?;
    let mut outside = Outside::new(input, names);
    let mut rest = Vec::new();
    for (predicate, kept) in with.into_iter().zip(kept) {
        if kept {
            rest.push(predicate);
        } else if let Some(predicate) = outside.condition(predicate)? {
            rest.push(predicate);
        }
    }
    let plan = plans::filtered(outside.plan, rest)?;
    narrowed(plan, columns)
}

/// The columns that a plan has had.
pub(super) fn narrowed(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    plans::project(plan, columns.into_iter().map(Expr::Column).collect())
}

fn projection(node: Projection, names: &Names) -> Result<LogicalPlan> {
    if native::projection(&node.expr, &node.input)? {
        return Ok(LogicalPlan::Projection(node));
    }
    let mut outside = Outside::new(Arc::unwrap_or_clone(node.input), names);
    let exprs = outside.values(node.expr)?;
    plans::project(outside.plan, exprs)
}

fn aggregate(node: Aggregate, names: &Names) -> Result<LogicalPlan> {
    for expr in &node.group_expr {
        if matches!(expr, Expr::GroupingSet(_)) && plans::contains_subquery(expr)? {
            return not_impl_err!("subqueries within GROUPING SETS, ROLLUP and CUBE are not supported");
        }
    }
    let mut outside = Outside::new(Arc::unwrap_or_clone(node.input), names);
    let group = outside.values(node.group_expr)?;
    let aggregates = outside.values(node.aggr_expr)?;
    plans::aggregate(outside.plan, group, aggregates)
}

fn window(node: Window, names: &Names) -> Result<LogicalPlan> {
    let columns = node.schema.columns();
    let mut outside = Outside::new(Arc::unwrap_or_clone(node.input), names);
    let exprs = outside.values(node.window_expr)?;
    narrowed(LogicalPlan::Window(Window::try_new(exprs, Arc::new(outside.plan))?), columns)
}

/// ORDER BY may refer to columns that the select list leaves out, here from within a subquery.
fn sort(node: Sort, names: &Names) -> Result<LogicalPlan> {
    let columns = node.input.schema().columns();
    let mut wanted = Vec::new();
    for key in &node.expr {
        for column in join_condition::needed(&key.expr)? {
            if node.input.schema().index_of_column(&column).is_err() {
                wanted.push(column);
            }
        }
    }
    let input = widened(Arc::unwrap_or_clone(node.input), &wanted)?;
    let mut outside = Outside::new(input, names);
    let keys = outside.keys(node.expr)?;
    let sort = Sort { expr: keys, input: Arc::new(outside.plan), fetch: node.fetch };
    narrowed(LogicalPlan::Sort(sort), columns)
}

/// A projection that leaves fewer columns out.
fn widened(plan: LogicalPlan, wanted: &[Column]) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(mut node) = plan else { return Ok(plan) };
    for column in wanted {
        let schema = node.input.schema();
        let Ok(at) = schema.index_of_column(column) else { continue };
        let column = Expr::Column(Column::from(schema.qualified_field(at)));
        if !node.expr.contains(&column) {
            node.expr.push(column);
        }
    }
    Ok(LogicalPlan::Projection(Projection::try_new(node.expr, node.input)?))
}

fn distinct_on(node: DistinctOn, names: &Names) -> Result<LogicalPlan> {
    let mut outside = Outside::new(Arc::unwrap_or_clone(node.input), names);
    let on = node.on_expr.into_iter().map(|expr| outside.value(expr)).collect::<Result<_>>()?;
    let sort = node.sort_expr.map(|keys| outside.keys(keys)).transpose()?;
    let select = outside.values(node.select_expr)?;
    let node = DistinctOn::try_new(on, select, sort, Arc::new(outside.plan))?;
    Ok(LogicalPlan::Distinct(Distinct::On(node)))
}

/// Rows of VALUES with subqueries are rows of a projection each.
fn values(node: Values, names: &Names) -> Result<LogicalPlan> {
    let mut rows = Vec::new();
    for row in node.values {
        let nothing = EmptyRelation { produce_one_row: true, schema: Arc::new(DFSchema::empty()) };
        let mut outside = Outside::new(LogicalPlan::EmptyRelation(nothing), names);
        let mut exprs = Vec::new();
        for (cell, (relation, field)) in row.into_iter().zip(node.schema.iter()) {
            let cell = cast(outside.value(cell)?, field.data_type().clone());
            exprs.push(plans::named(cell, relation.cloned(), field.name()));
        }
        rows.push(Arc::new(plans::project(outside.plan, exprs)?));
    }
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok(Arc::unwrap_or_clone(row)),
        (Some(row), false) => {
            rows.push(row);
            Ok(LogicalPlan::Union(Union { inputs: rows, schema: node.schema }))
        }
        (None, _) => not_impl_err!("VALUES without a row are not supported"),
    }
}
