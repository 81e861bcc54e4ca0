//! Splits a scan that goes straight to the client.
//!
//! DataFusion splits a scan where an operator above gains from it. For `SELECT * FROM t` the one who gains is the client:
//! decoding takes longer than sending, and several endpoints need several partitions. Rows of an unordered result come in
//! any order, so nothing is lost.

use crate::error::classify;
use bowshot_api::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use std::sync::Arc;

/// The plan with at least `partitions` partitions where its scan can be split (large enough, splittable format).
pub(crate) fn split(
    plan: Arc<dyn ExecutionPlan>,
    partitions: usize,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.properties().partitioning.partition_count() >= partitions {
        return Ok(plan);
    }
    if let Some(split) = plan.repartitioned(partitions, options).map_err(classify)? {
        return Ok(split);
    }
    // Only operators that work on each partition by itself, and ask nothing of its rows, may pass the split on.
    let children = plan.children();
    let [child] = children.as_slice() else { return Ok(plan) };
    if !matches!(plan.name(), "ProjectionExec" | "FilterExec" | "CoalesceBatchesExec" | "CooperativeExec") {
        return Ok(plan);
    }
    let child = split(Arc::clone(child), partitions, options)?;
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(vec![child], recompute).map_err(classify)
}
