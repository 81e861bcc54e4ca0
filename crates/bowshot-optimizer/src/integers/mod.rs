//! Sums, differences and products of integers that do not fit their type are errors, as in PostgreSQL and DuckDB; DataFusion wraps.
//! The operators become functions of ours before the optimizer runs, since it folds constants itself and moves expressions to
//! where no later rule looks. Their names stay those of the operators.

mod function;
mod literals;

use super::expressions::{in_plan, type_of};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, ScalarUDF, Values};
use function::IntegerArithmetic;
pub(crate) use function::shifted;
pub(super) use literals::IntegerLiterals;
use std::sync::{Arc, LazyLock};

/// Whether errors may come of a function: it is one of these.
pub(super) fn is_arithmetic(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<IntegerArithmetic>().is_some()
}

/// The functions, for those that look them up by name.
pub(crate) fn functions() -> Vec<Arc<ScalarUDF>> {
    FUNCTIONS.iter().map(|(_, function)| Arc::clone(function)).collect()
}

static FUNCTIONS: LazyLock<[(Operator, Arc<ScalarUDF>); 3]> = LazyLock::new(|| {
    [Operator::Plus, Operator::Minus, Operator::Multiply]
        .map(|operator| (operator, Arc::new(ScalarUDF::from(IntegerArithmetic::of(operator)))))
});

/// Must run after type coercion.
pub(super) fn integers_in_range(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Values(values) => Ok(in_types_of_columns(values)),
        other => Ok(Transformed::no(other)),
    });
    in_plan(plan.data()?, checked)
}

/// Rows that are written out, with integers in the types of their columns: the planner gives a CASE the type of its first value, which
/// may have been widened since.
fn in_types_of_columns(mut values: Values) -> Transformed<LogicalPlan> {
    let (nothing, mut has_changed) = (DFSchema::empty(), false);
    for row in &mut values.values {
        for (cell, field) in row.iter_mut().zip(values.schema.fields()) {
            let to = field.data_type();
            let is_other = |from: DataType| from.is_integer() && to.is_integer() && from != *to;
            if type_of(cell, &nothing).is_ok_and(is_other) {
                *cell = Expr::Cast(Cast::new(Box::new(std::mem::take(cell)), to.clone()));
                has_changed = true;
            }
        }
    }
    Transformed::new_transformed(LogicalPlan::Values(values), has_changed)
}

fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|node| match node {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match function_of(op).filter(|_| is_of_integers(&left, &right, schema)) {
                Some(function) => Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                    Arc::clone(function),
                    vec![*left, *right],
                )))),
                None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        // Of a column, the negation of the least number is that number.
        Expr::Negative(inner) => match (type_of(&inner, schema), function_of(Operator::Minus)) {
            (Ok(kind), Some(function)) if kind.is_signed_integer() => {
                let zero = Expr::Literal(ScalarValue::new_zero(&kind)?, None);
                let call = ScalarFunction::new_udf(Arc::clone(function), vec![zero, *inner]);
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            _ => Ok(Transformed::no(Expr::Negative(inner))),
        },
        node => Ok(Transformed::no(node)),
    })
}

fn function_of(operator: Operator) -> Option<&'static Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|(of, _)| *of == operator).map(|(_, function)| function)
}

fn is_of_integers(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    let kind = |side: &Expr| type_of(side, schema).ok().filter(DataType::is_integer);
    kind(left).is_some_and(|left| kind(right) == Some(left))
}
