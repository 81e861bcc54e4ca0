//! Offsets of window frames that are computed, such as parameters (`bowshot-sql`, `rewrite/frames.rs`): each is a call among the
//! keys of PARTITION BY. One that has a value goes into its frame; a plan without values of its parameters keeps the call.

use super::expressions::in_node;
use bowshot_api::Error;
use bowshot_sql::rewrite::FRAME_OFFSET;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use std::sync::Arc;

pub(super) fn with_offsets(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Window(_) => in_node(node, in_expression, &mut changed),
        node if changed => node.recompute_schema().map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    })
    .data()
}

fn in_expression(expr: Expr, _schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|part| match part {
        Expr::WindowFunction(mut call) => {
            let changed = take_offsets(&mut call)?;
            let call = Expr::WindowFunction(call);
            Ok(if changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        part => Ok(Transformed::no(part)),
    })
}

/// Puts the offsets into the frame of a call; says whether there are any.
fn take_offsets(call: &mut WindowFunction) -> Result<bool> {
    let mut changed = false;
    for key in std::mem::take(&mut call.params.partition_by) {
        match Offset::of(&key)? {
            Some(offset) => {
                call.params.window_frame = offset.put(&call.params.window_frame)?;
                changed = true;
            }
            None => call.params.partition_by.push(key),
        }
    }
    Ok(changed)
}

/// A value of one of the two bounds of a frame.
struct Offset {
    is_start: bool,
    text: String,
}

impl Offset {
    /// `None` for other keys, and for what has no value yet.
    fn of(key: &Expr) -> Result<Option<Self>> {
        let Expr::ScalarFunction(call) = key else { return Ok(None) };
        let [Expr::Literal(bound, _), value] = call.args.as_slice() else { return Ok(None) };
        if call.name() != FRAME_OFFSET || value.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))? {
            return Ok(None);
        }
        if value.any_column_refs() {
            return Err(invalid("the offset of a frame must not name columns"));
        }
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().build());
        let value = simplifier.simplify(simplifier.coerce(value.clone(), &DFSchema::empty())?)?;
        let Expr::Literal(value, _) = value else {
            return Err(invalid("the offset of a frame must be a constant"));
        };
        let Some(text) = value.try_as_str().flatten() else {
            return Err(invalid("the offset of a frame must not be null"));
        };
        if text.starts_with('-') {
            return Err(invalid("the offset of a frame must not be negative"));
        }
        let is_start = bound.try_as_str().flatten() == Some("start");
        Ok(Some(Self { is_start, text: text.to_owned() }))
    }

    fn put(self, frame: &WindowFrame) -> Result<WindowFrame> {
        let value = match frame.units {
            // Values of a range get the type of what is ordered by.
            WindowFrameUnits::Range => ScalarValue::Utf8(Some(self.text)),
            WindowFrameUnits::Rows | WindowFrameUnits::Groups => {
                let rows = self.text.parse().map_err(|_| invalid("the offset of a frame is too large"))?;
                ScalarValue::UInt64(Some(rows))
            }
        };
        let (mut start, mut end) = (frame.start_bound.clone(), frame.end_bound.clone());
        let bound = if self.is_start { &mut start } else { &mut end };
        *bound = match bound {
            WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(value),
            WindowFrameBound::Following(_) => WindowFrameBound::Following(value),
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        };
        Ok(WindowFrame::new_bounds(frame.units, start, end))
    }
}

fn invalid(message: &'static str) -> DataFusionError {
    DataFusionError::External(Box::new(Error::invalid(message)))
}

/// The function of such a call, which no plan has when it runs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mark {
    signature: Signature,
}

/// The function, for those that look it up by name.
pub(super) fn mark() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Mark { signature: Signature::any(2, Volatility::Immutable) }))
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &'static str {
        FRAME_OFFSET
    }

    bowshot_api::getters!(signature: &Signature);

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("the offset of a frame has no value")
    }
}
