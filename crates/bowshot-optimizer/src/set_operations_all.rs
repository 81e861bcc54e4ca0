//! `EXCEPT ALL` and `INTERSECT ALL` count copies of rows, but DataFusion plans joins that ask only whether a row is on the right.
//! Here each copy of a row gets a number on both sides, and copies are matched by row and number. The columns of all set
//! operations have the common type of both sides, not that of the left.

use super::operators;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{
    Cast, Distinct, Expr, ExprFunctionExt, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, Projection,
};
use std::sync::Arc;

/// Must run before type coercion, which also coerces the new keys.
pub(super) fn counted_copies(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_set_operation(&join) => {
            let join = of_one_kind(join)?;
            let counted =
                if is_distinct(&join.left) { LogicalPlan::Join(join.clone()) } else { counted(&join)? };
            Ok(Transformed::yes(of_common_types(counted, &join)?))
        }
        node => Ok(Transformed::no(node)),
    })
    .data()
}

/// Nothing else gives a semi or anti join in which nulls equal one another, on all columns, before the optimiser.
fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && join.on.len() == join.right.schema().fields().len()
}

fn of_one_kind(mut join: Join) -> Result<Join> {
    let sides = vec![Arc::clone(&join.left), Arc::clone(&join.right)];
    if let Some([left, right]) = operators::of_one_kind(sides)?.as_deref() {
        (join.left, join.right) = (Arc::clone(left), Arc::clone(right));
    }
    Ok(join)
}

/// A side without copies needs no numbers.
fn is_distinct(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Distinct(Distinct::All(_)))
}

fn counted(join: &Join) -> Result<LogicalPlan> {
    let (left, one) = numbered(&join.left, "copy on the left")?;
    let (right, other) = numbered(&join.right, "copy on the right")?;
    let pairs = columns(&join.left).into_iter().zip(columns(&join.right));
    let on = pairs.chain([(one, other)]).collect();
    let counted = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    let columns = columns(&join.left);
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::Join(counted)))?))
}

/// The rows, each with the number that it has among its copies.
fn numbered(input: &Arc<LogicalPlan>, name: &str) -> Result<(LogicalPlan, Expr)> {
    let number =
        Expr::from(datafusion::logical_expr::expr::WindowFunction::new(row_number_udwf(), Vec::new()))
            .partition_by(columns(input))
            .build()?;
    let place = Expr::Column(Column::from_name(number.schema_name().to_string()));
    let numbered = LogicalPlanBuilder::from(Arc::clone(input)).window([number])?;
    let mut all = columns(input);
    all.push(place.alias(name));
    Ok((numbered.project(all)?.build()?, Expr::Column(Column::from_name(name))))
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

fn of_common_types(plan: LogicalPlan, join: &Join) -> Result<LogicalPlan> {
    let sides = join.left.schema().fields().iter().zip(join.right.schema().fields());
    let types: Vec<_> = sides
        .map(|(left, right)| {
            let common = type_union_coercion(left.data_type(), right.data_type());
            common.filter(|common| common != left.data_type())
        })
        .collect();
    if types.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let cast = plan.schema().columns().into_iter().zip(types).map(|(column, wanted)| match wanted {
        Some(wanted) => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            Expr::Cast(Cast::new(Box::new(Expr::Column(column)), wanted)).alias_qualified(relation, name)
        }
        None => Expr::Column(column),
    });
    let cast = cast.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(cast, Arc::new(plan))?))
}
