//! Windows whose rows need not all be sorted. Below a filter such as `rank() OVER (PARTITION BY p ORDER BY o) <= 10` rows that ten others
//! come before do not reach the sort ([`below_filter`], [`ranked_rows`]). Functions whose frame is the whole partition, as `avg(x) OVER
//! (PARTITION BY p)`, are computed by hashing the keys ([`without_sort`], [`partition_totals`]).

pub(super) mod below_filter;
pub(super) mod partition_totals;
mod ranked_rows;
#[cfg(test)]
mod tests;
pub(super) mod without_sort;

use datafusion::physical_plan::ExecutionPlan;

/// Whether an operator computes windows by a hash table, which has to fit into memory.
pub fn hashes_partitions(node: &dyn ExecutionPlan) -> bool {
    node.downcast_ref::<partition_totals::PartitionTotalsExec>().is_some()
}
