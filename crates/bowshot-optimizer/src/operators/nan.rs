//! One NaN. The processor gives NaN of infinities (`x - x`, `0 * x`, `sqrt(-1)`) a negative sign, so that it would be another group
//! than a written NaN, and sort below all numbers. Values from outside are normalized where they come in
//! ([`bowshot_kernels::nan`]), results of aggregates in `NanOfAggregates`.

use crate::expressions::{in_plan, is_arithmetic, type_of};
use bowshot_kernels::nan;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, TryCast};

/// Functions that make no NaN of other values, and that are looked at by rules which know them by their names.
const WITHOUT: [&str; 16] = [
    "abs",
    "array_element",
    "ceil",
    "coalesce",
    "date_part",
    "floor",
    "get_field",
    "greatest",
    "least",
    "nullif",
    "nvl",
    "random",
    "round",
    "signum",
    "trunc",
    "unnest",
];

/// Must run after type coercion.
pub(crate) fn only_one_nan(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    in_plan(plan, |expr, schema| expr.transform_up(|node| Ok(canonical(node, schema))))
}

/// What is computed, with the one NaN. Within what is computed further it does not matter yet.
fn canonical(mut node: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let makes_nan = match &node {
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => {
            is_floating(&binary.left, schema) && is_floating(&binary.right, schema)
        }
        Expr::Negative(of) => is_floating(of, schema),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            field.data_type().is_floating() && is_text(expr, schema)
        }
        // The analysis runs on what was analysed before, too.
        Expr::ScalarFunction(call) if is_canonical(call) => match call.args.as_slice() {
            [inner @ Expr::ScalarFunction(call)] if is_canonical(call) => {
                return Transformed::yes(inner.clone());
            }
            _ => false,
        },
        Expr::ScalarFunction(call) if !WITHOUT.contains(&call.func.name()) => {
            type_of(&node, schema).is_ok_and(|of| of.is_floating())
        }
        _ => false,
    };
    if !makes_nan {
        return Transformed::no(node);
    }
    match &mut node {
        Expr::BinaryExpr(binary) => {
            bare(&mut binary.left);
            bare(&mut binary.right);
        }
        Expr::Negative(of) => bare(of),
        _ => {}
    }
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(nan::function(), vec![node])))
}

/// What is below arithmetic has been looked at: a long sum is not asked for its type at each of its levels.
fn is_floating(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(call) if is_canonical(call) => true,
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => false,
        other => type_of(other, schema).is_ok_and(|of| of.is_floating()),
    }
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    type_of(expr, schema).is_ok_and(|of| of.is_string())
}

fn is_canonical(call: &ScalarFunction) -> bool {
    nan::is_function(&call.func)
}

fn bare(expr: &mut Expr) {
    let Expr::ScalarFunction(call) = expr else { return };
    if is_canonical(call)
        && let Some(inner) = call.args.pop()
    {
        *expr = inner;
    }
}
