//! Parameters beside operators whose sides have different types: DataFusion gives both sides one type, and two dates have no sum.
//! Types are those that PostgreSQL infers.

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// What a parameter is that is taken from a date or a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subtracted {
    /// Another one, as PostgreSQL reads it.
    Alike,
    /// An interval: the other reading gives no statement.
    Interval,
}

#[derive(Debug)]
pub struct ParameterOperands(Subtracted);

impl ParameterOperands {
    pub const AS_POSTGRES: Self = Self(Subtracted::Alike);
    /// For statements that cannot be planned otherwise, as `ts > now() - $1`.
    pub const INTERVALS: Self = Self(Subtracted::Interval);

    /// The type of a parameter on one side of an operator.
    fn wanted(&self, op: &BinaryOperator, other: &DataType, is_right: bool) -> Option<DataType> {
        match op {
            BinaryOperator::StringConcat if is_glued(other) => Some(DataType::Utf8),
            BinaryOperator::Plus if other.is_temporal() && !is_interval(other) => {
                let date = matches!(other, DataType::Date32 | DataType::Date64);
                let days = [DataType::Int32, DataType::Int64];
                let days = days.into_iter().find(|days| {
                    date && BinaryTypeCoercer::new(other, &Operator::Plus, days).get_result_type().is_ok()
                });
                Some(days.unwrap_or(INTERVAL))
            }
            BinaryOperator::Minus if is_right && self.0 == Subtracted::Interval && other.is_temporal() => {
                Some(INTERVAL)
            }
            BinaryOperator::Multiply if is_interval(other) => Some(DataType::Float64),
            BinaryOperator::Divide if is_interval(other) && is_right => Some(DataType::Float64),
            _ => None,
        }
    }
}

impl ExprPlanner for ParameterOperands {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        for is_right in [false, true] {
            let (side, other) = if is_right { (&expr.right, &expr.left) } else { (&expr.left, &expr.right) };
            let Expr::Placeholder(Placeholder { id, field: None }) = side else { continue };
            let Ok(other) = other.get_type(schema) else { continue };
            let Some(wanted) = self.wanted(&expr.op, &other, is_right) else { continue };
            let field = Some(Arc::new(Field::new("", wanted, true)));
            let typed = Expr::Placeholder(Placeholder { id: id.clone(), field });
            *(if is_right { &mut expr.right } else { &mut expr.left }) = typed;
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Whether `||` takes it for a text: what is no list and no bytes.
pub fn is_glued(of: &DataType) -> bool {
    *of == DataType::Null || of.is_numeric() || of.is_temporal() || *of == DataType::Boolean
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}
