//! Types in which equal values have several forms, and what such values are compared by: an interval by its length, JSONB by its
//! place in PostgreSQL's order, since `{"a": 1}` is `{"a": 1.0}` but keeps its digits.

use super::{functions, intervals};
use crate::types::declared::Declared;
use bowshot_functions::jsonb_key;
use bowshot_storage::tables::EXTENSION;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, Projection, Subquery,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Length,
    Jsonb,
}

impl Key {
    pub(super) fn of(expr: &Expr, schema: &DFSchema) -> Option<Self> {
        if intervals::is_interval(expr, schema) {
            return Some(Self::Length);
        }
        is_jsonb(expr, schema).then_some(Self::Jsonb)
    }

    /// Whether a column has one.
    pub(super) fn is_of(field: &Field) -> bool {
        matches!(field.data_type(), DataType::Interval(_)) || is_jsonb_field(field)
    }

    pub(super) fn call(self, value: Expr) -> Expr {
        match self {
            Self::Length => functions::length_of(value),
            Self::Jsonb => jsonb_key().call(vec![value]),
        }
    }
}

fn is_jsonb(expr: &Expr, schema: &DFSchema) -> bool {
    // Operators on JSONB are calls by now; the types of long sums take time.
    !matches!(expr, Expr::BinaryExpr(_) | Expr::Literal(..) | Expr::Negative(_))
        && expr.to_field(schema).is_ok_and(|(_, field)| is_jsonb_field(&field))
}

fn is_jsonb_field(field: &Field) -> bool {
    // A cast to text takes the extension type away.
    field.data_type().is_string()
        && field.metadata().contains_key(EXTENSION)
        && Declared::of(field) == Some(Declared::Jsonb)
}

/// Whether values are compared as JSONB: one of them is, and the others are too, or are written out.
fn are_jsonb<'a>(mut values: impl Iterator<Item = &'a Expr> + Clone, schema: &DFSchema) -> bool {
    let is_written = |value: &Expr| match value {
        Expr::Literal(value, _) => {
            let of = value.data_type();
            of.is_string() || of.is_null()
        }
        _ => false,
    };
    values.clone().any(|value| is_jsonb(value, schema))
        && values.all(|value| is_written(value) || is_jsonb(value, schema))
}

fn replace(value: &mut Expr, key: Key) {
    *value = key.call(std::mem::take(value));
}

/// Comparisons of JSONB.
pub(super) fn compared(mut binary: BinaryExpr, schema: &DFSchema) -> Transformed<BinaryExpr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let compares =
        matches!(binary.op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom);
    if !compares || !are_jsonb([binary.left.as_ref(), binary.right.as_ref()].into_iter(), schema) {
        return Transformed::no(binary);
    }
    replace(&mut binary.left, Key::Jsonb);
    replace(&mut binary.right, Key::Jsonb);
    Transformed::yes(binary)
}

/// `j BETWEEN '1' AND '[]'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = [between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()];
    if !are_jsonb(all.into_iter(), schema) {
        return Transformed::no(between);
    }
    replace(&mut between.expr, Key::Jsonb);
    replace(&mut between.low, Key::Jsonb);
    replace(&mut between.high, Key::Jsonb);
    Transformed::yes(between)
}

/// `j IN ('{"a": 1.0}')`
pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    if !are_jsonb(std::iter::once(list.expr.as_ref()).chain(list.list.iter()), schema) {
        return Transformed::no(list);
    }
    replace(&mut list.expr, Key::Jsonb);
    list.list.iter_mut().for_each(|value| replace(value, Key::Jsonb));
    Transformed::yes(list)
}

/// A value that is compared with those of a subquery; says whether both have such a key.
pub(super) fn beside_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let plan = &subquery.subquery;
    let columns = plan.schema().columns();
    let [column] = columns.as_slice() else { return Ok(false) };
    let value = Expr::Column(column.clone());
    let Some(key) = Key::of(expr, schema) else { return Ok(false) };
    if Key::of(&value, plan.schema()) != Some(key) {
        return Ok(false);
    }
    replace(expr, key);
    let keys = Projection::try_new(vec![key.call(value)], Arc::clone(plan))?;
    *subquery = subquery.with_plan(Arc::new(LogicalPlan::Projection(keys)));
    Ok(true)
}

/// Keys that a join has by their names (`USING`, INTERSECT); says whether there are any.
pub(super) fn of_join(join: &mut Join) -> bool {
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut changed = false;
    for (one, other) in &mut join.on {
        let Some(key) = Key::of(one, &left) else { continue };
        if Key::of(other, &right) == Some(key) {
            replace(one, key);
            replace(other, key);
            changed = true;
        }
    }
    changed
}
