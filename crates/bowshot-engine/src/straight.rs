//! A scan that goes straight to the client: split over the processors, in batches that are worth a message.
//!
//! DataFusion splits a scan where an operator above gains from it, and cuts its rows to what suits operators. For
//! `SELECT * FROM t` the one who gains is the client: decoding takes longer than sending, several endpoints need several
//! partitions, and each batch costs switches of threads on both sides. Rows of an unordered result come in any order, so
//! nothing is lost.

use crate::error::classify;
use crate::statistics::row_bytes;
use bowshot_api::Result;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use std::sync::Arc;

/// Bytes of a batch for the client: below the largest messages, so that it becomes one.
const BATCH_BYTES: usize = 12 << 20;
/// Rows of such a batch at most, should the estimate of their bytes be too small.
const BATCH_ROWS: usize = 64 << 10;
/// What a value of variable length is taken for where nothing is known: its offset and some letters.
const VARIABLE_BYTES: usize = 32;

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
    let Some(child) = passed_on(plan.as_ref()) else { return Ok(plan) };
    let child = split(Arc::clone(child), partitions, options)?;
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(vec![child], recompute).map_err(classify)
}

/// Rows of a batch if this plan is a whole scan for the client; `None` for every other plan, and for one that stops early.
pub(crate) fn batch_rows(plan: &dyn ExecutionPlan, default: usize) -> Option<usize> {
    if plan.fetch().is_some() {
        return None;
    }
    match passed_on(plan) {
        Some(child) => batch_rows(child.as_ref(), default)?,
        None if plan.name() == "DataSourceExec" => 0,
        None => return None,
    };
    let row = row_bytes(plan).unwrap_or(0).max(estimate(&plan.schema())).max(1);
    // A power of two, as writers of Arrow files choose too: their batches then come whole or in equal parts.
    let rows = 1 << (BATCH_BYTES / row).max(1).ilog2();
    Some(rows.clamp(default.min(BATCH_ROWS), BATCH_ROWS.max(default)))
}

/// The input of an operator that works on each partition by itself and asks nothing of its rows.
fn passed_on(plan: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let transparent =
        matches!(plan.name(), "ProjectionExec" | "FilterExec" | "CoalesceBatchesExec" | "CooperativeExec");
    match plan.children().as_slice() {
        [child] if transparent => Some(child),
        _ => None,
    }
}

/// Bytes of a row as far as its types tell.
fn estimate(schema: &Schema) -> usize {
    let bytes = |data_type: &DataType| data_type.primitive_width().unwrap_or(VARIABLE_BYTES);
    schema.fields().iter().map(|field| bytes(field.data_type())).sum()
}
