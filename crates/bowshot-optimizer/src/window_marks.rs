//! Marks of calls of window functions (`bowshot-sql`, `rewrite/frames.rs`): calls among the keys of PARTITION BY, which say what the syntax
//! of frames cannot. Rules take them off, so that no plan has them when it runs.

use super::expressions::in_node;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The plan with its calls of window functions changed by a function, which says whether it has changed one.
pub(super) fn change_window_calls(
    plan: LogicalPlan,
    change: fn(&mut WindowFunction) -> Result<bool>,
) -> Result<LogicalPlan> {
    let in_expression = |expr: Expr, _: &DFSchema| {
        expr.transform_up(|part| match part {
            Expr::WindowFunction(mut call) => {
                let changed = change(&mut call)?;
                Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
            }
            part => Ok(Transformed::no(part)),
        })
    };
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(_) => in_node(node, in_expression, &mut changed),
        node if changed => node.recompute_schema().map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    })
    .data()
}

/// The function of a mark, for those that look it up by name.
pub(super) fn mark(name: &'static str, arguments: usize) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Mark { name, signature: Signature::any(arguments, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mark {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Mark {
    bowshot_api::getters!(name: &str, signature: &Signature);

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("the mark {} of a frame is in a plan that runs", self.name)
    }
}
