//! Types whose equal values have several forms, and the keys to compare them by: an interval by its length; JSONB by its place in
//! PostgreSQL's order, since `{"a": 1}` equals `{"a": 1.0}` but keeps its digits; nested floating-point numbers with one zero and
//! one NaN, since nested values are compared by bits.

use super::{functions, intervals};
use bowshot_formats::extension_types::EXTENSION;
use bowshot_functions::jsonb_key;
use bowshot_kernels::nan::{has_floats, is_key_function, key_function};
use bowshot_types::declared::Declared;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator, Projection, Subquery,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Length,
    Jsonb,
    Floats,
}

impl Key {
    pub(super) fn of(expr: &Expr, schema: &DFSchema) -> Option<Self> {
        if intervals::is_interval(expr, schema) {
            return Some(Self::Length);
        }
        if are_nested_floats(expr, schema) {
            return Some(Self::Floats);
        }
        is_jsonb(expr, schema).then_some(Self::Jsonb)
    }

    /// Whether a column has one.
    pub(super) fn is_of(field: &Field) -> bool {
        let of = field.data_type();
        matches!(of, DataType::Interval(_)) || has_nested_floats(of) || is_jsonb_field(field)
    }

    pub(super) fn call(self, value: Expr) -> Expr {
        match self {
            Self::Length => functions::length_of(value),
            Self::Jsonb => jsonb_key().call(vec![value]),
            Self::Floats => key_function().call(vec![value]),
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

fn has_nested_floats(of: &DataType) -> bool {
    of.is_nested() && has_floats(of)
}

fn are_nested_floats(expr: &Expr, schema: &DFSchema) -> bool {
    // The types of long sums take time.
    !matches!(expr, Expr::BinaryExpr(_) | Expr::Negative(_))
        && !is_float_key(expr)
        && expr.get_type(schema).is_ok_and(|of| has_nested_floats(&of))
}

/// The analysis runs on what was analysed before, too.
fn is_float_key(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_float_key(&alias.expr),
        Expr::ScalarFunction(call) => is_key_function(&call.func),
        _ => false,
    }
}

/// Lists, structs and maps with floating-point numbers: their keys have their types, so each is replaced whatever the others are.
/// Says whether there are any.
pub(super) fn nested_floats<'a>(values: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut changed = false;
    for value in values {
        if are_nested_floats(value, schema) {
            replace(value, Key::Floats);
            changed = true;
        }
    }
    changed
}

/// Functions that compare the elements of lists.
pub(super) fn sought(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let compares = matches!(
        call.name(),
        "array_distinct"
            | "array_except"
            | "array_has"
            | "array_has_all"
            | "array_has_any"
            | "array_intersect"
            | "array_position"
            | "array_positions"
            | "array_union"
            | "quantified_all"
            | "quantified_any"
    );
    compares && all_by_float_key(&mut call.args, schema)
}

/// Whether any of them changed. All are looked at.
fn all_by_float_key(values: &mut [Expr], schema: &DFSchema) -> bool {
    let mut changed = false;
    for value in values {
        changed |= by_float_key(value, schema);
    }
    changed
}

/// Elements that are written out stay a list, which others look for.
fn by_float_key(value: &mut Expr, schema: &DFSchema) -> bool {
    if let Expr::ScalarFunction(list) = value
        && list.name() == "make_array"
    {
        return all_by_float_key(&mut list.args, schema);
    }
    if is_float_key(value) || !value.get_type(schema).is_ok_and(|of| has_floats(&of)) {
        return false;
    }
    replace(value, Key::Floats);
    true
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

/// Comparisons of JSONB and of nested floating-point numbers.
pub(super) fn compared(mut binary: BinaryExpr, schema: &DFSchema) -> Transformed<BinaryExpr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let compares =
        matches!(binary.op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom);
    if !compares {
        return Transformed::no(binary);
    }
    if !are_jsonb([binary.left.as_ref(), binary.right.as_ref()].into_iter(), schema) {
        let changed = nested_floats([binary.left.as_mut(), binary.right.as_mut()], schema);
        return Transformed::new_transformed(binary, changed);
    }
    replace(&mut binary.left, Key::Jsonb);
    replace(&mut binary.right, Key::Jsonb);
    Transformed::yes(binary)
}

/// `j BETWEEN '1' AND '[]'`
pub(super) fn between(mut between: Between, schema: &DFSchema) -> Transformed<Between> {
    let all = [between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()];
    if !are_jsonb(all.into_iter(), schema) {
        let all = [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
        let changed = nested_floats(all, schema);
        return Transformed::new_transformed(between, changed);
    }
    replace(&mut between.expr, Key::Jsonb);
    replace(&mut between.low, Key::Jsonb);
    replace(&mut between.high, Key::Jsonb);
    Transformed::yes(between)
}

/// `j IN ('{"a": 1.0}')`
pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Transformed<InList> {
    if !are_jsonb(std::iter::once(list.expr.as_ref()).chain(list.list.iter()), schema) {
        let all = std::iter::once(list.expr.as_mut()).chain(list.list.iter_mut());
        let changed = nested_floats(all, schema);
        return Transformed::new_transformed(list, changed);
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
