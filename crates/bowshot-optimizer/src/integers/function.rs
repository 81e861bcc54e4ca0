//! The function that stands for an operator.

use bowshot_kernels::integers;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use std::sync::Arc;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IntegerArithmetic {
    operator: Operator,
    signature: Signature,
}

impl IntegerArithmetic {
    pub(super) fn of(operator: Operator) -> Self {
        Self { operator, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for IntegerArithmetic {
    fn name(&self) -> &'static str {
        match self.operator {
            Operator::Plus => "integer_add",
            Operator::Minus => "integer_subtract",
            _ => "integer_multiply",
        }
    }

    /// The operator's own, so that columns keep their names. A long sum is written from its first part on: level by level each
    /// would copy the name of the one within.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return internal_err!("arithmetic has two sides") };
        let mut left = left;
        let mut parts = vec![(self.operator, right)];
        while let Some((operator, inner, right)) = sides(left) {
            parts.push((operator, right));
            left = inner;
        }
        let mut name = left.schema_name().to_string();
        for (operator, right) in parts.iter().rev() {
            name.push_str(&format!(" {operator} {}", right.schema_name()));
        }
        Ok(name)
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [left, right] if left == right && left.is_integer() => Ok(left.clone()),
            _ => exec_err!("`{}` takes two integers of one type", self.operator),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return internal_err!("arithmetic has two sides") };
        integers::compute(self.operator, left, right)
    }
}

/// The column of an expression that adds a constant to it or subtracts one, and so has another value for each of the column's.
pub(crate) fn shifted(expression: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let function = call.fun().inner().downcast_ref::<IntegerArithmetic>()?;
    let [left, right] = call.args() else { return None };
    let is_sum = function.operator == Operator::Plus;
    let (column, constant) =
        if is_sum && left.downcast_ref::<Literal>().is_some() { (right, left) } else { (left, right) };
    let is_shift = is_sum || function.operator == Operator::Minus;
    column.downcast_ref::<Column>().filter(|_| is_shift && constant.downcast_ref::<Literal>().is_some())
}

fn sides(expr: &Expr) -> Option<(Operator, &Expr, &Expr)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let function = call.func.inner().downcast_ref::<IntegerArithmetic>()?;
    let [left, right] = call.args.as_slice() else { return None };
    Some((function.operator, left, right))
}
