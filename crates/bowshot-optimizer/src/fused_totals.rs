//! Totals over the same joined tables that differ in conditions, as in `SELECT (SELECT count(*) FROM a JOIN b … WHERE b.hour = 8), (SELECT
//! count(*) FROM a JOIN b … WHERE b.hour = 9)`: the tables are joined once for the rows of all, and each total has its condition as a
//! FILTER. Totals of one table alone stay apart: its columns are at hand, and there are more rows to filter than each of them reads.

use crate::common_subplans::{MAX_NODES, have_same_tables, merged, union};
use crate::computed_once::{ComputedOnce, is_random, stands_alone};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, Expr, Extension, Filter, Join, LogicalPlan, Operator, Projection, SubqueryAlias, TableScan,
    TableScanBuilder,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Functions up to which totals are put together: each of them looks at all rows.
const MOST_FUNCTIONS: usize = 32;

/// The optimized plan with such totals computed together, or `None` if it has none.
///
/// # Errors
/// From walking the plan.
pub fn fuse(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let fused: Vec<Totals> = families(plan)?.into_iter().filter_map(Totals::of).collect();
    if fused.is_empty() {
        return Ok(None);
    }
    let replaced = plan.clone().transform_down_with_subqueries(|node| {
        for totals in &fused {
            if let Some(reader) = totals.reader(&node)? {
                return Ok(Transformed::new(reader, true, TreeNodeRecursion::Jump));
            }
        }
        Ok(Transformed::no(node))
    });
    replaced.data().map(Some)
}

/// Totals that read the same tables, different ones only.
fn families(plan: &LogicalPlan) -> Result<Vec<Vec<LogicalPlan>>> {
    let (mut nodes, mut families) = (0_usize, Vec::<Vec<LogicalPlan>>::new());
    plan.apply_with_subqueries(|node| {
        nodes += 1;
        if nodes > MAX_NODES {
            families.clear();
            return Ok(TreeNodeRecursion::Stop);
        }
        if !is_total(node)? {
            return Ok(TreeNodeRecursion::Continue);
        }
        for family in &mut families {
            if let Some(first) = family.first()
                && have_same_tables(first, node)?
            {
                if !family.contains(node) {
                    family.push(node.clone());
                }
                return Ok(TreeNodeRecursion::Continue);
            }
        }
        families.push(vec![node.clone()]);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(families)
}

/// Whether a node gives one row for all rows of joined tables, by functions that take a condition.
fn is_total(node: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(false) };
    Ok(aggregate.group_expr.is_empty()
        && aggregate.aggr_expr.iter().all(|expr| filtered(expr, &[]).is_some())
        && aggregate.input.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))?
        && !is_random(node)?
        && stands_alone(node)?)
}

/// The call of an aggregate function for rows that meet conditions; `None` for one whose answer depends on the order of rows.
fn filtered(expr: &Expr, conditions: &[Expr]) -> Option<Expr> {
    let mut call = expr;
    while let Expr::Alias(alias) = call {
        call = &alias.expr;
    }
    let Expr::AggregateFunction(call) = call else { return None };
    if !call.params.order_by.is_empty() || call.params.null_treatment.is_some() {
        return None;
    }
    let mut call = call.clone();
    let own = call.params.filter.take().map(|filter| *filter);
    call.params.filter = conjunction(own.into_iter().chain(conditions.iter().cloned())).map(Box::new);
    Some(Expr::AggregateFunction(call))
}

/// Totals that are computed together.
struct Totals {
    number: u64,
    plan: LogicalPlan,
    /// Each of them, and which columns it has there.
    readers: Vec<(LogicalPlan, Vec<usize>)>,
}

impl Totals {
    /// `None` where they are no parts of the same rows, or a condition may fail for rows of another one.
    fn of(members: Vec<LogicalPlan>) -> Option<Self> {
        if members.len() < 2 {
            return None;
        }
        let aggregates = all(&members.iter().collect::<Vec<_>>(), |plan| match plan {
            LogicalPlan::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        })?;
        let inputs: Vec<&LogicalPlan> = aggregates.iter().map(|aggregate| aggregate.input.as_ref()).collect();
        let rows = merge(&inputs)?;
        let mut conditions = rows.conditions.iter().flatten();
        if rows.conditions.iter().all(Vec::is_empty) || !conditions.all(never_fails) {
            return None;
        }
        let (mut functions, mut places) = (Vec::new(), Vec::with_capacity(members.len()));
        for (aggregate, conditions) in aggregates.iter().zip(&rows.conditions) {
            let mut columns = Vec::with_capacity(aggregate.aggr_expr.len());
            for expr in &aggregate.aggr_expr {
                let function = filtered(expr, conditions)?;
                let known = functions.iter().position(|other| *other == function);
                columns.push(known.unwrap_or(functions.len()));
                if known.is_none() {
                    functions.push(function);
                }
            }
            places.push(columns);
        }
        if functions.len() > MOST_FUNCTIONS {
            return None;
        }
        let plan = Aggregate::try_new(Arc::new(rows.plan), Vec::new(), functions).ok()?;
        let plan = LogicalPlan::Aggregate(plan);
        Some(Self {
            number: ComputedOnce::next_number(),
            plan,
            readers: members.into_iter().zip(places).collect(),
        })
    }

    /// What comes in the place of a node that is one of them.
    fn reader(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        for (member, columns) in &self.readers {
            if member != node || !have_same_tables(member, node)? {
                continue;
            }
            let once = ComputedOnce::equal_part(self.number, self.plan.clone());
            let once = LogicalPlan::Extension(Extension { node: Arc::new(once) });
            let schema = Arc::clone(once.schema());
            let chosen = node.schema().iter().zip(columns).map(|((qualifier, field), at)| {
                let column = Expr::Column(Column::from(schema.qualified_field(*at)));
                column.alias_qualified(qualifier.cloned(), field.name())
            });
            let reader = Projection::try_new(chosen.collect(), Arc::new(once))?;
            return Ok(Some(LogicalPlan::Projection(reader)));
        }
        Ok(None)
    }
}

/// The rows of several plans.
struct Rows {
    plan: LogicalPlan,
    /// For each plan, what its rows meet.
    conditions: Vec<Vec<Expr>>,
}

/// The rows of plans that differ in conditions and in columns alone.
fn merge(plans: &[&LogicalPlan]) -> Option<Rows> {
    let (first, rest) = plans.split_first()?;
    let equal = rest.iter().try_fold(LogicalPlan::clone(first), |plan, other| merged(&plan, other));
    if let Some(plan) = equal {
        return Some(Rows { plan, conditions: vec![Vec::new(); plans.len()] });
    }
    match first {
        LogicalPlan::Filter(_) => merge_filters(plans),
        LogicalPlan::Projection(_) => merge_projections(plans),
        LogicalPlan::SubqueryAlias(_) => merge_aliases(plans),
        LogicalPlan::Join(_) => merge_joins(plans),
        LogicalPlan::TableScan(_) => merge_scans(plans),
        _ => None,
    }
}

fn all<'a, T>(
    plans: &[&'a LogicalPlan],
    of: impl Fn(&'a LogicalPlan) -> Option<&'a T>,
) -> Option<Vec<&'a T>> {
    plans.iter().map(|plan| of(plan)).collect()
}

fn merge_filters(plans: &[&LogicalPlan]) -> Option<Rows> {
    let filters = all(plans, |plan| match plan {
        LogicalPlan::Filter(filter) => Some(filter),
        _ => None,
    })?;
    let inputs: Vec<&LogicalPlan> = filters.iter().map(|filter| filter.input.as_ref()).collect();
    let mut rows = merge(&inputs)?;
    let predicates: Vec<&Expr> = filters.iter().map(|filter| &filter.predicate).collect();
    let first = *predicates.first()?;
    if !predicates.iter().all(|predicate| *predicate == first) {
        for (conditions, predicate) in rows.conditions.iter_mut().zip(&predicates) {
            add(conditions, predicate);
        }
    }
    let predicate = either(predicates.into_iter().cloned())?;
    let plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows.plan)).ok()?);
    Some(Rows { plan, ..rows })
}

/// A projection of the columns of all, and of those that conditions read above it.
fn merge_projections(plans: &[&LogicalPlan]) -> Option<Rows> {
    let projections = all(plans, |plan| match plan {
        LogicalPlan::Projection(projection) => Some(projection),
        _ => None,
    })?;
    let inputs: Vec<&LogicalPlan> = projections.iter().map(|projection| projection.input.as_ref()).collect();
    let rows = merge(&inputs)?;
    let mut chosen: Vec<Expr> = Vec::new();
    for projection in projections {
        chosen = union(&chosen, &projection.expr);
    }
    let read: BTreeSet<&Column> = rows.conditions.iter().flatten().flat_map(Expr::column_refs).collect();
    let read: Vec<Expr> = read.into_iter().cloned().map(Expr::Column).collect();
    chosen = union(&chosen, &read);
    let plan = LogicalPlan::Projection(Projection::try_new(chosen, Arc::new(rows.plan)).ok()?);
    Some(Rows { plan, conditions: rows.conditions })
}

fn merge_aliases(plans: &[&LogicalPlan]) -> Option<Rows> {
    let aliases = all(plans, |plan| match plan {
        LogicalPlan::SubqueryAlias(alias) => Some(alias),
        _ => None,
    })?;
    let alias = &aliases.first()?.alias;
    if !aliases.iter().all(|other| other.alias == *alias) {
        return None;
    }
    let inputs: Vec<&LogicalPlan> = aliases.iter().map(|alias| alias.input.as_ref()).collect();
    let rows = merge(&inputs)?;
    let renamed = |condition: &Expr| {
        let renamed = condition.clone().transform(|part| {
            Ok(match part {
                Expr::Column(column) => {
                    Transformed::yes(Expr::Column(Column::new(Some(alias.clone()), column.name)))
                }
                part => Transformed::no(part),
            })
        });
        renamed.data().ok()
    };
    let conditions =
        rows.conditions.iter().map(|of_one| of_one.iter().map(renamed).collect::<Option<Vec<_>>>());
    let conditions = conditions.collect::<Option<Vec<_>>>()?;
    let plan = SubqueryAlias::try_new(Arc::new(rows.plan), alias.clone()).ok()?;
    Some(Rows { plan: LogicalPlan::SubqueryAlias(plan), conditions })
}

/// Conditions on a side apply above the join where all rows of the join have columns of that side, and no row is there for lack of others.
fn merge_joins(plans: &[&LogicalPlan]) -> Option<Rows> {
    let joins = all(plans, |plan| match plan {
        LogicalPlan::Join(join) => Some(join),
        _ => None,
    })?;
    let first = *joins.first()?;
    let same = |other: &&Join| {
        first.on == other.on
            && first.filter == other.filter
            && first.join_type == other.join_type
            && first.join_constraint == other.join_constraint
            && first.null_equality == other.null_equality
            && first.null_aware == other.null_aware
    };
    if !joins.iter().all(same) {
        return None;
    }
    let left = merge(&joins.iter().map(|join| join.left.as_ref()).collect::<Vec<_>>())?;
    let right = merge(&joins.iter().map(|join| join.right.as_ref()).collect::<Vec<_>>())?;
    let has_none = |rows: &Rows| rows.conditions.iter().all(Vec::is_empty);
    let may_differ = match first.join_type {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => has_none(&right),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => has_none(&left),
        _ => false,
    };
    if !may_differ {
        return None;
    }
    let conditions = left.conditions.iter().zip(&right.conditions).map(|(left, right)| union(left, right));
    let conditions = conditions.collect();
    let join = Join::try_new(
        Arc::new(left.plan),
        Arc::new(right.plan),
        first.on.clone(),
        first.filter.clone(),
        first.join_type,
        first.join_constraint,
        first.null_equality,
        first.null_aware,
    );
    Some(Rows { plan: LogicalPlan::Join(join.ok()?), conditions })
}

/// A scan for the rows of all. What a scan leaves out may not be looked at again above it, so all of its conditions count.
fn merge_scans(plans: &[&LogicalPlan]) -> Option<Rows> {
    let scans = all(plans, |plan| match plan {
        LogicalPlan::TableScan(scan) => Some(scan),
        _ => None,
    })?;
    let first = *scans.first()?;
    let same = |other: &&TableScan| {
        other.table_name == first.table_name
            && Arc::ptr_eq(&other.source, &first.source)
            && other.fetch.is_none()
            && other.statistics_requests == first.statistics_requests
    };
    if !scans.iter().all(same) {
        return None;
    }
    let schema = first.source.schema();
    let (mut columns, mut conditions) = (Vec::new(), Vec::with_capacity(scans.len()));
    for scan in &scans {
        let mut own = Vec::new();
        scan.filters.iter().for_each(|filter| add(&mut own, filter));
        let read = own.iter().flat_map(Expr::column_refs).map(|column| schema.index_of(&column.name));
        let read = read.collect::<Result<BTreeSet<usize>, _>>().ok()?;
        for column in scan.projection.as_ref()?.iter().copied().chain(read) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        conditions.push(own);
    }
    let filters = conditions.iter().map(|own| conjunction(own.iter().cloned())).collect::<Option<Vec<_>>>();
    let filters = filters.and_then(either).into_iter().collect();
    let scan = TableScanBuilder::new(first.table_name.clone(), Arc::clone(&first.source))
        .with_projection(Some(columns))
        .with_filters(filters)
        .with_statistics_requests(first.statistics_requests.clone())
        .build();
    Some(Rows { plan: LogicalPlan::TableScan(scan.ok()?), conditions })
}

/// Adds the parts of a condition that are not there.
fn add(conditions: &mut Vec<Expr>, predicate: &Expr) {
    for part in split_conjunction(predicate) {
        if !conditions.contains(part) {
            conditions.push(part.clone());
        }
    }
}

/// What rows meet that meet one of several conditions.
fn either(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    let mut different: Vec<Expr> = Vec::new();
    for condition in conditions {
        if !different.contains(&condition) {
            different.push(condition);
        }
    }
    disjunction(different)
}

/// Whether a condition gives no error for any row: it compares columns with constants, and nothing is computed.
fn never_fails(condition: &Expr) -> bool {
    let may_fail = condition.exists(|part| {
        Ok(match part {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Like(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_) => false,
            Expr::BinaryExpr(binary) => !matches!(
                binary.op,
                Operator::And
                    | Operator::Or
                    | Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
                    | Operator::IsDistinctFrom
                    | Operator::IsNotDistinctFrom
            ),
            _ => true,
        })
    });
    may_fail.is_ok_and(|may_fail| !may_fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::MemTable;
    use datafusion::prelude::SessionContext;

    /// Readers of totals that are computed together, in a statement.
    async fn readers(sql: &str) -> usize {
        let context = SessionContext::new();
        let fields = ["k", "v", "w"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        for name in ["t", "u"] {
            let table = MemTable::try_new(Arc::clone(&schema), vec![Vec::new()]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        }
        let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        let Some(fused) = fuse(&plan).unwrap() else { return 0 };
        assert_eq!(fused.schema(), plan.schema());
        let mut readers = 0;
        fused
            .apply_with_subqueries(|node| {
                readers += usize::from(ComputedOnce::is(node));
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
        readers
    }

    #[tokio::test]
    async fn totals_of_the_same_joins_are_computed_together() {
        let total =
            |functions: &str, rest: &str| format!("(SELECT {functions} FROM t JOIN u ON t.k = u.k {rest})");
        for (expected, one, other) in [
            (2, total("count(*)", "WHERE u.v = 1"), total("count(*)", "WHERE u.v = 2")),
            (
                2,
                total("sum(t.v)", "WHERE u.v = 1 AND t.w > 3"),
                total("max(t.v)", "WHERE u.v = 2 AND t.w > 5"),
            ),
            (2, total("sum(t.v)", "WHERE u.v = 1"), total("avg(u.w)", "WHERE u.v BETWEEN 2 AND 5")),
            // Other tables, a condition that may fail, one that belongs to the join, one that is drawn.
            (
                0,
                total("count(*)", "WHERE u.v = 1"),
                "(SELECT count(*) FROM t JOIN t AS u ON t.k = u.k WHERE u.v = 2)".into(),
            ),
            (0, total("count(*)", "WHERE 10 / u.v = 1"), total("count(*)", "WHERE u.v = 2")),
            (0, total("count(*)", "WHERE u.v < t.v"), total("count(*)", "WHERE u.v > t.v")),
            (0, total("count(*)", "WHERE u.v > random()"), total("count(*)", "WHERE u.v > 3")),
            // One table, and functions that depend on the order of rows.
            (0, "(SELECT count(*) FROM t WHERE v = 1)".into(), "(SELECT count(*) FROM t WHERE v = 2)".into()),
            (
                0,
                total("array_agg(t.v ORDER BY t.w)", "WHERE u.v = 1"),
                total("array_agg(t.v ORDER BY t.w)", "WHERE u.v = 2"),
            ),
        ] {
            let sql = format!("SELECT * FROM {one} AS a CROSS JOIN {other} AS b");
            assert_eq!(readers(&sql).await, expected, "{sql}");
        }
    }
}
