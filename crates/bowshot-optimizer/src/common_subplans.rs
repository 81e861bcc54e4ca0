//! Parts of a query that are equal, as those of a query of WITH that is read twice are: each is computed once for all its readers.
//! Works on optimized plans, where the conditions that a reader has are part of what it reads: what is still equal then gives the
//! same rows. Readers may want other columns of them.

use crate::materialized_cte::{ComputedOnce, is_random, stands_alone};
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, Result};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, LogicalPlan, Projection, SortExpr, SubqueryAlias, TableScan,
    TableScanBuilder, TableSource, Window,
};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

/// Nodes of a plan up to which equal parts are looked for: the time grows with their number and the depth of the plan.
pub(crate) const MAX_NODES: usize = 2_000;

extensions_options! {
    /// What one session says about work that parts of a query have in common.
    pub struct SharedWork {
        /// Whether equal parts are computed once.
        pub subplans: bool, default = true
        /// Whether coarser grouping sets are computed from the finest one.
        pub grouping_sets: bool, default = true
        /// Whether rows are grouped before they are joined, where that leaves far fewer of them.
        pub eager_aggregation: bool, default = true
        /// Whether rows that a filter of ranks drops are dropped before they are sorted.
        pub ranked_windows: bool, default = true
        /// Whether aggregates of whole partitions are computed without a sort.
        pub hashed_windows: bool, default = true
    }
}

impl ConfigExtension for SharedWork {
    const PREFIX: &'static str = "bowshot_shared_work";
}

/// The key of [`SharedWork::subplans`] among the engine's options.
pub const SESSION_SUBPLANS: &str = "bowshot_shared_work.subplans";
pub const SESSION_GROUPING_SETS: &str = "bowshot_shared_work.grouping_sets";
pub const SESSION_EAGER_AGGREGATION: &str = "bowshot_shared_work.eager_aggregation";
pub const SESSION_RANKED_WINDOWS: &str = "bowshot_shared_work.ranked_windows";
pub const SESSION_HASHED_WINDOWS: &str = "bowshot_shared_work.hashed_windows";

/// The optimized plan with each of its equal parts computed once, or `None` if it has none.
pub fn share(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    if !may_have_equal_parts(plan)? {
        return Ok(None);
    }
    let parts = Parts::of(plan)?;
    if !parts.0.iter().any(Part::is_shared) {
        return Ok(None);
    }
    parts.replaced(plan.clone(), &[]).data().map(Some)
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

/// One part of a plan with all that are equal to it, but for the columns that their readers want.
struct Part {
    /// With the columns of all of them.
    plan: LogicalPlan,
    signature: u64,
    readers: usize,
    /// What its readers share.
    number: Option<u64>,
}

impl Part {
    fn of(plan: &LogicalPlan, signature: u64) -> Result<Self> {
        let shareable = reads_tables(plan)? && !is_random(plan)? && stands_alone(plan)?;
        let number = shareable.then(ComputedOnce::next_number);
        Ok(Self { plan: plan.clone(), signature, readers: 1, number })
    }

    fn is_shared(&self) -> bool {
        self.readers > 1 && self.number.is_some()
    }

    /// The part with the columns of another one too, if it is equal but for those.
    fn with_columns_of(&self, other: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        if !have_same_tables(&self.plan, other)? {
            return Ok(None);
        }
        let Some(merged) = merged(&self.plan, other) else { return Ok(None) };
        Ok(if is_random(&merged)? { None } else { Some(merged) })
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
            let is_read_again = parts.add(node)?;
            Ok(if is_read_again { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue })
        })?;
        Ok(parts)
    }

    /// Adds a reader, and says whether it reads what another one has computed.
    fn add(&mut self, node: &LogicalPlan) -> Result<bool> {
        let signature = signature(node)?;
        for at in 0..self.0.len() {
            let Some(part) = self.0.get_mut(at).filter(|part| part.signature == signature) else { continue };
            if let Some(wider) = part.with_columns_of(node)? {
                part.plan = wider.clone();
                part.readers += 1;
                let is_shared = part.is_shared();
                if is_shared {
                    self.widen(&wider)?;
                }
                return Ok(is_shared);
            }
        }
        self.0.push(Part::of(node, signature)?);
        Ok(false)
    }

    /// Gives the parts within one the columns that they have there.
    fn widen(&mut self, outer: &LogicalPlan) -> Result<()> {
        outer.apply_with_subqueries(|node| {
            if is_worthwhile(node) {
                let signature = signature(node)?;
                for part in self.0.iter_mut().filter(|part| part.signature == signature) {
                    if let Some(wider) = part.with_columns_of(node)? {
                        part.plan = wider;
                        break;
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// The shared part that has all columns of a node, and that it is not within.
    fn shared(&self, node: &LogicalPlan, within: &[u64]) -> Result<Option<(u64, &LogicalPlan)>> {
        if !is_worthwhile(node) {
            return Ok(None);
        }
        let signature = signature(node)?;
        for part in self.0.iter().filter(|part| part.signature == signature && part.is_shared()) {
            if let (Some(number), Some(wider)) = (part.number, part.with_columns_of(node)?)
                && wider == part.plan
                && !within.contains(&number)
            {
                return Ok(Some((number, &part.plan)));
            }
        }
        Ok(None)
    }

    fn replaced(&self, plan: LogicalPlan, within: &[u64]) -> Result<Transformed<LogicalPlan>> {
        plan.transform_down_with_subqueries(|node| {
            let Some((number, part)) = self.shared(&node, within)? else { return Ok(Transformed::no(node)) };
            let (input, within) = (part.clone(), [within, &[number]].concat());
            let input = input
                .map_subqueries(|query| self.replaced(query, &within))?
                .transform_sibling(|input| input.map_children(|child| self.replaced(child, &within)))?;
            let once = ComputedOnce::equal_part(number, input.data);
            Ok(Transformed::new(with_columns(once, node.schema())?, true, TreeNodeRecursion::Jump))
        })
    }
}

pub(crate) fn with_columns(once: LogicalPlan, wanted: &DFSchemaRef) -> Result<LogicalPlan> {
    let same = once
        .schema()
        .iter()
        .map(|(of, field)| (of, field.name()))
        .eq(wanted.iter().map(|(of, field)| (of, field.name())));
    if same {
        return Ok(once);
    }
    let columns = wanted.iter().map(|column| Expr::Column(Column::from(column)));
    Projection::try_new(columns.collect(), Arc::new(once)).map(LogicalPlan::Projection)
}

/// The same for all parts that may be equal: the kind of operator, what it groups by, and the tables below it.
fn signature(plan: &LogicalPlan) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    discriminant(plan).hash(&mut hasher);
    if let LogicalPlan::Aggregate(aggregate) = plan {
        aggregate.group_expr.hash(&mut hasher);
    }
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scan.table_name.hash(&mut hasher);
            scan.filters.hash(&mut hasher);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(hasher.finish())
}

/// The plan with the columns of both, which are the same rows. Expressions name columns, so a column more changes none of them;
/// operators whose rows depend on all columns, as those of DISTINCT, have to be equal.
pub(crate) fn merged(one: &LogicalPlan, other: &LogicalPlan) -> Option<LogicalPlan> {
    if one == other {
        return Some(one.clone());
    }
    match (one, other) {
        (LogicalPlan::TableScan(one), LogicalPlan::TableScan(other)) => merged_scan(one, other),
        (LogicalPlan::SubqueryAlias(one), LogicalPlan::SubqueryAlias(other)) if one.alias == other.alias => {
            let input = merged(&one.input, &other.input)?;
            SubqueryAlias::try_new(Arc::new(input), one.alias.clone()).map(LogicalPlan::SubqueryAlias).ok()
        }
        (LogicalPlan::Projection(one), LogicalPlan::Projection(other)) => {
            let input = merged(&one.input, &other.input)?;
            let columns = union(&one.expr, &other.expr);
            Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection).ok()
        }
        (LogicalPlan::Filter(one), LogicalPlan::Filter(other)) if one.predicate == other.predicate => {
            let input = merged(&one.input, &other.input)?;
            Filter::try_new(one.predicate.clone(), Arc::new(input)).map(LogicalPlan::Filter).ok()
        }
        (LogicalPlan::Aggregate(one), LogicalPlan::Aggregate(other))
            if one.group_expr == other.group_expr =>
        {
            let input = merged(&one.input, &other.input)?;
            let functions = union(&one.aggr_expr, &other.aggr_expr);
            let aggregate = Aggregate::try_new(Arc::new(input), one.group_expr.clone(), functions);
            aggregate.map(LogicalPlan::Aggregate).ok()
        }
        (LogicalPlan::Join(one), LogicalPlan::Join(other)) => merged_join(one, other),
        // One that leaves columns out, and nothing else.
        (LogicalPlan::Projection(one), other) if one.expr.iter().all(is_column) => merged(&one.input, other),
        (one, LogicalPlan::Projection(other)) if other.expr.iter().all(is_column) => {
            merged(one, &other.input)
        }
        (LogicalPlan::Window(one), LogicalPlan::Window(other)) => merged_windows(one, other),
        // Within windows alone: those that share a part have the same operator on top.
        (LogicalPlan::Window(one), other) => with_window(one, merged(&one.input, other)),
        (one, LogicalPlan::Window(other)) => with_window(other, merged(one, &other.input)),
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_))
}

/// The functions of both. All functions of one window are sorted by the keys of its first one.
fn merged_windows(one: &Window, other: &Window) -> Option<LogicalPlan> {
    if sort_keys(one)? != sort_keys(other)? {
        return None;
    }
    let input = merged(&one.input, &other.input)?;
    let functions = union(&one.window_expr, &other.window_expr);
    Window::try_new(functions, Arc::new(input)).map(LogicalPlan::Window).ok()
}

/// The window above rows that lack its columns.
fn with_window(window: &Window, rows: Option<LogicalPlan>) -> Option<LogicalPlan> {
    Window::try_new(window.window_expr.clone(), Arc::new(rows?)).map(LogicalPlan::Window).ok()
}

/// The partitions and the order of a window's functions.
fn sort_keys(window: &Window) -> Option<(&[Expr], &[SortExpr])> {
    let mut function = window.window_expr.first()?;
    while let Expr::Alias(alias) = function {
        function = &alias.expr;
    }
    match function {
        Expr::WindowFunction(call) => Some((&call.params.partition_by, &call.params.order_by)),
        _ => None,
    }
}

fn merged_scan(one: &TableScan, other: &TableScan) -> Option<LogicalPlan> {
    let same = one.table_name == other.table_name
        && one.filters == other.filters
        && (one.fetch, other.fetch) == (None, None)
        && one.statistics_requests == other.statistics_requests;
    let (Some(columns), Some(others)) = (&one.projection, &other.projection) else { return None };
    if !same {
        return None;
    }
    let new = others.iter().filter(|column| !columns.contains(column));
    let columns = columns.iter().chain(new).copied().collect();
    let scan = TableScanBuilder::new(one.table_name.clone(), Arc::clone(&one.source));
    let scan = scan.with_projection(Some(columns)).with_filters(one.filters.clone());
    scan.with_statistics_requests(one.statistics_requests.clone()).build().map(LogicalPlan::TableScan).ok()
}

fn merged_join(one: &Join, other: &Join) -> Option<LogicalPlan> {
    let same = one.on == other.on
        && one.filter == other.filter
        && one.join_type == other.join_type
        && one.join_constraint == other.join_constraint
        && one.null_equality == other.null_equality
        && one.null_aware == other.null_aware;
    if !same {
        return None;
    }
    let (left, right) = (merged(&one.left, &other.left)?, merged(&one.right, &other.right)?);
    let joined = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        one.on.clone(),
        one.filter.clone(),
        one.join_type,
        one.join_constraint,
        one.null_equality,
        one.null_aware,
    );
    joined.map(LogicalPlan::Join).ok()
}

pub(crate) fn union(one: &[Expr], other: &[Expr]) -> Vec<Expr> {
    let new = other.iter().filter(|expr| !one.contains(expr));
    one.iter().chain(new).cloned().collect()
}

/// Whether two parts of one shape read the same tables. Scans are equal to DataFusion if their names and columns are; behind one
/// name may be several tables, as those of another user's view.
pub(crate) fn have_same_tables(one: &LogicalPlan, other: &LogicalPlan) -> Result<bool> {
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
    use crate::test_sessions::{optimized, readers};

    /// Readers of parts that are computed once, in a statement.
    async fn count_readers(sql: &str) -> usize {
        let plan = optimized(sql).await;
        let Some(shared) = share(&plan).unwrap() else { return 0 };
        assert_eq!(shared.schema(), plan.schema());
        readers(&shared).len()
    }

    #[tokio::test]
    async fn others_are_computed_each() {
        let equal = "SELECT k, sum(v) FROM t GROUP BY k";
        assert_eq!(count_readers(&format!("{equal} UNION ALL {equal}")).await, 2);
        for other in [
            "SELECT k, sum(v) FROM u GROUP BY k",
            "SELECT v, sum(k) FROM t GROUP BY v",
            "SELECT k, sum(v) FROM t WHERE v > 1 GROUP BY k",
            "SELECT k, sum(v) FROM t WHERE random() > 0.5 GROUP BY k",
        ] {
            assert_eq!(count_readers(&format!("{equal} UNION ALL {other}")).await, 0, "{other}");
        }
        let random = "SELECT k, sum(v) FROM t WHERE random() > 0.5 GROUP BY k";
        assert_eq!(count_readers(&format!("{random} UNION ALL {random}")).await, 0);
    }

    #[tokio::test]
    async fn windows_are_shared_with_readers_of_some_of_their_functions() {
        let windows = "WITH s AS (SELECT k, v, sum(v) AS n, rank() OVER (PARTITION BY k ORDER BY sum(v)) AS r, \
            avg(sum(v)) OVER (PARTITION BY k) AS a FROM t GROUP BY k, v)";
        for (expected, rest) in [
            // As those of TPC-DS' question 47: one with both windows, two with the lower one.
            (
                3,
                "SELECT a.k FROM s a, s b, s c WHERE a.r = b.r + 1 AND a.r = c.r - 1 AND a.a > 3 AND a.v = 7",
            ),
            (2, "SELECT k, a, r FROM s UNION ALL SELECT k, a, a AS r FROM s"),
        ] {
            let sql = format!("{windows} {rest}");
            let shared = share(&optimized(&sql).await).unwrap().unwrap();
            let parts = readers(&shared);
            assert_eq!(parts.len(), expected, "{sql}");
            assert!(parts.iter().all(|part| matches!(part.inputs()[0], LogicalPlan::Window(_))), "{sql}");
        }
        let alone = format!("{windows} SELECT k, a, r FROM s");
        assert_eq!(count_readers(&alone).await, 0);
    }

    #[tokio::test]
    async fn windows_of_other_keys_are_not_put_into_one() {
        let sql = "SELECT rank() OVER (PARTITION BY k ORDER BY v) FROM t UNION ALL SELECT rank() OVER (PARTITION BY v ORDER BY k) FROM t";
        assert_eq!(count_readers(sql).await, 0);
        let same = "SELECT rank() OVER (PARTITION BY k ORDER BY v) FROM t UNION ALL SELECT row_number() OVER (PARTITION BY k ORDER BY v) FROM t";
        assert_eq!(count_readers(same).await, 2);
    }

    #[tokio::test]
    async fn tables_of_one_name_are_not_taken_for_one() {
        let sql = "SELECT k, sum(v) FROM t GROUP BY k";
        let (one, other) = (optimized(sql).await, optimized(sql).await);
        assert_eq!(one, other);
        assert!(have_same_tables(&one, &one.clone()).unwrap() && !have_same_tables(&one, &other).unwrap());
    }
}
