//! Small functions that build and inspect plans.

use crate::expressions::any_expression;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, NullEquality, Result, TableReference};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, JoinConstraint, JoinType, LogicalPlan, Projection, Subquery,
    SubqueryAlias, Union, lit,
};
use std::sync::Arc;

pub(super) fn query(expr: &Expr) -> Option<&Arc<LogicalPlan>> {
    match expr {
        Expr::Exists(exists) => Some(&exists.subquery.subquery),
        Expr::InSubquery(inside) => Some(&inside.subquery.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery.subquery),
        Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
        _ => None,
    }
}

pub(super) fn subquery(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::Exists(exists) => Some(&mut exists.subquery),
        Expr::InSubquery(inside) => Some(&mut inside.subquery),
        Expr::SetComparison(comparison) => Some(&mut comparison.subquery),
        Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

pub(super) fn is_subquery(expr: &Expr) -> bool {
    query(expr).is_some()
}

pub(super) fn contains_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(is_subquery(expr)))
}

/// Whether a plan has anything for this rule.
pub(super) fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Subquery(_)) || any_expression(node, contains_subquery)?)
    })
}

/// The columns from outside that a plan refers to, each once, in the order of the plan.
pub(super) fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && !columns.contains(column)
                {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

pub(super) fn all(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

pub(super) fn project(plan: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?))
}

pub(super) fn filter(plan: LogicalPlan, predicate: Expr) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?))
}

/// A filter, if there is any condition.
pub(super) fn filtered(plan: LogicalPlan, predicates: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(predicates) {
        Some(predicate) => filter(plan, predicate),
        None => Ok(plan),
    }
}

pub(super) fn aggregate(plan: LogicalPlan, group: Vec<Expr>, aggregates: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), group, aggregates)?))
}

pub(super) fn alias(plan: LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let name = TableReference::bare(name);
    Ok(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), name)?))
}

pub(super) fn named(expr: Expr, relation: Option<TableReference>, name: &str) -> Expr {
    match &expr {
        Expr::Column(column) if column.relation == relation && column.name == name => expr,
        _ => expr.alias_qualified(relation, name),
    }
}

/// An expression that takes the place of another one, in whose name nodes above find it.
pub(super) fn renamed(expr: Expr, change: impl FnOnce(Expr) -> Result<Expr>) -> Result<Expr> {
    let name = NamePreserver::new_for_projection().save(&expr);
    Ok(name.restore(change(expr)?))
}

/// Columns of two sides that are equal, nulls too, where their rows belong together.
pub(super) type Pairs = Vec<(Column, Column)>;

/// A join by pairs of columns and a condition.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    pairs: &Pairs,
    condition: Option<Expr>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    let mut nulls = NullEquality::NullEqualsNothing;
    for (one, other) in pairs {
        let (_, one) = left.schema().qualified_field(left.schema().index_of_column(one)?);
        let (_, other) = right.schema().qualified_field(right.schema().index_of_column(other)?);
        if one.is_nullable() && other.is_nullable() {
            nulls = NullEquality::NullEqualsNull;
        }
    }
    let on = pairs.iter().map(|(one, other)| (Expr::Column(one.clone()), Expr::Column(other.clone())));
    let on: Vec<_> = on.collect();
    // An inner join without any condition is how a cross join is written.
    let condition = condition.or_else(|| (on.is_empty() && kind != JoinType::Inner).then(|| lit(true)));
    let (left, right) = (Arc::new(left), Arc::new(right));
    Join::try_new(left, right, on, condition, kind, JoinConstraint::On, nulls, false).map(LogicalPlan::Join)
}

/// The plan with unions that know that a column may be NULL where it may be in one of their parts: they have been put together
/// before subqueries became columns that may.
pub(super) fn unions_of_nulls(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| {
        if let LogicalPlan::Union(union) = &node
            && let Some(schema) = with_nulls(union)?
        {
            changed = true;
            let inputs = union.inputs.clone();
            return Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) })));
        }
        if changed { node.recompute_schema().map(Transformed::yes) } else { Ok(Transformed::no(node)) }
    })
    .data()
}

/// The schema of a union with more columns that may be NULL; `None` where it has all of them.
fn with_nulls(union: &Union) -> Result<Option<DFSchema>> {
    let may_be_null = |place: usize| {
        union
            .inputs
            .iter()
            .any(|input| input.schema().fields().get(place).is_some_and(|field| field.is_nullable()))
    };
    let known = union.schema.fields().iter().enumerate();
    if !known.clone().any(|(place, field)| !field.is_nullable() && may_be_null(place)) {
        return Ok(None);
    }
    let fields = union
        .schema
        .iter()
        .enumerate()
        .map(|(place, (relation, field))| {
            let nullable = field.is_nullable() || may_be_null(place);
            (relation.cloned(), Arc::new(field.as_ref().clone().with_nullable(nullable)))
        })
        .collect();
    DFSchema::new_with_metadata(fields, union.schema.metadata().clone()).map(Some)
}
