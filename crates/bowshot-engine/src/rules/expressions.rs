//! Expressions of logical plans, rewritten where they stand.

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// How an expression is rewritten that stands above columns of such a schema.
type Rewrite = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// The plan with its expressions rewritten, those of its subqueries first. Columns keep their names.
///
/// # Errors
/// When an expression cannot be rewritten.
pub(super) fn in_plan(plan: LogicalPlan, rewrite: Rewrite) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| in_node(node, rewrite)).data()
}

/// The same for one operator, above operators that have been rewritten: what it says of types is theirs afterwards.
///
/// # Errors
/// When an expression cannot be rewritten.
pub(super) fn in_node(node: LogicalPlan, rewrite: Rewrite) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&node);
    let rewritten = node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(rewrite(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    rewritten.map_data(LogicalPlan::recompute_schema)
}
