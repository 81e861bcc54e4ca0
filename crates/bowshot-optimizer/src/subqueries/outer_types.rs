//! A column from outside has the type that it has there. Where the parts of a UNION are coerced to a wider type, the subquery keeps
//! the type from when it was planned, and values of two types would be compared as one.

use super::{lateral, plans};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use std::sync::Arc;

/// A type may travel through as many subqueries, one within the other; deeper ones keep what they have.
const LEVELS: usize = 16;

/// Coerces types, and again where a column from outside has got another type by that.
pub(crate) fn outer_types(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let types = TypeCoercion::new();
    let mut plan = types.analyze(plan, config)?;
    if !plans::has_subqueries(&plan)? {
        return Ok(plan);
    }
    for _ in 0..LEVELS {
        let settled = refreshed(plan, &[])?;
        if !settled.transformed {
            return Ok(settled.data);
        }
        plan = types.analyze(settled.data, config)?;
    }
    Ok(plan)
}

/// The schemas of the queries around, the nearest last.
type Around<'a> = &'a [DFSchemaRef];

fn refreshed(plan: LogicalPlan, around: Around<'_>) -> Result<Transformed<LogicalPlan>> {
    let plan = with_inputs(plan, around)?;
    let mut within = around.to_vec();
    within.extend(plan.data.inputs().into_iter().map(|input| Arc::clone(input.schema())));
    let changed = plan.transformed;
    let mut plan = plan.data.map_expressions(|expr| expression(expr, around, &within))?;
    plan.transformed |= changed;
    if plan.transformed {
        plan.data = plan.data.recompute_schema()?;
    }
    Ok(plan)
}

/// The right side of a LATERAL join has the left one around it.
fn with_inputs(plan: LogicalPlan, around: Around<'_>) -> Result<Transformed<LogicalPlan>> {
    let left = match &plan {
        LogicalPlan::Join(join) if lateral::is_lateral(&join.right) => Some(Arc::clone(join.left.schema())),
        _ => None,
    };
    let within: Vec<_> = around.iter().cloned().chain(left).collect();
    plan.map_children(|input| refreshed(input, &within))
}

/// An expression that has `around` outside, and in its subqueries `within`.
fn expression(expr: Expr, around: Around<'_>, within: Around<'_>) -> Result<Transformed<Expr>> {
    expr.transform_down(|mut expr| {
        if let Expr::OuterReferenceColumn(field, column) = &expr {
            return Ok(match found(column, around) {
                Some(now) if now.data_type() != field.data_type() => {
                    Transformed::yes(Expr::OuterReferenceColumn(now, column.clone()))
                }
                _ => Transformed::no(expr),
            });
        }
        let Some(subquery) = plans::subquery(&mut expr) else { return Ok(Transformed::no(expr)) };
        let plan = refreshed(LogicalPlan::clone(&subquery.subquery), within)?;
        if !plan.transformed {
            return Ok(Transformed::no(expr));
        }
        *subquery = Subquery {
            outer_ref_columns: plan.data.all_out_ref_exprs(),
            subquery: Arc::new(plan.data),
            spans: subquery.spans.clone(),
        };
        Ok(Transformed::yes(expr))
    })
}

fn found(column: &Column, around: Around<'_>) -> Option<datafusion::arrow::datatypes::FieldRef> {
    around.iter().rev().find_map(|schema| {
        let index = schema.maybe_index_of_column(column)?;
        Some(Arc::clone(schema.field(index)))
    })
}
