//! Whether an expression may give an error instead of a value.

use crate::{integers, operators};
use arrow::datatypes::{DataType, Schema};
use bowshot_types::reads_strictly;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, NegativeExpr};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::sync::Arc;

/// Whether that is so for a kind of failure which queries guard themselves against: divisions by zero, numbers out of range,
/// casts of what is no such value. Other functions may fail as well, and are left where they are.
pub(super) fn can_fail(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    expression.exists(|node| Ok(fails(node, schema))).unwrap_or(true)
}

fn fails(node: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if let Some(binary) = node.downcast_ref::<BinaryExpr>() {
        let divides = matches!(binary.op(), Operator::Divide | Operator::Modulo);
        return divides && node.data_type(schema).map_or(true, |kind| !kind.is_floating());
    }
    if let Some(cast) = node.downcast_ref::<CastExpr>() {
        return cast.expr().data_type(schema).map_or(true, |from| may_not_fit(&from, cast.cast_type()));
    }
    if let Some(function) = node.downcast_ref::<ScalarFunctionExpr>() {
        let function = function.fun();
        return integers::is_arithmetic(function)
            || operators::is_division(function)
            || reads_strictly(function);
    }
    node.downcast_ref::<NegativeExpr>().is_some()
}

/// Whether a value of one type may be none of the other.
fn may_not_fit(from: &DataType, to: &DataType) -> bool {
    let text = matches!(from, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let into_text = matches!(to, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let narrower = from.is_numeric()
        && to.is_integer()
        && !(from.is_integer() && from.primitive_width() < to.primitive_width());
    (text && !into_text) || (narrower && from != to)
}
