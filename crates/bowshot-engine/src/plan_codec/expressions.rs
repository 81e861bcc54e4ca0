//! Our expressions: one byte for the kind, then what it has beside its inputs.

use super::stays;
use bowshot_optimizer::cooperative::nested_loops;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use std::sync::Arc;

const STEPPING: u8 = 1;
const GUARDED: u8 = 2;
const NARROW: u8 = 3;

const OPERATORS: [(Operator, u8); 5] = [
    (Operator::And, b'&'),
    (Operator::Or, b'|'),
    (Operator::Plus, b'+'),
    (Operator::Minus, b'-'),
    (Operator::Multiply, b'*'),
];

/// Writes an expression without its inputs.
pub(super) fn write(expression: &Arc<dyn PhysicalExpr>, into: &mut Vec<u8>) -> Result<()> {
    if nested_loops::is_stepping(expression) {
        into.push(STEPPING);
        return Ok(());
    }
    if let Some(operator) = bowshot_optimizer::guarded_operator(expression) {
        into.extend([GUARDED, code(operator)?]);
        return Ok(());
    }
    if let Some((operator, DataType::Decimal128(precision, scale))) =
        bowshot_optimizer::narrow_arithmetic(expression)
    {
        into.extend([NARROW, code(operator)?, *precision, scale.to_ne_bytes()[0]]);
        return Ok(());
    }
    Err(stays(format!("`{expression}`")))
}

/// The expression of these inputs.
pub(super) fn read(bytes: &[u8], inputs: &[Arc<dyn PhysicalExpr>]) -> Result<Arc<dyn PhysicalExpr>> {
    match (bytes, inputs) {
        ([STEPPING], [of]) => Ok(nested_loops::stepping(Arc::clone(of))),
        ([GUARDED, operator], [left, right]) => {
            Ok(bowshot_optimizer::guard(Arc::clone(left), operator_of(*operator)?, Arc::clone(right)))
        }
        ([NARROW, operator, precision, scale], [left, right]) => {
            let result = DataType::Decimal128(*precision, i8::from_ne_bytes([*scale]));
            Ok(bowshot_optimizer::narrow(
                Arc::clone(left),
                operator_of(*operator)?,
                Arc::clone(right),
                result,
            ))
        }
        _ => internal_err!("these bytes are no expression of ours"),
    }
}

fn code(operator: Operator) -> Result<u8> {
    match OPERATORS.iter().find(|(known, _)| *known == operator) {
        Some((_, code)) => Ok(*code),
        None => Err(stays(format!("`{operator}`"))),
    }
}

fn operator_of(code: u8) -> Result<Operator> {
    match OPERATORS.iter().find(|(_, known)| *known == code) {
        Some((operator, _)) => Ok(*operator),
        None => internal_err!("{code} is no operator"),
    }
}
