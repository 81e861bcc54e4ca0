//! Columns of recursive queries. A rule that rewrites an expression of a term may make it nullable; the query still has the old
//! nullability of its terms, and could not be planned.

use super::expressions::any_node;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{LogicalPlan, RecursiveQuery};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule behind all others: a column may be NULL where it may in any term.
#[derive(Debug)]
pub(super) struct NullableColumns;

impl OptimizerRule for NullableColumns {
    fn name(&self) -> &'static str {
        "nullable_columns_of_recursions"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_node(&plan, |node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::RecursiveQuery(query) => {
                with_columns_of_terms(query).map(LogicalPlan::RecursiveQuery).map(Transformed::yes)
            }
            LogicalPlan::Projection(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::SubqueryAlias(_) => node.recompute_schema().map(Transformed::yes),
            node => Ok(Transformed::no(node)),
        })
    }
}

fn with_columns_of_terms(query: RecursiveQuery) -> Result<RecursiveQuery> {
    let terms = query.static_term.schema().fields().iter().zip(query.recursive_term.schema().fields());
    let columns = query.schema.iter().zip(terms).map(|((qualifier, field), (first, next))| {
        let nullable = field.is_nullable() || first.is_nullable() || next.is_nullable();
        (qualifier.cloned(), Arc::new(field.as_ref().clone().with_nullable(nullable)))
    });
    let schema = DFSchema::new_with_metadata(columns.collect(), query.schema.metadata().clone())?;
    Ok(RecursiveQuery { schema: Arc::new(schema), ..query })
}
