//! Physical expressions that are judged elsewhere than where the query has them: which may be, and how they find their columns there.

use super::expressions::is_comparison;
use super::operators;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LambdaExpr, LikeExpr,
    Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use std::sync::Arc;

/// Whether equal values of a type are the same to all functions: both zeros are equal, and are told apart by a division.
pub(crate) fn is_plain(of: &DataType) -> bool {
    of.is_integer()
        || of.is_decimal()
        || of.is_string()
        || of.is_binary()
        || matches!(of, DataType::Boolean | DataType::Date32 | DataType::Date64)
        || matches!(of, DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_))
}

/// Whether a condition may be judged elsewhere. Variables of lambdas are numbered behind the columns of the whole filter.
pub(crate) fn can_move(expression: &Arc<dyn PhysicalExpr>) -> bool {
    let has_lambda = expression.exists(|node| Ok(node.downcast_ref::<LambdaExpr>().is_some()));
    !is_volatile(expression) && has_lambda.is_ok_and(|has_lambda| !has_lambda)
}

pub(crate) fn with_columns(
    expression: Arc<dyn PhysicalExpr>,
    other: &dyn Fn(&Column) -> Result<Column>,
) -> Result<Arc<dyn PhysicalExpr>> {
    expression
        .transform(|node| {
            Ok(match node.downcast_ref::<Column>() {
                Some(column) => Transformed::yes(Arc::new(other(column)?) as _),
                None => Transformed::no(node),
            })
        })
        .data()
}

pub(crate) fn for_each_column(expression: &Arc<dyn PhysicalExpr>, f: &mut dyn FnMut(&Column)) -> Result<()> {
    expression.apply(|node| {
        if let Some(column) = node.downcast_ref::<Column>() {
            f(column);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether an expression gives a value for all rows. Casts, divisions and functions may fail on rows that another join would
/// have taken away.
pub(crate) fn never_fails(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let harmless = if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        match binary.op() {
            Operator::And | Operator::Or => true,
            Operator::Plus | Operator::Minus | Operator::Multiply => {
                expression.data_type(schema).is_ok_and(|of| holds_all_results(&of))
            }
            op => is_comparison(*op),
        }
    } else if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema);
        from.is_ok_and(|from| cast.is_bigger_cast(&from) || always_fits(&from, cast.cast_type()))
    } else if let Some(call) = expression.downcast_ref::<ScalarFunctionExpr>() {
        operators::is_division(call.fun()) && call.args().get(1).is_some_and(divides_all)
    } else {
        is_one_of_harmless(expression)
    };
    harmless && expression.children().into_iter().all(|child| never_fails(child, schema))
}

/// Whether sums, differences and products of this type are within it. Numbers wrap around; points in time do not. Decimals have
/// digits for each result, unless that would be more than there may be.
fn holds_all_results(of: &DataType) -> bool {
    match of {
        DataType::Decimal128(precision, _) => *precision < DECIMAL128_MAX_PRECISION,
        DataType::Decimal256(precision, _) => *precision < DECIMAL256_MAX_PRECISION,
        other => other.is_numeric() && !other.is_decimal(),
    }
}

/// Whether each exact number of one type is a number of the other, if rounded.
fn always_fits(from: &DataType, to: &DataType) -> bool {
    let is_exact = from.is_integer() || matches!(from, DataType::Decimal128(..));
    match to {
        DataType::Float64 => is_exact,
        DataType::Decimal128(precision, scale) => {
            // Digits before the point.
            let whole = i16::from(*precision) - i16::from(*scale);
            match from {
                DataType::Decimal128(digits, behind) => {
                    behind <= scale && i16::from(*digits) - i16::from(*behind) <= whole
                }
                DataType::Int8 | DataType::UInt8 => whole >= 3,
                DataType::Int16 | DataType::UInt16 => whole >= 5,
                DataType::Int32 | DataType::UInt32 => whole >= 10,
                DataType::Int64 | DataType::UInt64 => whole >= 20,
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether an expression is a number that all others can be divided by, with a result in range.
fn divides_all(divisor: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = divisor.downcast_ref::<Literal>().map(Literal::value);
    matches!(literal, Some(ScalarValue::Float64(Some(divisor))) if divisor.is_finite() && divisor.abs() >= 1.0)
}

fn is_one_of_harmless(expression: &Arc<dyn PhysicalExpr>) -> bool {
    expression.downcast_ref::<Column>().is_some()
        || expression.downcast_ref::<Literal>().is_some()
        || expression.downcast_ref::<CaseExpr>().is_some()
        || expression.downcast_ref::<InListExpr>().is_some()
        || expression.downcast_ref::<LikeExpr>().is_some()
        || expression.downcast_ref::<NotExpr>().is_some()
        || expression.downcast_ref::<IsNullExpr>().is_some()
        || expression.downcast_ref::<IsNotNullExpr>().is_some()
}
