//! Keys of an order. Intervals are ordered by how long they are, as they are compared; and zero is one number, whatever its
//! sign, where rows that are equal by one key are ordered by the next, or are peers of a window.

use super::functions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, Sort};

/// Keys of `ORDER BY`.
pub(super) fn by(sort: &mut Sort) {
    let schema = sort.input.schema();
    let last = sort.expr.len().saturating_sub(1);
    for (place, key) in sort.expr.iter_mut().enumerate() {
        if let Some(new) = by_length(&key.expr, schema) {
            key.expr = new;
        } else if place < last
            && let Some(new) = with_one_zero(&key.expr, schema)
        {
            key.expr = new;
        }
    }
}

/// Keys of a window.
pub(super) fn of_window(params: &mut WindowFunctionParams, schema: &DFSchema) -> bool {
    let mut changed = false;
    let order = params.order_by.iter_mut().map(|key| &mut key.expr);
    for key in order.chain(params.partition_by.iter_mut()) {
        if let Some(new) = by_length(key, schema).or_else(|| with_one_zero(key, schema)) {
            *key = new;
            changed = true;
        }
    }
    changed
}

fn by_length(key: &Expr, schema: &DFSchema) -> Option<Expr> {
    matches!(key.get_type(schema), Ok(DataType::Interval(_))).then(|| functions::length_of(key.clone()))
}

fn with_one_zero(key: &Expr, schema: &DFSchema) -> Option<Expr> {
    // The sum of both zeros is the positive one.
    let zero = match key.get_type(schema) {
        Ok(DataType::Float64) => ScalarValue::Float64(Some(0.0)),
        Ok(DataType::Float32) => ScalarValue::Float32(Some(0.0)),
        _ => return None,
    };
    if is_with_one_zero(key) {
        return None;
    }
    let zero = Box::new(Expr::Literal(zero, None));
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(key.clone()), Operator::Plus, zero)))
}

fn is_with_one_zero(key: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { op: Operator::Plus, right, .. }) = key else { return false };
    matches!(
        right.as_ref(),
        Expr::Literal(ScalarValue::Float64(Some(0.0)) | ScalarValue::Float32(Some(0.0)), _)
    )
}
