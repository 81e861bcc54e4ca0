//! Yield points where DataFusion has none.
//!
//! Operators yield when their sources do. A join or an unnest can give out batches for minutes from one batch of its
//! input; an aggregate above it takes them in a loop and never returns to the scheduler, so that the query can neither be
//! cancelled nor leave its thread to others. Each such operator is wrapped so that every batch costs a unit of the task's
//! budget. The wrappers are put in after optimisation: `EXPLAIN` shows plans as the optimiser made them.

use crate::stepping;
use bowshot_api::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// The plan with a yield point above every operator that can give more than it takes.
pub(crate) fn ensure(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let node = stepping::interruptible(&node)?.unwrap_or(node);
        Ok(if multiplies(node.as_ref()) {
            Transformed::yes(Arc::new(CooperativeExec::new(node)))
        } else {
            Transformed::no(node)
        })
    })
    .data()
    .map_err(crate::error::classify)
}

/// Whether it can give more than it takes.
pub(crate) fn multiplies(node: &dyn ExecutionPlan) -> bool {
    let name = node.name();
    name.ends_with("JoinExec") || name == "UnnestExec"
}
