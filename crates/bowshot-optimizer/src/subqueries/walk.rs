//! A plan from its leaves up: the inputs of a node first, then the plans of its subqueries, then the node itself.

use super::{Names, forms, lateral, plans, positions};
use crate::expressions::any_expression;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Distinct, Expr, FetchType, LogicalPlan, Subquery};
use std::sync::Arc;

/// A plan without subqueries, but for those that DataFusion answers well.
pub(super) fn rewritten(plan: LogicalPlan, names: &Names) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(join) if lateral::is_lateral(&join.right) => lateral::rewritten(join, names),
        LogicalPlan::Subquery(node) => rewritten(Arc::unwrap_or_clone(node.subquery), names),
        other => {
            let plan = with_inputs(other, names)?;
            if !any_expression(&plan, plans::contains_subquery)? {
                return Ok(plan);
            }
            let plan = plan.map_expressions(|expr| within(expr, names)).data()?.recompute_schema()?;
            positions::rewritten(plan, names)
        }
    }
}

fn with_inputs(plan: LogicalPlan, names: &Names) -> Result<LogicalPlan> {
    let before = schemas(&plan);
    let plan = plan.map_children(|input| Ok(Transformed::yes(rewritten(input, names)?))).data()?;
    // Whether a column can be null may be another now.
    if schemas(&plan) == before { Ok(plan) } else { plan.recompute_schema() }
}

fn schemas(plan: &LogicalPlan) -> Vec<DFSchemaRef> {
    plan.inputs().into_iter().map(|input| Arc::clone(input.schema())).collect()
}

/// An expression with the plans of its subqueries rewritten.
fn within(expr: Expr, names: &Names) -> Result<Transformed<Expr>> {
    expr.transform_down(|mut expr| {
        let of_existence = matches!(expr, Expr::Exists(_));
        let of_value = matches!(expr, Expr::ScalarSubquery(_));
        let Some(subquery) = plans::subquery(&mut expr) else { return Ok(Transformed::no(expr)) };
        let plan = LogicalPlan::clone(&subquery.subquery);
        let plan = rewritten(if of_existence { shortened(plan) } else { plan }, names)?;
        let plan = if of_value { forms::or_null(plan)? } else { plan };
        *subquery = Subquery {
            outer_ref_columns: plan.all_out_ref_exprs(),
            subquery: Arc::new(plan),
            spans: subquery.spans.clone(),
        };
        Ok(Transformed::yes(expr))
    })
}

/// A query that has a row if another one has, without what makes no difference to that.
fn shortened(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(node) if node.fetch.is_none() => shortened(Arc::unwrap_or_clone(node.input)),
        LogicalPlan::Distinct(Distinct::All(input)) => shortened(Arc::unwrap_or_clone(input)),
        LogicalPlan::Limit(node) if node.skip.is_none() => match node.get_fetch_type() {
            Ok(FetchType::Literal(Some(1..))) => shortened(Arc::unwrap_or_clone(node.input)),
            _ => LogicalPlan::Limit(node),
        },
        other => other,
    }
}
