//! Sort keys. Intervals sort by length, JSONB by kind and size, as they are compared, and enumerated types by label; zero is one
//! number whatever its sign, where rows equal by one key are ordered by the next, or are peers of a window.

use super::enums;
use super::keys::Key;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionParams};
use datafusion::logical_expr::{Aggregate, BinaryExpr, DistinctOn, Expr, ExprSchemable, Operator, Sort};
use std::sync::Arc;

/// Keys of `ORDER BY`.
pub(super) fn by(sort: &mut Sort) {
    let schema = sort.input.schema();
    let last = sort.expr.len().saturating_sub(1);
    for (place, key) in sort.expr.iter_mut().enumerate() {
        if let Some(new) = by_key(&key.expr, schema) {
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
    for key in &mut params.partition_by {
        if let Some(of) = Key::of(key, schema) {
            *key = of.call(std::mem::take(key));
            changed = true;
        }
    }
    let order = params.order_by.iter_mut().map(|key| &mut key.expr);
    for key in order.chain(params.partition_by.iter_mut()) {
        if let Some(new) = by_key(key, schema).or_else(|| with_one_zero(key, schema)) {
            *key = new;
            changed = true;
        }
    }
    changed
}

pub(super) fn of_aggregate(function: &mut AggregateFunction, schema: &DFSchema) -> bool {
    // That of DISTINCT is by its argument, and that of WITHIN GROUP gives the values.
    if function.params.distinct || function.func.supports_within_group_clause() {
        return false;
    }
    let mut changed = false;
    for key in &mut function.params.order_by {
        if let Some(new) = by_key(&key.expr, schema) {
            key.expr = new;
            changed = true;
        }
    }
    changed
}

/// What rows of `DISTINCT ON` are told apart by, and the order that they have before.
pub(super) fn distinct_on(distinct: &mut DistinctOn) -> bool {
    let schema = Arc::clone(distinct.input.schema());
    let order = distinct.sort_expr.iter_mut().flatten().map(|key| &mut key.expr);
    let mut changed = false;
    for expr in distinct.on_expr.iter_mut().chain(order) {
        if let Some(key) = Key::of(expr, &schema) {
            *expr = key.call(std::mem::take(expr));
            changed = true;
        } else if let Some(key) = enums::order_key(expr, &schema).or_else(|| with_one_zero(expr, &schema)) {
            *expr = key;
            changed = true;
        }
    }
    changed
}

/// Values of `count(DISTINCT x)`, which DataFusion compares by their bits where it makes no groups of them.
pub(super) fn distinct(aggregate: &mut Aggregate) -> bool {
    if becomes_groups(aggregate) {
        return false;
    }
    let schema = Arc::clone(aggregate.input.schema());
    let mut changed = false;
    for expr in &mut aggregate.aggr_expr {
        let name = expr.schema_name().to_string();
        let mut function = expr.clone().unalias();
        let Expr::AggregateFunction(AggregateFunction { params, .. }) = &mut function else { continue };
        if !params.distinct {
            continue;
        }
        let mut differs = false;
        for argument in params.args.iter_mut().chain(params.order_by.iter_mut().map(|key| &mut key.expr)) {
            if let Some(new) = with_one_zero(argument, &schema) {
                *argument = new;
                differs = true;
            }
        }
        if differs {
            *expr = function.alias(name);
            changed = true;
        }
    }
    changed
}

/// Whether DataFusion makes groups of the values of its one DISTINCT (`SingleDistinctToGroupBy`).
fn becomes_groups(aggregate: &Aggregate) -> bool {
    let mut count = 0;
    let is_fit = |expr: &Expr| {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else { return false };
        count += usize::from(params.distinct);
        params.filter.is_none()
            && params.order_by.is_empty()
            && (params.distinct || matches!(func.name(), "sum" | "min" | "max"))
    };
    let in_sets = aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
    !in_sets && aggregate.aggr_expr.iter().all(is_fit) && count < 2
}

fn by_key(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    let key = Key::of(value, schema).map(|key| key.call(value.clone()));
    key.or_else(|| enums::order_key(value, schema))
}

/// A floating-point number whose zero has no sign; `None` for values of other types.
pub(super) fn with_one_zero(key: &Expr, schema: &DFSchema) -> Option<Expr> {
    // The sum of both zeros is the positive one.
    let zero = zero_of(&key.get_type(schema).ok()?)?;
    if is_with_one_zero(key) {
        return None;
    }
    let zero = Box::new(Expr::Literal(zero, None));
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(key.clone()), Operator::Plus, zero)))
}

fn is_with_one_zero(key: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { op: Operator::Plus, right, .. }) = key else { return false };
    let Expr::Literal(value, _) = right.as_ref() else { return false };
    zero_of(&value.data_type()).is_some_and(|zero| zero == *value)
}

/// The positive zero of a type of floating-point numbers.
pub(super) fn zero_of(data_type: &DataType) -> Option<ScalarValue> {
    data_type.is_floating().then(|| ScalarValue::new_zero(data_type).ok()).flatten()
}
