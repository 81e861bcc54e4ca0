//! PostgreSQL's operators on JSON, as calls of functions.
//!
//! JSON is text: between two texts `->`, `->>`, `#>`, `@>`, `?` … have no other meaning. `||` and `-` do, so that they are JSON's
//! only where one side says that it is JSON.

use super::rows::is_json;
use crate::define::Body;
use crate::made::text_type;
use datafusion::common::{DFSchema, Result, not_impl_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// See the module.
#[derive(Debug)]
pub(crate) struct JsonOperators;

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let Some(name) = function_of(&raw, schema)? else { return Ok(PlannerResult::Original(raw)) };
        let (left, right) = match raw.op {
            BinaryOperator::ArrowAt => (raw.right, raw.left),
            _ => (raw.left, raw.right),
        };
        let Some(function) = super::all().find(|function| function.name == name) else {
            return not_impl_err!("operator `{}` on JSON", raw.op);
        };
        match function.body {
            Body::Made(make) => Ok(PlannerResult::Planned(make().call(vec![left, right]))),
            _ => not_impl_err!("operator `{}` on JSON", raw.op),
        }
    }
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
        BinaryOperator::StringConcat if marked(&raw.left, schema)? && marked(&raw.right, schema)? => {
            return Ok(Some("json_concat"));
        }
        BinaryOperator::Minus if marked(&raw.left, schema)? => return Ok(Some("json_delete")),
        _ => return Ok(None),
    };
    let left = raw.left.get_type(schema)?;
    let contained = matches!(raw.op, BinaryOperator::AtArrow | BinaryOperator::ArrowAt);
    let right = !contained || text_type(&raw.right.get_type(schema)?);
    Ok(((text_type(&left) || left.is_null()) && right).then_some(name))
}

fn marked(side: &Expr, schema: &DFSchema) -> Result<bool> {
    Ok(is_json(&side.to_field(schema)?.1))
}
