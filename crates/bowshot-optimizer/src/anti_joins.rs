//! `a LEFT JOIN b ON a.k = b.k WHERE b.k IS NULL` asks for rows of `a` without a match and becomes an anti join, which keeps neither
//! rows of `b` nor pairs of rows. DataFusion joins first and filters all pairs afterwards.

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Makes anti joins of outer joins whose partners are filtered out. Runs behind the rule that pushes filters down to the joins.
#[derive(Debug)]
pub(super) struct AntiJoins;

impl OptimizerRule for AntiJoins {
    fn name(&self) -> &'static str {
        "outer_join_to_anti_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match anti_join(&plan)? {
            Some(anti) => Ok(Transformed::yes(anti)),
            None => Ok(Transformed::no(plan)),
        }
    }
}

fn anti_join(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = plan else { return Ok(None) };
    let LogicalPlan::Join(join) = filter.input.as_ref() else { return Ok(None) };
    let join_type = match join.join_type {
        JoinType::Left => JoinType::LeftAnti,
        JoinType::Right => JoinType::RightAnti,
        _ => return Ok(None),
    };
    let (without_partner, others): (Vec<&Expr>, Vec<&Expr>) =
        split_conjunction(&filter.predicate).into_iter().partition(|condition| is_null_key(condition, join));
    if without_partner.is_empty() {
        return Ok(None);
    }
    let anti = Join::try_new(
        Arc::clone(&join.left),
        Arc::clone(&join.right),
        join.on.clone(),
        join.filter.clone(),
        join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let anti = Arc::new(LogicalPlan::Join(anti));
    let rows = LogicalPlan::Projection(Projection::try_new(columns(join)?, anti)?);
    Ok(Some(match conjunction(others.into_iter().cloned()) {
        Some(predicate) => LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows))?),
        None => rows,
    }))
}

/// Whether a condition holds for rows without a partner alone: a key is never NULL in a pair, since `=` matches no NULL.
fn is_null_key(condition: &Expr, join: &Join) -> bool {
    let Expr::IsNull(value) = condition else { return false };
    let Expr::Column(column) = value.as_ref() else { return false };
    join.null_equality == NullEquality::NullEqualsNothing
        && join.on.iter().any(|(left, right)| {
            let key = if join.join_type == JoinType::Left { right } else { left };
            matches!(key, Expr::Column(key) if key == column)
        })
}

/// The columns of the outer join: those of its kept side, and NULLs in place of the other one's.
fn columns(join: &Join) -> Result<Vec<Expr>> {
    let left = join.left.schema().fields().len();
    let columns = join.schema.iter().enumerate().map(|(index, (qualifier, field))| {
        if (index < left) == (join.join_type == JoinType::Left) {
            return Ok(Expr::Column(Column::from((qualifier, field))));
        }
        let null = ScalarValue::try_from(field.data_type())?;
        let null = Expr::Literal(null, Some(FieldMetadata::from(field.as_ref())));
        Ok(null.alias_qualified(qualifier.cloned(), field.name()))
    });
    columns.collect()
}
