//! A scan that goes straight to the client: split over the processors, in batches that are worth a message.
//!
//! DataFusion splits a scan where an operator above gains from it, and cuts its rows to what suits operators. For
//! `SELECT * FROM t` the one who gains is the client: decoding takes longer than sending, several endpoints need several
//! partitions, and each batch costs switches of threads on both sides. Rows of an unordered result come in any order, so
//! nothing is lost.

use crate::engine::BATCH_ROWS;
use crate::error::classify;
use bowshot_api::Result;
use datafusion::arrow::datatypes::DataType;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use std::sync::Arc;

/// Bytes of a batch for the client: below the largest messages, so that it becomes one.
const BATCH_BYTES: usize = 12 << 20;
/// Rows of such a batch at most.
const FIXED_ROWS: usize = 64 << 10;
/// The same where values have any length: footers tell what they take encoded, and a dictionary hides much.
const VARIABLE_ROWS: usize = 32 << 10;

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

/// Rows of a batch if this plan is a whole scan for the client and its rows are known to be small; `None` for every other
/// plan, for one that stops early, and where the operator has chosen the size of batches.
pub(crate) fn batch_rows(plan: &dyn ExecutionPlan, chosen: usize) -> Option<usize> {
    if plan.fetch().is_some() || chosen != BATCH_ROWS || computes_long_values(plan) {
        return None;
    }
    match plan.downcast_ref::<DataSourceExec>() {
        Some(scan) => {
            let (bytes, most) = match scan.data_source().downcast_ref::<FileScanConfig>() {
                Some(files) => scanned_row(files)?,
                None => (row_in_memory(scan)?, FIXED_ROWS),
            };
            // A power of two, as writers of Arrow files choose too: their batches then come whole or in equal parts.
            let rows = 1 << (BATCH_BYTES / bytes.max(1)).max(1).ilog2();
            (rows > chosen).then_some(rows.min(most))
        }
        // A filter makes batches of its own.
        None if plan.name() == "FilterExec" => None,
        None => batch_rows(passed_on(plan)?.as_ref(), chosen),
    }
}

/// Whether it makes values of which nobody knows how long they are: `repeat(name, 1000)`.
fn computes_long_values(plan: &dyn ExecutionPlan) -> bool {
    let scan = || plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>();
    let computed = match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => projection.expr(),
        None => scan().and_then(|scan| scan.file_source().projection()).map_or(&[][..], AsRef::as_ref),
    };
    let schema = plan.schema();
    computed.iter().zip(schema.fields()).any(|(computed, field)| {
        width(field.data_type()).is_none() && computed.expr.downcast_ref::<Column>().is_none()
    })
}

/// Bytes of every value of a type, if they are the same.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok(),
        other => other.primitive_width(),
    }
}

/// Bytes of a row in memory, on average.
fn row_in_memory(scan: &DataSourceExec) -> Option<usize> {
    let statistics = scan.data_source().partition_statistics(None).ok()?;
    statistics.total_byte_size.get_value()?.checked_div(*statistics.num_rows.get_value()?)
}

/// Bytes of one row of the columns that are read, which may be more than those that come out, and how many such rows one
/// batch may have. `None` where values have any length and no footer tells how long they are.
fn scanned_row(scan: &FileScanConfig) -> Option<(usize, usize)> {
    let source = scan.file_source();
    let table = source.table_schema().table_schema();
    let all = || (0..table.fields().len()).collect();
    let read = source.projection().map_or_else(all, ProjectionExprs::column_indices);
    let widths = read.iter().map(|index| width(table.field(*index).data_type()));
    if let Some(bytes) = widths.sum::<Option<usize>>() {
        return Some((bytes, FIXED_ROWS));
    }
    // All columns of the file, read or not: a column's own bytes are not always known.
    let statistics = scan.statistics();
    let (rows, bytes) = (statistics.num_rows.get_value()?, statistics.total_byte_size.get_value()?);
    let average = bytes.checked_div(*rows)?;
    (source.file_type() == "parquet").then_some((average, VARIABLE_ROWS))
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
