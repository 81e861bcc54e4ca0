//! PostgreSQL's operators on JSON, as calls of functions.
//!
//! JSON is text: between two texts `->`, `->>`, `#>`, `@>`, `?` … have no other meaning. `||` and `-` do, so that `-` is JSON's
//! only where one side says that it is JSON, and `||` where one says that it is JSONB.

use super::arguments::{is_json, is_jsonb, jsonb_field};
use super::call;
use crate::scalar_udf::text_type;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct JsonOperators;

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if matches!(raw.op, BinaryOperator::Eq | BinaryOperator::NotEq) {
            return compared(raw, schema);
        }
        let Some(name) = function_of(&raw, schema)? else { return Ok(PlannerResult::Original(raw)) };
        let (left, right) = match raw.op {
            BinaryOperator::ArrowAt => (raw.right, raw.left),
            BinaryOperator::StringConcat => (typed(raw.left), typed(raw.right)),
            _ => (raw.left, raw.right),
        };
        call(name, vec![left, right]).map(PlannerResult::Planned)
    }
}

/// `j = '{"b":1,"a":2}'`: what has no type yet is JSONB beside JSONB, so that its spelling does not count.
fn compared(raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let RawBinaryExpr { op, left, right } = raw;
    let (left, right) = match (is_untyped(&left), is_untyped(&right)) {
        (true, false) if is_jsonb(&right.to_field(schema)?.1) => (call("jsonb", vec![typed(left)])?, right),
        (false, true) if is_jsonb(&left.to_field(schema)?.1) => (left, call("jsonb", vec![typed(right)])?),
        _ => (left, right),
    };
    Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
}

/// A parameter without a type is JSONB.
fn typed(side: Expr) -> Expr {
    match side {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Expr::Placeholder(Placeholder { id, field: Some(Arc::new(jsonb_field())) })
        }
        other => other,
    }
}

/// Whether it has the type that its place asks for.
fn is_untyped(side: &Expr) -> bool {
    matches!(side, Expr::Placeholder(_) | Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// The function that stands for an operator between these two, if it is one on JSON.
fn function_of(raw: &RawBinaryExpr, schema: &DFSchema) -> Result<Option<&'static str>> {
    let name = match raw.op {
        BinaryOperator::Arrow => "json_extract",
        BinaryOperator::LongArrow => "json_extract_string",
        BinaryOperator::HashArrow => "json_extract_names",
        BinaryOperator::HashLongArrow => "json_extract_names_text",
        BinaryOperator::HashMinus => "json_delete_path",
        BinaryOperator::AtArrow | BinaryOperator::ArrowAt => "json_contained",
        BinaryOperator::Question => "json_has_key",
        BinaryOperator::QuestionPipe => "json_has_any_key",
        BinaryOperator::QuestionAnd => "json_has_all_keys",
        BinaryOperator::AtQuestion => "json_exists",
        BinaryOperator::StringConcat => {
            // To PostgreSQL and DuckDB that of JSON is that of texts.
            let of_jsonb = |side: &Expr| Ok::<_, DataFusionError>(is_jsonb(&side.to_field(schema)?.1));
            let (left, right) = (of_jsonb(&raw.left)?, of_jsonb(&raw.right)?);
            let both = left && (right || is_untyped(&raw.right)) || right && is_untyped(&raw.left);
            return Ok(both.then_some("json_concat"));
        }
        BinaryOperator::Minus if is_json(&raw.left.to_field(schema)?.1) => return Ok(Some("json_delete")),
        _ => return Ok(None),
    };
    let left = raw.left.get_type(schema)?;
    let contained = matches!(raw.op, BinaryOperator::AtArrow | BinaryOperator::ArrowAt);
    let right = !contained || text_type(&raw.right.get_type(schema)?);
    Ok(((text_type(&left) || left.is_null()) && right).then_some(name))
}
