//! Forms that DataFusion answers correctly and fast. They stay for its own rules, which take fewer steps than the general way
//! and do not copy the rows outside.

use super::plans;
use crate::expressions::any_expression;
use crate::integers;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, JoinType, LogicalPlan, Operator};

/// Whether a condition of a filter, which has a subquery, stays as it is.
pub(super) fn condition(expr: &Expr, input: &LogicalPlan) -> Result<bool> {
    Ok(stays(expr) && refers_here(expr, input)?)
}

/// Whether subqueries refer to nothing but the rows of this plan: rows further outside are not seen from a join here.
fn refers_here(expr: &Expr, input: &LogicalPlan) -> Result<bool> {
    let elsewhere = expr.exists(|part| {
        let Some(query) = plans::query(part) else { return Ok(false) };
        let columns = plans::outer_columns(query)?;
        Ok(columns.iter().any(|column| input.schema().index_of_column(column).is_err()))
    })?;
    Ok(!elsewhere)
}

fn stays(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => side(left) && side(right),
        other => alone(other) || values(other),
    }
}

/// One side of OR: nothing is left out for what is unknown there, so IN may be marked, but NOT IN may not.
fn side(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or | Operator::And, right }) => {
            side(left) && side(right)
        }
        Expr::Exists(_) | Expr::Not(_) => alone(expr),
        Expr::InSubquery(inside) => !inside.negated && alone(expr),
        other => !has(other) || values(other),
    }
}

/// A condition that is one subquery.
fn alone(expr: &Expr) -> bool {
    match expr {
        Expr::Exists(exists) => matching(&exists.subquery.subquery),
        Expr::Not(inner) => matches!(inner.as_ref(), Expr::Exists(of) if matching(&of.subquery.subquery)),
        Expr::InSubquery(inside) if inside.negated => {
            // DataFusion's anti join knows what NULL means to NOT IN, for one key.
            let query = &inside.subquery.subquery;
            matches!(inside.expr.as_ref(), Expr::Column(_)) && selects(query) && !refers(query) && free(query)
        }
        Expr::InSubquery(inside) => member(&inside.subquery.subquery) && !has(&inside.expr),
        _ => false,
    }
}

/// Whether all subqueries of an expression are values that DataFusion finds well.
fn values(expr: &Expr) -> bool {
    let mut well = true;
    let visited = expr.apply(|part| {
        match part {
            Expr::ScalarSubquery(subquery) => {
                let none = subquery.outer_ref_columns.is_empty();
                well &= none || one_aggregate(&subquery.subquery);
            }
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => well = false,
            _ => {}
        }
        Ok(if well { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    well && visited.is_ok()
}

/// Whether the expressions of a projection stay as they are.
pub(super) fn projection(exprs: &[Expr], input: &LogicalPlan) -> Result<bool> {
    for expr in exprs {
        if !(values(expr) && refers_here(expr, input)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has(expr: &Expr) -> bool {
    plans::contains_subquery(expr).unwrap_or(true)
}

fn refers(plan: &LogicalPlan) -> bool {
    plans::outer_columns(plan).map_or(true, |columns| !columns.is_empty())
}

/// A correlated query whose conditions can become those of a join.
fn matching(plan: &LogicalPlan) -> bool {
    refers(plan) && {
        let mut inner = Vec::new();
        let plain = path(plan, &mut inner, false) && distinct_names(&inner);
        plain && keeps_names(plan, &inner)
    }
}

/// A query whose rows can be looked up by a join.
fn member(plan: &LogicalPlan) -> bool {
    selects(plan) && (!refers(plan) || matching(plan))
}

/// Whether the column of a query is that of a select list, and no row of several.
fn selects(plan: &LogicalPlan) -> bool {
    let rows = plan.schema().fields().iter().any(|field| matches!(field.data_type(), DataType::Struct(_)));
    matches!(plan, LogicalPlan::Projection(_)) && !rows
}

/// Whether a plan has only nodes that DataFusion's rules take as they are.
fn free(plan: &LogicalPlan) -> bool {
    let node = match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::TableScan(_) => true,
        LogicalPlan::Join(join) => matches!(join.join_type, JoinType::Inner | JoinType::Left),
        _ => false,
    };
    node && plan.inputs().into_iter().all(free)
}

/// Whether a plan is [`free`], or groups such rows: the rule takes values of groups that are there for columns. No count is
/// among them, which the rule would make up where a group has no rows.
fn grouped(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(node) => {
            let plain = |expr: &Expr| !matches!(expr, Expr::GroupingSet(_));
            !node.group_expr.is_empty()
                && node.group_expr.iter().all(plain)
                && node.aggr_expr.iter().all(null_over_nothing)
                && free(&node.input)
        }
        LogicalPlan::Projection(node) => node.expr.iter().all(strict) && grouped(&node.input),
        LogicalPlan::Filter(node) => !has(&node.predicate) && grouped(&node.input),
        LogicalPlan::SubqueryAlias(node) => grouped(&node.input),
        other => free(other),
    }
}

/// Whether references stand in filters only, on a path down over nodes that let conditions through. Collects the columns inside
/// that those conditions have.
fn path(plan: &LogicalPlan, inner: &mut Vec<Column>, only_equalities: bool) -> bool {
    if !refers(plan) {
        return if only_equalities { grouped(plan) } else { free(plan) };
    }
    let here = match plan {
        LogicalPlan::Filter(node) => split_conjunction(&node.predicate).into_iter().all(|part| {
            if !part.contains_outer() {
                return !has(part) || !only_equalities;
            }
            inner.extend(part.column_refs().into_iter().cloned());
            !has(part) && (!only_equalities || equality(part))
        }),
        LogicalPlan::Projection(node) => !node.expr.iter().any(Expr::contains_outer),
        LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::Join(join) => {
            let conditions = join.on.iter().flat_map(|(one, other)| [one, other]).chain(&join.filter);
            join.join_type == JoinType::Inner && !conditions.into_iter().any(Expr::contains_outer)
        }
        _ => false,
    };
    here && plan.inputs().into_iter().all(|input| path(input, inner, only_equalities))
}

/// A column inside that equals something from outside.
fn equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return false };
    let inside = |expr: &Expr| match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        _ => false,
    };
    let outside = |expr: &Expr| expr.column_refs().is_empty();
    (inside(left) && outside(right)) || (inside(right) && outside(left))
}

/// The rule calls columns inside by their names alone.
fn distinct_names(columns: &[Column]) -> bool {
    columns.iter().all(|one| columns.iter().all(|other| one.name != other.name || one == other))
}

/// Whether no projection gives one of these names to something else.
fn keeps_names(plan: &LogicalPlan, columns: &[Column]) -> bool {
    let here = match plan {
        LogicalPlan::Projection(node) => node.expr.iter().all(|expr| keeps_name(expr, columns)),
        _ => true,
    };
    here && plan.inputs().into_iter().all(|input| keeps_names(input, columns))
}

fn keeps_name(expr: &Expr, columns: &[Column]) -> bool {
    match expr {
        Expr::Column(_) => true,
        other => {
            let (_, name) = other.qualified_name();
            columns.iter().all(|column| column.name != name)
        }
    }
}

/// The same of the nodes above those conditions alone, through which the columns have to pass.
fn passes_names(plan: &LogicalPlan, columns: &[Column]) -> bool {
    let here = match plan {
        LogicalPlan::Projection(node) => node.expr.iter().all(|expr| keeps_name(expr, columns)),
        _ => true,
    };
    !refers(plan) || (here && plan.inputs().into_iter().all(|input| passes_names(input, columns)))
}

/// One aggregate that is NULL over no rows, over rows that equalities choose, and arithmetic above it that stays NULL.
fn one_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => {
            let strict = |expr: &Expr| strict(expr) && !expr.column_refs().is_empty();
            node.expr.iter().all(strict) && one_aggregate(&node.input)
        }
        LogicalPlan::SubqueryAlias(node) => one_aggregate(&node.input),
        LogicalPlan::Aggregate(node) => {
            let mut inner = Vec::new();
            node.group_expr.is_empty()
                && node.aggr_expr.iter().all(null_over_nothing)
                && !any_expression(plan, |expr| Ok(expr.contains_outer())).unwrap_or(true)
                && path(&node.input, &mut inner, true)
                && distinct_names(&inner)
                && passes_names(&node.input, &inner)
        }
        _ => false,
    }
}

fn null_over_nothing(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => null_over_nothing(&alias.expr),
        Expr::AggregateFunction(function) => {
            matches!(function.func.name(), "min" | "max" | "sum" | "avg")
        }
        _ => false,
    }
}

fn strict(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => strict(&alias.expr),
        Expr::Cast(cast) => strict(&cast.expr),
        Expr::Negative(inner) => strict(inner),
        Expr::BinaryExpr(binary) => {
            let arithmetic = matches!(
                binary.op,
                Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
            );
            arithmetic && strict(&binary.left) && strict(&binary.right)
        }
        Expr::ScalarFunction(call) => integers::is_arithmetic(&call.func) && call.args.iter().all(strict),
        Expr::Column(_) | Expr::Literal(_, _) => true,
        _ => false,
    }
}
