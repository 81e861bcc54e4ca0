//! UUIDs that are bytes, as Arrow and the files of others have them, beside texts: the texts are read as UUIDs. What is written in
//! PostgreSQL's form of bytes (`'\x00ff…'`) stays that.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans comparisons of the two, which have no type without us.
#[derive(Debug)]
pub(in crate::rules) struct UuidPlanner;

impl ExprPlanner for UuidPlanner {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        );
        if compares {
            together([&mut expr.left, &mut expr.right], schema);
        }
        Ok(PlannerResult::Original(expr))
    }
}

pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    let changed = together(std::iter::once(list.expr.as_mut()).chain(list.list.iter_mut()), schema);
    if changed { Transformed::yes(list) } else { Transformed::no(list) }
}

pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
    if together(all, schema) { Transformed::yes(between) } else { Transformed::no(between) }
}

/// Reads the texts as UUIDs if others are; says whether there are any.
fn together<'a>(all: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let all: Vec<_> = all.into_iter().map(|expr| (expr.get_type(schema).ok(), expr)).collect();
    let uuid = DataType::FixedSizeBinary(16);
    if !all.iter().any(|(of, _)| of.as_ref() == Some(&uuid)) {
        return false;
    }
    let mut changed = false;
    for (of, expr) in all {
        if of.is_some_and(|of| of.is_string()) && !is_bytes(expr) {
            *expr = Expr::Cast(Cast::new(Box::new(std::mem::take(expr)), uuid.clone()));
            changed = true;
        }
    }
    changed
}

fn is_bytes(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            _,
        ) => text.starts_with("\\x"),
        _ => false,
    }
}
