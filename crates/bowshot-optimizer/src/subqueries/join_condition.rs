//! Subqueries in the condition of a join.

use super::correlation_values::Domain;
use super::forms::Outside;
use super::plans::{self, Pairs};
use super::{Names, positions};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, not_impl_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan};
use std::sync::Arc;

/// The conditions of an inner join may as well stand above it. A subquery in those of other joins belongs to the rows of the one
/// side that it refers to.
pub(super) fn rewritten(node: Join, names: &Names) -> Result<LogicalPlan> {
    let columns = node.schema.columns();
    let filters = node.filter.map(split_conjunction_owned).unwrap_or_default();
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for expr in filters {
        if plans::contains_subquery(&expr)? { with.push(expr) } else { plain.push(expr) }
    }
    if node.join_type == JoinType::Inner {
        let joined = Join { filter: conjunction(plain), ..node };
        let joined = Arc::new(LogicalPlan::Join(joined));
        return match conjunction(with) {
            Some(with) => positions::rewritten(LogicalPlan::Filter(Filter::try_new(with, joined)?), names),
            None => Ok(Arc::unwrap_or_clone(joined)),
        };
    }
    let mut left = Outside::new(Arc::unwrap_or_clone(node.left), names);
    let mut right = Outside::new(Arc::unwrap_or_clone(node.right), names);
    let mut spanning = Vec::new();
    for expr in with {
        match side(&expr, &left.plan, &right.plan)? {
            Side::Left => plain.push(left.value(expr)?),
            Side::Right => plain.push(right.value(expr)?),
            Side::Parts => plain.push(of_sides(expr, &mut left, &mut right)?),
            Side::Both => spanning.push(expr),
        }
    }
    let (left, right) = (left.plan, right.plan);
    let joined = if spanning.is_empty() {
        let (left, right) = (Arc::new(left), Arc::new(right));
        let (on, kind, constraint) = (node.on, node.join_type, node.join_constraint);
        let (nulls, aware) = (node.null_equality, node.null_aware);
        Join::try_new(left, right, on, conjunction(plain), kind, constraint, nulls, aware)
            .map(LogicalPlan::Join)?
    } else {
        plain.extend(node.on.into_iter().map(|(one, other)| one.eq(other)));
        across(left, right, (plain, spanning), node.join_type, names)?
    };
    positions::narrowed(joined, columns)
}

/// Whose rows a condition can be computed for.
enum Side {
    Left,
    Right,
    /// Each of its subqueries for those of one side.
    Parts,
    Both,
}

fn side(expr: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> Result<Side> {
    let of = |plan: &LogicalPlan, columns: &[Column]| {
        columns.iter().any(|column| plan.schema().index_of_column(column).is_ok())
    };
    let columns = needed(expr)?;
    match (of(left, &columns), of(right, &columns)) {
        (true, true) => {}
        (false, true) => return Ok(Side::Right),
        _ => return Ok(Side::Left),
    }
    let mut apart = true;
    expr.apply(|part| {
        if !plans::is_subquery(part) {
            return Ok(TreeNodeRecursion::Continue);
        }
        let columns = needed(part)?;
        apart &= !(of(left, &columns) && of(right, &columns));
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(if apart { Side::Parts } else { Side::Both })
}

fn of_sides(expr: Expr, left: &mut Outside<'_>, right: &mut Outside<'_>) -> Result<Expr> {
    if plans::is_subquery(&expr) {
        return match side(&expr, &left.plan, &right.plan)? {
            Side::Right => right.value(expr),
            _ => left.value(expr),
        };
    }
    expr.map_children(|part| Ok(Transformed::yes(of_sides(part, left, right)?))).data()
}

/// A subquery that refers to both sides is computed for each row of the one side with each combination of the values that it
/// takes from the other side; those rows are joined where that combination is the one of a row there.
fn across(
    left: LogicalPlan,
    right: LogicalPlan,
    (mut conditions, spanning): (Vec<Expr>, Vec<Expr>),
    kind: JoinType,
    names: &Names,
) -> Result<LogicalPlan> {
    match kind {
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => {
            let (right, pairs, exprs) = spread(spanning, &left, right, names)?;
            conditions.extend(exprs);
            plans::join(left, right, &pairs, conjunction(conditions), kind)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => {
            let (left, pairs, exprs) = spread(spanning, &right, left, names)?;
            let pairs = pairs.into_iter().map(|(one, other)| (other, one)).collect();
            conditions.extend(exprs);
            plans::join(left, right, &pairs, conjunction(conditions), kind)
        }
        _ => not_impl_err!(
            "a subquery in the condition of a {kind} JOIN that refers to both sides is not supported"
        ),
    }
}

fn spread(
    exprs: Vec<Expr>,
    one: &LogicalPlan,
    other: LogicalPlan,
    names: &Names,
) -> Result<(LogicalPlan, Pairs, Vec<Expr>)> {
    let mut references = Vec::new();
    for expr in &exprs {
        references.extend(needed(expr)?);
    }
    references.retain(|column| one.schema().index_of_column(column).is_ok());
    let (domain, pairs) = Domain::of(one, &references, names)?;
    let with = plans::join(other, domain.plan.clone(), &Pairs::new(), None, JoinType::Inner)?;
    let mut outside = Outside::new(with, names);
    let exprs = exprs.into_iter().map(|expr| outside.value(domain.moved(expr)?)).collect::<Result<_>>()?;
    Ok((outside.plan, pairs, exprs))
}

/// The columns that an expression and its subqueries refer to.
pub(super) fn needed(expr: &Expr) -> Result<Vec<Column>> {
    let mut columns: Vec<_> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|part| {
        if let Some(query) = plans::query(part) {
            columns.extend(plans::outer_columns(query)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}
