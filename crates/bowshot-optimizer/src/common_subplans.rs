//! Parts of a query that are equal, as those of a query of WITH that is read twice are: each is computed once for all its readers.
//! Works on optimized plans, where the conditions and columns that a reader wants have become part of what it reads: what is still
//! equal then gives the same rows, and no reader has it compute more than it would alone.

use crate::computed_once::{ComputedOnce, is_random, stands_alone};
use datafusion::common::Result;
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Extension, LogicalPlan, TableSource};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Nodes of a plan up to which equal parts are looked for: the time grows with their number and the depth of the plan.
const MAX_NODES: usize = 2_000;

extensions_options! {
    /// What one session says about work that parts of a query have in common.
    pub struct SharedWork {
        /// Whether equal parts are computed once.
        pub subplans: bool, default = true
        /// Whether coarser grouping sets are computed from the finest one.
        pub grouping_sets: bool, default = true
    }
}

impl ConfigExtension for SharedWork {
    const PREFIX: &'static str = "bowshot_shared_work";
}

/// The key of [`SharedWork::subplans`] among the engine's options.
pub const SESSION_SUBPLANS: &str = "bowshot_shared_work.subplans";
/// The same of [`SharedWork::grouping_sets`].
pub const SESSION_GROUPING_SETS: &str = "bowshot_shared_work.grouping_sets";

/// The optimized plan with each of its equal parts computed once, or `None` if it has none.
///
/// # Errors
/// From walking the plan.
pub fn share(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if !may_have_equal_parts(plan)? {
        return Ok(None);
    }
    let parts = Parts::of(plan)?;
    if !parts.0.iter().any(Part::is_shared) {
        return Ok(None);
    }
    parts.replaced(plan.clone()).data().map(Some)
}

/// Whether a plan has several parts that are worth it, and is not so large that looking takes long.
fn may_have_equal_parts(plan: &LogicalPlan) -> Result<bool> {
    let (mut nodes, mut worthwhile) = (0_usize, 0_usize);
    plan.apply_with_subqueries(|node| {
        nodes += 1;
        worthwhile += usize::from(is_worthwhile(node));
        Ok(if nodes > MAX_NODES { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(worthwhile > 1 && nodes <= MAX_NODES)
}

/// Whether an operator gives fewer rows than it takes, or has to have all of them before it gives any. Joins are left out: they
/// may give more rows than fit into memory, and give them one after the other.
fn is_worthwhile(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_))
}

/// One part of a plan with all that are equal to it.
struct Part {
    plan: LogicalPlan,
    hash: u64,
    readers: usize,
    /// What its readers share.
    number: Option<u64>,
}

impl Part {
    fn of(plan: &LogicalPlan, hash: u64) -> Result<Self> {
        let shareable = reads_tables(plan)? && !is_random(plan)? && stands_alone(plan)?;
        let number = shareable.then(ComputedOnce::next_number);
        Ok(Self { plan: plan.clone(), hash, readers: 1, number })
    }

    fn is_shared(&self) -> bool {
        self.readers > 1 && self.number.is_some()
    }
}

struct Parts(Vec<Part>);

impl Parts {
    /// What is within a part counts once, however often the part is read.
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut parts = Self(Vec::new());
        plan.apply_with_subqueries(|node| {
            if !is_worthwhile(node) {
                return Ok(TreeNodeRecursion::Continue);
            }
            let hash = hash(node);
            match parts.position(node, hash)? {
                Some(known) => {
                    let Some(part) = parts.0.get_mut(known) else { return Ok(TreeNodeRecursion::Continue) };
                    part.readers += 1;
                    let shared = part.is_shared();
                    Ok(if shared { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
                }
                None => {
                    parts.0.push(Part::of(node, hash)?);
                    Ok(TreeNodeRecursion::Continue)
                }
            }
        })?;
        Ok(parts)
    }

    fn position(&self, node: &LogicalPlan, hash: u64) -> Result<Option<usize>> {
        for (at, part) in self.0.iter().enumerate() {
            if part.hash == hash && is_same(&part.plan, node)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn replaced(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        plan.transform_down_with_subqueries(|node| {
            if !is_worthwhile(&node) {
                return Ok(Transformed::no(node));
            }
            let part = self.position(&node, hash(&node))?.and_then(|at| self.0.get(at));
            let Some(number) = part.filter(|part| part.is_shared()).and_then(|part| part.number) else {
                return Ok(Transformed::no(node));
            };
            let input = node
                .map_subqueries(|query| self.replaced(query))?
                .transform_sibling(|node| node.map_children(|child| self.replaced(child)))?;
            let once = ComputedOnce::equal_part(number, input.data);
            let once = LogicalPlan::Extension(Extension { node: Arc::new(once) });
            Ok(Transformed::new(once, true, TreeNodeRecursion::Jump))
        })
    }
}

fn hash(plan: &LogicalPlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    plan.hash(&mut hasher);
    hasher.finish()
}

/// Whether two parts give the same rows in the same columns. Scans are equal to DataFusion if their names and columns are; behind
/// one name may be several tables, as those of another user's view.
fn is_same(one: &LogicalPlan, other: &LogicalPlan) -> Result<bool> {
    if one != other {
        return Ok(false);
    }
    let (one, other) = (sources(one)?, sources(other)?);
    Ok(one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| Arc::ptr_eq(one, other)))
}

fn sources(plan: &LogicalPlan) -> Result<Vec<Arc<dyn TableSource>>> {
    let mut sources = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            sources.push(Arc::clone(&scan.source));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(sources)
}

fn reads_tables(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::TableScan(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::MemTable;
    use datafusion::prelude::SessionContext;

    async fn optimized(sql: &str) -> (SessionContext, LogicalPlan) {
        let context = SessionContext::new();
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int64, true),
            Field::new("v", DataType::Int64, true),
        ]));
        for name in ["t", "u"] {
            let table = MemTable::try_new(Arc::clone(&schema), vec![Vec::new()]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        }
        let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        (context, plan)
    }

    /// Readers of parts that are computed once, in a statement.
    async fn readers(sql: &str) -> usize {
        let (_, plan) = optimized(sql).await;
        let Some(shared) = share(&plan).unwrap() else { return 0 };
        let mut readers = 0;
        shared
            .apply_with_subqueries(|node| {
                readers += usize::from(ComputedOnce::is(node));
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        assert_eq!(shared.schema(), plan.schema());
        readers
    }

    #[tokio::test]
    async fn equal_groups_are_computed_once() {
        let sums = "WITH s AS (SELECT k, sum(v) AS v FROM t GROUP BY k)";
        assert_eq!(readers(&format!("{sums} SELECT * FROM s a JOIN s b ON a.k = b.k + 1")).await, 2);
        let nested =
            format!("{sums}, m AS (SELECT max(v) AS m FROM s) SELECT * FROM s, m a, m b WHERE s.v = a.m");
        // Two read the maximum, each with a reader of the sums in it, and the statement reads the sums.
        assert_eq!(readers(&nested).await, 2 + 2 + 1);
    }

    #[tokio::test]
    async fn others_are_computed_each() {
        let equal = "SELECT k, sum(v) FROM t GROUP BY k";
        assert_eq!(readers(&format!("{equal} UNION ALL {equal}")).await, 2);
        for other in [
            "SELECT k, sum(v) FROM u GROUP BY k",
            "SELECT k, max(v) FROM t GROUP BY k",
            "SELECT v, sum(k) FROM t GROUP BY v",
            "SELECT k, sum(v) FROM t WHERE v > 1 GROUP BY k",
            "SELECT k, sum(v) FROM t WHERE random() > 0.5 GROUP BY k",
        ] {
            assert_eq!(readers(&format!("{equal} UNION ALL {other}")).await, 0, "{other}");
        }
        let random = "SELECT k, sum(v) FROM t WHERE random() > 0.5 GROUP BY k";
        assert_eq!(readers(&format!("{random} UNION ALL {random}")).await, 0);
    }

    #[tokio::test]
    async fn tables_of_one_name_are_not_taken_for_one() {
        let sql = "SELECT k, sum(v) FROM t GROUP BY k";
        let ((_, one), (_, other)) = (optimized(sql).await, optimized(sql).await);
        assert_eq!(one, other);
        assert!(is_same(&one, &one.clone()).unwrap() && !is_same(&one, &other).unwrap());
    }
}
