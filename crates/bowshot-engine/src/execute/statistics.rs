//! What the statistics of a plan tell before it runs.

use datafusion::common::Statistics;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// Number of rows that a plan will give, where its statistics are exact.
pub(crate) fn exact_rows(plan: &dyn ExecutionPlan) -> Option<u64> {
    rows(plan).and_then(|(rows, exact)| exact.then_some(rows as u64))
}

/// Number of rows that a plan will give, and whether that is exact.
pub(crate) fn rows(plan: &dyn ExecutionPlan) -> Option<(usize, bool)> {
    let statistics = statistics(plan)?;
    let rows = &statistics.num_rows;
    rows.get_value().map(|count| (*count, rows.is_exact().unwrap_or(false)))
}

fn statistics(plan: &dyn ExecutionPlan) -> Option<Arc<Statistics>> {
    StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()
}
