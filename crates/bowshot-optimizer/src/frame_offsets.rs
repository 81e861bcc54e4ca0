//! Offsets of window frames that are computed, such as parameters (`bowshot-sql`, `rewrite/frames.rs`): each is a call among the
//! keys of PARTITION BY. One that has a value goes into its frame; a plan without values of its parameters keeps the call.

use super::window_marks::change_window_calls;
use bowshot_api::Error;
use bowshot_sql::rewrite::FRAME_OFFSET;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};

pub(super) fn with_offsets(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    change_window_calls(plan, take_offsets)
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
