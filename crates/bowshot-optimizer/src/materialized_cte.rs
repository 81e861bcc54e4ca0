//! Parts of a statement that are computed once for several readers: queries of WITH that may give other rows each time, such as those
//! with random functions or LIMIT without an order, and equal parts of a plan ([`super::common_subplans`]).

use crate::expressions::{any_expression, any_node};
use bowshot_sql::rewrite::SHARED;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::sql::sqlparser::ast::TableFactor;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

/// A query whose rows all readers with the same number share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ComputedOnce {
    number: u64,
    input: LogicalPlan,
    /// Whether readers take the rows in the order in which they were computed.
    in_order: bool,
}

impl ComputedOnce {
    pub fn is(node: &LogicalPlan) -> bool {
        matches!(node, LogicalPlan::Extension(extension) if extension.node.as_any().is::<Self>())
    }

    /// Which query of its process it is.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether readers take the rows in the order in which they were computed.
    pub fn in_order(&self) -> bool {
        self.in_order
    }

    /// One reader of a part that others have too, under the same number. Its rows come in any order.
    pub(crate) fn equal_part(number: u64, input: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Self { number, input, in_order: false }) })
    }

    /// A number that no other query of the process has.
    pub(crate) fn next_number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Atomic::Relaxed)
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

    bowshot_api::delegate! { input: fn schema(&self) -> &DFSchemaRef; }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ComputedOnce")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Ok(Self { number: self.number, input, in_order: self.in_order }),
            _ => internal_err!("what is computed once is one query"),
        }
    }
}

/// Plans what [`bowshot_sql::rewrite::share_queries`] has named: where its rows may differ, every reader gets the same node.
#[derive(Debug)]
pub struct SharedQueries;

impl RelationPlanner for SharedQueries {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (lateral, subquery, mut alias, sample) = match relation {
            TableFactor::Derived { lateral, subquery, alias: Some(alias), sample }
                if alias.name.value.starts_with(SHARED) =>
            {
                (lateral, subquery, alias, sample)
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        let plan = context.plan(TableFactor::Derived { lateral, subquery, alias: None, sample })?;
        let plan = if differs(&plan)? && stands_alone(&plan)? { once(plan) } else { plan };
        alias.name.value = alias.name.value.split_off(SHARED.len());
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, Some(alias)))))
    }
}

/// The plan with its random scalar subqueries computed each by itself; of equal ones the planner computes one.
pub fn tell_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let has_subquery = |expr: &Expr| expr.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_))));
    if !any_node(&plan, |node| any_expression(node, has_subquery))? {
        return Ok(plan);
    }
    let apart = |node: LogicalPlan| node.map_expressions(|expr| expr.transform_up(one_apart));
    plan.transform_up_with_subqueries(apart).data()
}

fn one_apart(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarSubquery(query) if is_random(&query.subquery)? && stands_alone(&query.subquery)? => {
            // A view that is read twice has one plan.
            let computed = match query.subquery.as_ref() {
                LogicalPlan::Extension(node) => node.node.as_any().downcast_ref::<ComputedOnce>(),
                _ => None,
            };
            let plan = computed.map_or(query.subquery.as_ref(), |computed| &computed.input).clone();
            Ok(Transformed::yes(Expr::ScalarSubquery(query.with_plan(Arc::new(once(plan))))))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

fn once(input: LogicalPlan) -> LogicalPlan {
    let node = ComputedOnce { number: ComputedOnce::next_number(), input, in_order: true };
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

/// Whether a query may give other rows the next time.
pub fn differs(plan: &LogicalPlan) -> Result<bool> {
    Ok(is_random(plan)? || has_any_rows(plan)?)
}

/// Whether a query computes other values the next time.
pub(crate) fn is_random(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| any_expression(node, |expr| Ok(expr.is_volatile())))
}

/// Whether a query takes so many rows of others, whichever they are.
fn has_any_rows(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        Ok(matches!(node, LogicalPlan::Limit(limit) if !matches!(limit.input.as_ref(), LogicalPlan::Sort(_))))
    })
}

/// Whether a query takes nothing from around it: no columns of an outer query, nor the rows of a recursion.
pub(crate) fn stands_alone(plan: &LogicalPlan) -> Result<bool> {
    if !plan.all_out_ref_exprs().is_empty() || reaches_beyond(plan)? {
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

/// Whether a subquery within a query has columns of what is around the query.
fn reaches_beyond(plan: &LogicalPlan) -> Result<bool> {
    let mut outer = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part {
                    outer.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    plan.apply_with_subqueries(|node| {
        outer.retain(|column| !node.inputs().iter().any(|input| input.schema().has_column(column)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!outer.is_empty())
}
