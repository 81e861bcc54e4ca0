//! Groups of the same joined tables that differ in conditions on their keys, as a year of sales and the year before: `WITH s AS (SELECT year,
//! customer, sum(price) … GROUP BY year, customer) SELECT … FROM s a JOIN s b … WHERE a.year = 2001 AND b.year = 2002`. The tables are read
//! and joined once for the rows of all, grouped once, and each reader takes its groups. Worth it where what all read is large, and not
//! where the conditions are on the large table: its rows are then read once anyway.

use crate::common_subplans::{have_same_tables, with_columns};
use crate::materialized_cte::{ComputedOnce, is_random, stands_alone};
use crate::merged_rows::{families, merge, never_fails};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, TableScan};
use std::sync::Arc;

/// Readers up to which groups are put together: each of them looks at all groups.
const MOST_READERS: usize = 8;
/// Rows that all read, from which on it is worth it.
const LEAST_ROWS: f64 = 100_000.0;
/// By how much there have to be more of them than of those that readers choose among.
const SHARED_SHARE: f64 = 4.0;

/// Groups that may be computed together.
#[derive(Debug)]
pub struct Groups {
    number: u64,
    plan: LogicalPlan,
    /// Each of them, and which of the groups it has.
    readers: Vec<(LogicalPlan, Option<Expr>)>,
}

/// A table that groups are computed of.
#[derive(Debug)]
pub struct Scanned {
    /// Its scan for one of the readers.
    pub scan: TableScan,
    /// Whether readers want other rows of it.
    pub differs: bool,
}

/// All such groups of an optimized plan.
pub fn find(plan: &LogicalPlan) -> Result<Vec<Groups>> {
    let families = families(plan, is_grouped, |one, other| match (one, other) {
        (LogicalPlan::Aggregate(one), LogicalPlan::Aggregate(other)) => one.group_expr == other.group_expr,
        _ => false,
    })?;
    Ok(families.into_iter().filter_map(Groups::of).collect())
}

/// The plan with such groups computed together.
pub fn fuse(plan: LogicalPlan, fused: &[Groups]) -> Result<LogicalPlan> {
    let replaced = plan.transform_down_with_subqueries(|node| {
        for groups in fused {
            if let Some(reader) = groups.reader(&node)? {
                return Ok(Transformed::new(reader, true, TreeNodeRecursion::Jump));
            }
        }
        Ok(Transformed::no(node))
    });
    replaced.data()
}

/// Whether a node groups the rows of joined tables.
fn is_grouped(node: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(false) };
    Ok(!aggregate.group_expr.is_empty()
        && aggregate.input.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))?
        && !is_random(node)?
        && stands_alone(node)?)
}

impl Groups {
    /// `None` where they are not groups of the same rows, or a condition may fail for rows of another one.
    fn of(members: Vec<LogicalPlan>) -> Option<Self> {
        if !(2..=MOST_READERS).contains(&members.len()) {
            return None;
        }
        let rows = merge(&members.iter().collect::<Vec<_>>())?;
        let mut conditions = rows.conditions.iter().flatten();
        if rows.conditions.iter().any(Vec::is_empty) || !conditions.all(never_fails) {
            return None;
        }
        let chosen = rows.conditions.into_iter().map(conjunction);
        let readers = members.into_iter().zip(chosen).collect();
        Some(Self { number: ComputedOnce::next_number(), plan: rows.plan, readers })
    }

    pub fn scans(&self) -> Vec<Scanned> {
        let mut members = self.readers.iter().map(|(member, _)| {
            let mut found = Vec::new();
            add_scans(member, &[], &mut found);
            found
        });
        let Some(first) = members.next() else { return Vec::new() };
        let others: Vec<_> = members.collect();
        let scans = first.into_iter().enumerate().map(|(at, (scan, conditions))| {
            let is_alike = |other: &Vec<(&TableScan, Vec<&Expr>)>| {
                other.get(at).is_some_and(|(of, wanted)| of.filters == scan.filters && *wanted == conditions)
            };
            Scanned { scan: scan.clone(), differs: !others.iter().all(is_alike) }
        });
        scans.collect()
    }

    /// Whether it is worth it to compute them together, by the rows of the tables of which all readers want the same, and of the others.
    pub fn is_worthwhile(alike: f64, different: f64) -> bool {
        alike >= LEAST_ROWS && alike >= SHARED_SHARE * different
    }

    /// What comes in the place of a node that is one of them.
    fn reader(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        for (member, chosen) in &self.readers {
            if member != node || !have_same_tables(member, node)? {
                continue;
            }
            let once = ComputedOnce::equal_part(self.number, self.plan.clone());
            let groups = match chosen {
                Some(chosen) => LogicalPlan::Filter(Filter::try_new(chosen.clone(), Arc::new(once))?),
                None => once,
            };
            return with_columns(groups, node.schema()).map(Some);
        }
        Ok(None)
    }
}

/// Adds the scans of a plan with the conditions that stand directly above them.
fn add_scans<'a>(
    plan: &'a LogicalPlan,
    conditions: &[&'a Expr],
    found: &mut Vec<(&'a TableScan, Vec<&'a Expr>)>,
) {
    match plan {
        LogicalPlan::TableScan(scan) => found.push((scan, conditions.to_vec())),
        LogicalPlan::Filter(filter) => {
            add_scans(&filter.input, &[conditions, &[&filter.predicate]].concat(), found);
        }
        other => other.inputs().into_iter().for_each(|input| add_scans(input, &[], found)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, find, fuse};
    use crate::test_sessions::{optimized, readers};

    #[tokio::test]
    async fn groups_of_other_keys_are_computed_together() {
        let grouped =
            |from: &str| format!("WITH s AS (SELECT t.k, u.v, sum(t.w) AS n, count(*) AS c {from})");
        let joined = grouped("FROM t JOIN u ON t.k = u.k GROUP BY t.k, u.v");
        let union = "WITH s AS (SELECT k, v, sum(w) AS n FROM (SELECT t.k, u.v, t.w FROM t JOIN u ON t.k = u.k UNION \
            SELECT t.w, u.v, t.k FROM t JOIN u ON t.w = u.k) d GROUP BY k, v)";
        for (expected, sql) in [
            (2, format!("{joined} SELECT a.n, b.n FROM s a JOIN s b ON a.k = b.k WHERE a.v = 1 AND b.v = 2")),
            (3, format!("{joined} SELECT n FROM s WHERE v = 1 UNION ALL SELECT c FROM s WHERE v IN (2, 9) UNION ALL SELECT n FROM s WHERE v > 3")),
            (2, format!("{union} SELECT a.n, b.n FROM s a JOIN s b ON a.k = b.k WHERE a.v = 1 AND b.v = 2")),
            // A reader of all groups, conditions on what is no key, one that may fail, one table.
            (0, format!("{joined} SELECT n FROM s WHERE v = 1 UNION ALL SELECT n FROM s")),
            (
                0,
                "SELECT t.k, sum(t.w) FROM t JOIN u ON t.k = u.k WHERE u.v = 1 GROUP BY t.k UNION ALL \
                 SELECT t.k, sum(t.w) FROM t JOIN u ON t.k = u.k WHERE u.v = 2 GROUP BY t.k"
                    .into(),
            ),
            (0, format!("{joined} SELECT n FROM s WHERE 10 / v = 1 UNION ALL SELECT n FROM s WHERE v = 2")),
            (
                0,
                "SELECT k, v FROM t WHERE v = 1 GROUP BY k, v UNION ALL SELECT k, v FROM t WHERE v = 2 GROUP BY k, v"
                    .into(),
            ),
        ] {
            let plan = optimized(&sql).await;
            let found = find(&plan).unwrap();
            let fused = fuse(plan.clone(), &found).unwrap();
            assert_eq!(fused.schema(), plan.schema());
            assert_eq!(readers(&fused).len(), expected, "{sql}");
            for groups in found {
                let differing: Vec<String> =
                    groups.scans().iter().filter(|scanned| scanned.differs).map(|of| of.scan.table_name.to_string()).collect();
                assert!(differing.iter().all(|name| name == "u"), "{sql}");
            }
        }
        assert!(Groups::is_worthwhile(1e6, 7e4) && !Groups::is_worthwhile(5e4, 1e6));
    }
}
