//! Intervals are compared by how long they are, a month for 30 days, as in PostgreSQL and DuckDB; DataFusion compares months
//! first, and then days, so that 25 hours are less than a day. They can be multiplied by numbers and divided.

use super::functions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

/// Comparisons of two intervals.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(binary) = expr else { return Transformed::no(expr) };
    if !(is_interval(&binary.left, schema) && is_interval(&binary.right, schema)) {
        return Transformed::no(Expr::BinaryExpr(binary));
    }
    let left = functions::length_of(*binary.left);
    let right = functions::length_of(*binary.right);
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), binary.op, Box::new(right))))
}

/// Lists of intervals.
pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    if !is_interval(&list.expr, schema) || !list.list.iter().all(|expr| is_interval(expr, schema)) {
        return Transformed::no(list);
    }
    for expr in std::iter::once(list.expr.as_mut()).chain(&mut list.list) {
        *expr = functions::length_of(std::mem::take(expr));
    }
    Transformed::yes(list)
}

/// A value that is compared with those of a subquery; says whether they are intervals.
pub(super) fn beside_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let plan = &subquery.subquery;
    let columns = plan.schema().columns();
    let [column] = columns.as_slice() else { return Ok(false) };
    let value = Expr::Column(column.clone());
    if !(is_interval(expr, schema) && is_interval(&value, plan.schema())) {
        return Ok(false);
    }
    *expr = functions::length_of(std::mem::take(expr));
    let lengths = Projection::try_new(vec![functions::length_of(value)], Arc::clone(plan))?;
    *subquery = subquery.with_plan(Arc::new(LogicalPlan::Projection(lengths)));
    Ok(true)
}

/// Keys that a join has by their names (`USING`, INTERSECT); says whether there are any.
pub(super) fn keys(join: &mut Join) -> bool {
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut changed = false;
    for (one, other) in &mut join.on {
        if is_interval(one, &left) && is_interval(other, &right) {
            *one = functions::length_of(std::mem::take(one));
            *other = functions::length_of(std::mem::take(other));
            changed = true;
        }
    }
    changed
}

pub(super) fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| matches!(of, DataType::Interval(_)))
}

/// Plans `interval * number`, `number * interval` and `interval / number`, which have no type without us.
#[derive(Debug)]
pub(in crate::rules) struct IntervalPlanner;

impl ExprPlanner for IntervalPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let number = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_numeric());
        let (left, right) = (is_interval(&expr.left, schema), is_interval(&expr.right, schema));
        Ok(match expr.op {
            BinaryOperator::Multiply if left && number(&expr.right) => {
                PlannerResult::Planned(functions::times(expr.left, expr.right))
            }
            BinaryOperator::Multiply if right && number(&expr.left) => {
                PlannerResult::Planned(functions::times(expr.right, expr.left))
            }
            BinaryOperator::Divide if left && number(&expr.right) => {
                PlannerResult::Planned(functions::divided(expr.left, expr.right))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}
