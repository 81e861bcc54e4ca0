//! LATERAL: a side of a join that refers to the columns of the side before it.

use super::correlation_values::Domain;
use super::dependent::Dependent;
use super::{Names, plans, walk};
use datafusion::common::{Column, NullEquality, Result, not_impl_err};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan};
use std::sync::Arc;

/// Whether a side of a join says that it is lateral.
pub(super) fn is_lateral(side: &LogicalPlan) -> bool {
    match side {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

pub(super) fn rewritten(join: Join, names: &Names) -> Result<LogicalPlan> {
    let left = walk::rewritten(Arc::unwrap_or_clone(join.left), names)?;
    let right = walk::rewritten(Arc::unwrap_or_clone(join.right), names)?;
    let mut references = plans::outer_columns(&right)?;
    references.retain(|column| left.schema().index_of_column(column).is_ok());
    let columns = join.schema.columns();
    let mut conditions: Vec<Expr> = join.on.into_iter().map(|(one, other)| one.eq(other)).collect();
    conditions.extend(join.filter);
    let condition = conjunction(conditions);
    let subqueries = condition.as_ref().map(plans::contains_subquery).transpose()?.unwrap_or(false);
    if references.is_empty() {
        let joined = plans::join(left, right, &Vec::new(), condition, join.join_type)?;
        return if subqueries { walk::rewritten(joined, names) } else { Ok(joined) };
    }
    if join.null_equality == NullEquality::NullEqualsNull {
        return not_impl_err!("a lateral join whose keys match NULL is not supported");
    }
    let joined = match (join.join_type, condition) {
        (JoinType::Inner, condition) => {
            let joined = inner(left, right, &references, names)?;
            let joined = plans::project(joined, columns.iter().cloned().map(Expr::Column).collect())?;
            return match condition {
                Some(condition) if subqueries => walk::rewritten(plans::filter(joined, condition)?, names),
                Some(condition) => plans::filter(joined, condition),
                None => Ok(joined),
            };
        }
        (JoinType::Left, condition) if !subqueries => {
            let (domain, pairs) = Domain::of(&left, &references, names)?;
            let right = Dependent { domain: &domain, names }.plan(right)?;
            plans::join(left, right, &pairs, condition, JoinType::Left)?
        }
        (kind, _) => {
            return not_impl_err!("a lateral join of this kind is not supported: {kind} JOIN LATERAL");
        }
    };
    plans::project(joined, columns.into_iter().map(Expr::Column).collect())
}

fn inner(left: LogicalPlan, right: LogicalPlan, references: &[Column], names: &Names) -> Result<LogicalPlan> {
    if row_by_row(&right) {
        // Rows outside that are equal need not be told apart, so that each can be taken as it is.
        let outputs = plans::all(&right);
        let (domain, pairs) = Domain::rows(left, references, names)?;
        let joined = Dependent { domain: &domain, names }.plan(right)?;
        let outer = pairs
            .into_iter()
            .map(|(outer, own)| plans::named(Expr::Column(own), outer.relation, &outer.name));
        return plans::project(joined, outer.chain(outputs).collect());
    }
    let (domain, pairs) = Domain::of(&left, references, names)?;
    let right = Dependent { domain: &domain, names }.plan(right)?;
    plans::join(left, right, &pairs, None, JoinType::Inner)
}

/// Whether a plan gives for equal rows outside what it gives for each of them.
fn row_by_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => row_by_row(&node.input),
        LogicalPlan::Filter(node) => row_by_row(&node.input),
        LogicalPlan::SubqueryAlias(node) => row_by_row(&node.input),
        LogicalPlan::Unnest(node) => row_by_row(&node.input),
        LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) | LogicalPlan::TableScan(_) => true,
        _ => false,
    }
}
