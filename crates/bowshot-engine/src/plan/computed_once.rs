//! Queries of WITH that are read more than once and may give other rows each time: those of random functions, and of LIMIT without
//! an order. They are computed once for a statement; the planner would compute them wherever they are read.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, SubqueryAlias, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

/// A query whose rows all readers with the same number share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ComputedOnce {
    number: u64,
    input: LogicalPlan,
}

impl ComputedOnce {
    /// Which query of its process it is.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl PartialOrd for ComputedOnce {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        // By the number alone: two with the same one are the same query.
        Some(self.number.cmp(&other.number)).filter(|order| order.is_ne() || self == other)
    }
}

impl UserDefinedLogicalNodeCore for ComputedOnce {
    fn name(&self) -> &'static str {
        "ComputedOnce"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ComputedOnce")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { number: self.number, input }),
            _ => internal_err!("what is computed once is one query"),
        }
    }
}

/// The plan as the planner made it, with such queries marked. The planner puts one plan of a query behind each of its names, so
/// that readers of one query are known by its address; nothing may have changed the plan before.
pub(crate) fn share(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut found: HashMap<*const LogicalPlan, Reads> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::SubqueryAlias(alias) = node {
            found.entry(Arc::as_ptr(&alias.input)).or_insert_with(|| Reads::of(alias)).count += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    found.retain(|_, reads| reads.count > 1);
    let mut shared: HashMap<*const LogicalPlan, u64> = HashMap::new();
    for (address, reads) in &found {
        if may_differ(&reads.input)? && stands_alone(&reads.input)? {
            shared.insert(*address, next_number());
        }
    }
    if shared.is_empty() {
        return Ok(plan);
    }
    // `found` holds what the addresses are of, so that nothing else can come to lie there meanwhile.
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::SubqueryAlias(alias) => match shared.get(&Arc::as_ptr(&alias.input)) {
            Some(number) => marked(&alias, *number).map(Transformed::yes),
            None => Ok(Transformed::no(LogicalPlan::SubqueryAlias(alias))),
        },
        node => Ok(Transformed::no(node)),
    })
    .data()
}

/// How often a query is read.
struct Reads {
    input: Arc<LogicalPlan>,
    count: usize,
}

impl Reads {
    fn of(alias: &SubqueryAlias) -> Self {
        Self { input: Arc::clone(&alias.input), count: 0 }
    }
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Atomic::Relaxed)
}

fn marked(alias: &SubqueryAlias, number: u64) -> Result<LogicalPlan> {
    let once = ComputedOnce { number, input: alias.input.as_ref().clone() };
    let once = LogicalPlan::Extension(Extension { node: Arc::new(once) });
    SubqueryAlias::try_new(Arc::new(once), alias.alias.clone()).map(LogicalPlan::SubqueryAlias)
}

/// Whether a query may give other rows the next time.
fn may_differ(plan: &LogicalPlan) -> Result<bool> {
    let mut differs = false;
    plan.apply_with_subqueries(|node| {
        differs |= matches!(node, LogicalPlan::Limit(limit) if !matches!(limit.input.as_ref(), LogicalPlan::Sort(_)));
        node.apply_expressions(|expr| {
            differs |= expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if differs { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(differs)
}

/// Whether a query takes nothing from around it: no columns of an outer query, nor the rows of a recursion.
fn stands_alone(plan: &LogicalPlan) -> Result<bool> {
    if !plan.all_out_ref_exprs().is_empty() {
        return Ok(false);
    }
    let (mut read, mut within) = (Vec::new(), Vec::new());
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::RecursiveQuery(recursion) => within.push(recursion.name.clone()),
            LogicalPlan::TableScan(scan)
                if source_as_provider(&scan.source).is_ok_and(|table| table.is::<CteWorkTable>()) =>
            {
                read.push(scan.table_name.table().to_owned());
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(read.iter().all(|name| within.contains(name)))
}
