//! A NULL list, map or struct has no contents, whatever its buffers hold: Arrow allows values below a NULL, files and clients send
//! them, and `CASE` and `nullif` make them. Some of DataFusion's functions read those values, so that a field of a NULL struct
//! is not NULL. They become functions of ours that apply the NULLs first.

mod files;
mod function;

use super::expressions::in_plan;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarUDF};
pub(super) use files::fields_in_files;
use function::NullsFirst;
use std::sync::Arc;

/// The functions, for those that look them up by name.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    use datafusion::functions::core::get_field;
    use datafusion::functions_nested::concat::{array_append_udf, array_prepend_udf};
    use datafusion::functions_nested::repeat::array_repeat_udf;
    let stock = [get_field(), array_append_udf(), array_prepend_udf(), array_repeat_udf()];
    stock.into_iter().filter_map(nulls_first).collect()
}

/// The function of ours in the place of another, if that one needs it.
fn nulls_first(function: Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    NullsFirst::of(function).map(|function| Arc::new(ScalarUDF::from(function)))
}

/// Must run after type coercion.
pub(super) fn nothing_below_nulls(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    in_plan(plan, replaced)
}

fn replaced(expr: Expr, _schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|node| match node {
        Expr::ScalarFunction(call) => Ok(match nulls_first(Arc::clone(&call.func)) {
            Some(function) if call.func.inner().is::<GetFieldFunc>() => {
                Transformed::yes(step_by_step(&function, call.args))
            }
            Some(function) => {
                Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args)))
            }
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        node => Ok(Transformed::no(node)),
    })
}

/// The field of a field as the field of what another call gives: each sees the NULLs of its own struct.
fn step_by_step(function: &Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    let call = |args| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args));
    let mut args = args.into_iter();
    match (args.next(), args.next()) {
        (Some(of), Some(first)) => args.fold(call(vec![of, first]), |inner, name| call(vec![inner, name])),
        (of, _) => call(of.into_iter().collect()),
    }
}
