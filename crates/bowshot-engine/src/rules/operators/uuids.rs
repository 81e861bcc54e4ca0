//! UUIDs that are bytes, as Arrow and the files of others have them, beside texts: the texts are read as UUIDs. What is written in
//! PostgreSQL's form of bytes (`'\x00ff…'`) stays that, and is read so beside other bytes.

use crate::types::casts::escaped_bytes;
use bowshot_storage::tables::{self, EXTENSION};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Join};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

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

/// Keys that a join has by their names (`USING`, INTERSECT); says whether there are any.
pub(super) fn keys(join: &mut Join) -> bool {
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut changed = false;
    for (one, other) in &mut join.on {
        let (Ok(of_one), Ok(of_other)) = (one.get_type(&left), other.get_type(&right)) else { continue };
        let text = if is_uuid(&of_one) && of_other.is_string() {
            other
        } else if is_uuid(&of_other) && of_one.is_string() {
            one
        } else {
            continue;
        };
        *text = Expr::Cast(Cast::new(Box::new(std::mem::take(text)), UUID));
        changed = true;
    }
    changed
}

const UUID: DataType = DataType::FixedSizeBinary(16);

fn is_uuid(data_type: &DataType) -> bool {
    *data_type == UUID
}

/// Whether values are UUIDs by the extension type of Arrow.
pub(super) fn is_bytes_of_uuid(field: &Field) -> bool {
    is_uuid(field.data_type()) && field.metadata().get(EXTENSION).is_some_and(|name| name == tables::UUID)
}

/// Reads the texts as UUIDs if others are, and those that are written out as bytes if others are bytes; says whether there are
/// any.
fn together<'a>(all: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let all: Vec<_> = all.into_iter().map(|expr| (expr.get_type(schema).ok(), expr)).collect();
    let has = |is: fn(&DataType) -> bool| all.iter().any(|(of, _)| of.as_ref().is_some_and(is));
    let uuids = has(is_uuid);
    if !uuids && !has(|of| matches!(of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)) {
        return false;
    }
    let mut changed = false;
    for (of, expr) in all {
        if !of.is_some_and(|of| of.is_string()) {
            continue;
        }
        let read = match written(expr) {
            _ if !uuids => written(expr).map(|_| bytes(expr)),
            Some(text) if text.starts_with("\\x") => None,
            _ => Some(Expr::Cast(Cast::new(Box::new(expr.clone()), UUID))),
        };
        if let Some(read) = read {
            *expr = read;
            changed = true;
        }
    }
    changed
}

fn bytes(text: &Expr) -> Expr {
    let cast = || Expr::Cast(Cast::new(Box::new(text.clone()), DataType::Binary));
    escaped_bytes(text).unwrap_or_else(cast)
}

fn written(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}
