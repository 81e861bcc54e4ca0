//! The dependent join over joins: the values go to the side that uses them, or to both where both do, or where rows without a match
//! must be distinguished.

use super::dependent::Dependent;
use super::plans::{self, Pairs};
use datafusion::common::{Column, NullEquality, Result, ScalarValue, TableReference, not_impl_err};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, lit};
use std::sync::Arc;

/// Which side the values go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    Left,
    Right,
    Both,
}

pub(super) fn dependent(of: &Dependent<'_>, join: Join) -> Result<LogicalPlan> {
    if join.null_aware {
        return not_impl_err!("NOT IN within a correlated subquery is not supported here");
    }
    let (on, filter) = conditions(&join, of)?;
    let sides = sides(of, &join)?;
    let columns = join.schema.columns().into_iter().map(Expr::Column).collect();
    let (left, right) = (join.left, join.right);
    let kind = (join.join_type, join.null_equality);
    match sides {
        Sides::Left => rebuilt((of.input(left)?, Arc::unwrap_or_clone(right)), (on, filter), kind),
        Sides::Right => rebuilt((Arc::unwrap_or_clone(left), of.input(right)?), (on, filter), kind),
        Sides::Both => both(of, (left, right), (on, filter), kind, columns),
    }
}

type On = Vec<(Expr, Expr)>;

/// What a join is under, over the columns of the domain.
fn conditions(join: &Join, of: &Dependent<'_>) -> Result<(On, Option<Expr>)> {
    let on = join
        .on
        .iter()
        .map(|(one, other)| Ok((of.domain.bound(one.clone())?, of.domain.bound(other.clone())?)));
    let filter = join.filter.clone().map(|filter| of.domain.bound(filter)).transpose()?;
    Ok((on.collect::<Result<_>>()?, filter))
}

fn sides(of: &Dependent<'_>, join: &Join) -> Result<Sides> {
    let (left, right) = (of.domain.in_plan(&join.left)?, of.domain.in_plan(&join.right)?);
    Ok(match join.join_type {
        JoinType::Inner if left && right => Sides::Both,
        JoinType::Inner if right => Sides::Right,
        JoinType::Inner => Sides::Left,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark if !right => {
            Sides::Left
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark if !left => {
            Sides::Right
        }
        _ => Sides::Both,
    })
}

fn rebuilt(
    (left, right): (LogicalPlan, LogicalPlan),
    (on, filter): (On, Option<Expr>),
    (kind, nulls): (JoinType, NullEquality),
) -> Result<LogicalPlan> {
    // Keys have to be of one side each; those that the values of the domain are in may not be.
    let (mut keys, mut rest) = (Vec::new(), Vec::new());
    for (one, other) in on {
        if of_side(&one, &left) && of_side(&other, &right) {
            keys.push((one, other));
        } else if nulls == NullEquality::NullEqualsNull {
            rest.push(same(one, other));
        } else {
            rest.push(one.eq(other));
        }
    }
    rest.extend(filter);
    let filter =
        conjunction(rest).or_else(|| (keys.is_empty() && kind != JoinType::Inner).then(|| lit(true)));
    let (left, right) = (Arc::new(left), Arc::new(right));
    let on = datafusion::logical_expr::JoinConstraint::On;
    Ok(LogicalPlan::Join(Join::try_new(left, right, keys, filter, kind, on, nulls, false)?))
}

fn of_side(expr: &Expr, side: &LogicalPlan) -> bool {
    expr.column_refs().into_iter().all(|column| side.schema().index_of_column(column).is_ok())
}

fn same(one: Expr, other: Expr) -> Expr {
    datafusion::logical_expr::binary_expr(one, datafusion::logical_expr::Operator::IsNotDistinctFrom, other)
}

/// Both sides with the values, and together where these are the same.
fn both(
    of: &Dependent<'_>,
    (left, right): (Arc<LogicalPlan>, Arc<LogicalPlan>),
    (on, filter): (On, Option<Expr>),
    (kind, nulls): (JoinType, NullEquality),
    columns: Vec<Expr>,
) -> Result<LogicalPlan> {
    let (twin, pairs) = of.domain.twin(of.names)?;
    let left = of.input(left)?;
    let right = Dependent { domain: &twin, names: of.names }.input(right)?;
    // The conditions of the join were bound to the columns of the left side, which the right side equals.
    let keep_right = matches!(kind, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
    let mut rest: Vec<Expr> = Vec::new();
    let nothing = nulls == NullEquality::NullEqualsNothing;
    rest.extend(on.into_iter().map(|(one, other)| if nothing { one.eq(other) } else { same(one, other) }));
    rest.extend(filter);
    let mark = columns.last().cloned();
    let (right, pairs) = match (kind, &mark) {
        (JoinType::LeftMark, Some(Expr::Column(mark))) => {
            of_one_relation(right, pairs, mark.relation.as_ref())?
        }
        _ => (right, pairs),
    };
    let joined = plans::join(left, right, &pairs, conjunction(rest), kind)?;
    let values = pairs.iter().map(|(one, other)| value(one, other, kind, keep_right));
    let marks = matches!(kind, JoinType::LeftMark | JoinType::RightMark);
    // The column of marks is called after the relation of the other side, which now has two.
    let mut exprs = columns;
    if let (true, Some(Expr::Column(mark))) = (marks, mark) {
        exprs.pop();
        let made = joined
            .schema()
            .columns()
            .pop()
            .map(Expr::Column)
            .unwrap_or(Expr::Literal(ScalarValue::Boolean(None), None));
        exprs.push(plans::named(made, mark.relation.clone(), &mark.name));
    }
    let exprs = exprs.into_iter().chain(values).collect();
    plans::project(joined, exprs)
}

/// The right side of a join that marks with the values under names of its own relation. The column of marks is one of the right
/// side's relation, if there is one, and else of none, where it would clash with that of another such join.
fn of_one_relation(
    right: LogicalPlan,
    mut pairs: Pairs,
    relation: Option<&TableReference>,
) -> Result<(LogicalPlan, Pairs)> {
    let mut columns = plans::all(&right);
    for (place, (_, value)) in pairs.iter_mut().enumerate() {
        let renamed = Column::new(relation.cloned(), format!("__value_{place}"));
        for column in &mut columns {
            if matches!(column, Expr::Column(column) if column == value) {
                *column = plans::named(column.clone(), renamed.relation.clone(), &renamed.name);
            }
        }
        *value = renamed;
    }
    Ok((plans::project(right, columns)?, pairs))
}

/// A value of the domain in a row that may be of one side only.
fn value(one: &Column, other: &Column, kind: JoinType, keep_right: bool) -> Expr {
    let (left, right) = (Expr::Column(one.clone()), Expr::Column(other.clone()));
    let value = match kind {
        JoinType::Full => coalesce(vec![left, right]),
        JoinType::Right => right,
        _ if keep_right => right,
        _ => left,
    };
    plans::named(value, one.relation.clone(), &one.name)
}
