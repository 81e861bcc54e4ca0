//! Yield points where DataFusion has none: joins and unnests can give batches for minutes from one batch of input, during which
//! the query could not be cancelled and its thread would be blocked. Each such operator is wrapped so that a batch costs one
//! unit of the task's budget. Done after optimization, so `EXPLAIN` shows plans without the wrappers.

pub mod batch_limits;
pub mod functions;
pub mod nested_loops;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::cell::Cell;
use std::sync::Arc;

/// Yield points in one another. Each of them costs a unit of the budget on the way down to the sources, of which a task has
/// 128 at a time: with more, a task runs out of it before it gets there, and tries again for ever.
const MOST_NESTED: usize = 32;

/// The plan with a yield point above every operator that can give more than it takes; of very many in one another, above some
/// of them.
pub fn ensure(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let every = deepest(plan.as_ref()).div_ceil(MOST_NESTED).max(1);
    let around = Cell::new(0_usize);
    plan.transform_down_up(
        |node| {
            around.set(around.get() + usize::from(multiplies(node.as_ref())));
            Ok(Transformed::no(node))
        },
        |node| {
            around.set(around.get() - usize::from(multiplies(node.as_ref())));
            let inner = batch_limits::below(
                nested_loops::interruptible(&node)?.unwrap_or_else(|| Arc::clone(&node)),
            )?;
            let changed = !Arc::ptr_eq(&inner, &node);
            Ok(if multiplies(inner.as_ref()) && around.get().is_multiple_of(every) {
                Transformed::yes(Arc::new(CooperativeExec::new(inner)) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::new_transformed(inner, changed)
            })
        },
    )
    .data()
}

/// How many operators that multiply are in one another at most.
fn deepest(plan: &dyn ExecutionPlan) -> usize {
    let below = plan.children().into_iter().map(|child| deepest(child.as_ref())).max().unwrap_or(0);
    below + usize::from(multiplies(plan))
}

/// Whether it can give more than it takes.
pub fn multiplies(node: &dyn ExecutionPlan) -> bool {
    let name = node.name();
    name.ends_with("JoinExec") || name == "UnnestExec"
}
