//! Numbers as they are written: `0.1` is a decimal, so that `0.1 + 0.2 = 0.3` is true, and `9007199254740993 =
//! 9007199254740992.0` is false. A quotient of decimals is a DOUBLE, as in DuckDB: DataFusion's has four more digits than the
//! dividend, so that `1.0 / 3` would be 0.33333. Casts to integers round, where DataFusion truncates.

use bowshot_api::{Error, Reason};
use bowshot_functions::{PlanFunction, plan_function, plan_function_of};
use bowshot_kernels::floats;
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Operator, ScalarUDF, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

static DIVIDE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of_doubles(Kind::Divide, 2));
static ROUND: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| of_doubles(Kind::Round, 1));

fn of_doubles(kind: Kind, arguments: usize) -> Arc<ScalarUDF> {
    let types = vec![DataType::Float64; arguments];
    Arc::new(plan_function(kind, Signature::exact(types, Volatility::Immutable)))
}

/// The functions, for those that look them up by name.
pub(crate) fn functions() -> [Arc<ScalarUDF>; 2] {
    [Arc::clone(&DIVIDE), Arc::clone(&ROUND)]
}

pub(crate) fn is_division(function: &ScalarUDF) -> bool {
    plan_function_of::<Kind>(function) == Some(&Kind::Divide)
}

pub(super) fn quotient(binary: BinaryExpr, (left, right): (&DataType, &DataType)) -> Transformed<Expr> {
    let exact = |of: &DataType| of.is_integer() || of.is_decimal();
    let decimal = left.is_decimal() || right.is_decimal();
    if binary.op != Operator::Divide || !decimal || !exact(left) || !exact(right) {
        return Transformed::no(Expr::BinaryExpr(binary));
    }
    let sides = [binary.left, binary.right].map(|side| Expr::Cast(Cast::new(side, DataType::Float64)));
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&DIVIDE), sides.to_vec())))
}

/// A cast to an integer, which takes the nearest one: half of floating-point numbers to even, that of decimals away from zero.
pub(super) fn cast(cast: Cast, schema: &DFSchema) -> Transformed<Expr> {
    let wanted = cast.field.data_type();
    let nearest = match cast.expr.get_type(schema) {
        Ok(DataType::Float16 | DataType::Float32 | DataType::Float64)
            if wanted.is_integer() && !is_rounded(&cast.expr) =>
        {
            let double = Expr::Cast(Cast::new(cast.expr, DataType::Float64));
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&ROUND), vec![double]))
        }
        Ok(DataType::Decimal128(_, scale)) if wanted.is_integer() && scale > 0 => {
            Expr::Cast(Cast::new(cast.expr, DataType::Decimal128(38, 0)))
        }
        _ => return Transformed::no(Expr::Cast(cast)),
    };
    Transformed::yes(Expr::Cast(Cast { expr: Box::new(nearest), field: cast.field }))
}

fn is_rounded(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.name() == Kind::Round.name())
}

/// `1.5e10` is read as a decimal with zeros behind its digits, which most clients do not know.
pub(super) fn literal(value: ScalarValue, metadata: Option<FieldMetadata>) -> Transformed<Expr> {
    match value {
        ScalarValue::Decimal128(Some(digits), _, scale) if scale < 0 => {
            // The shortest text is read as the nearest number.
            let double = format!("{digits}e{}", -i32::from(scale)).parse().ok();
            Transformed::yes(Expr::Literal(ScalarValue::Float64(double), metadata))
        }
        value => Transformed::no(Expr::Literal(value, metadata)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Divide,
    Round,
}

impl PlanFunction for Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Divide => "decimal_divide",
            Self::Round => "round_half_even",
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn compute(&self, arguments: &[ArrayRef]) -> Result<ArrayRef> {
        Ok(Arc::new(match (self, arguments) {
            (Self::Divide, [left, right]) => divided(left, right)?,
            (Self::Round, [of]) => floats::rounded(of.as_primitive::<Float64Type>()),
            _ => return internal_err!("`{}` has other arguments", self.name()),
        }))
    }
}

fn divided(left: &ArrayRef, right: &ArrayRef) -> Result<Float64Array> {
    let (left, right) = (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
    // A divisor of zero gives no finite number, and decimals give none else.
    floats::finite_quotients(left, right)?.ok_or_else(|| {
        DataFusionError::External(Box::new(
            Error::invalid("division by zero").with_reason(Reason::DivisionByZero),
        ))
    })
}
