//! The rows of several parts of a plan that differ in conditions and in columns alone, as one plan with the conditions of each.

use crate::common_subplans::{MAX_NODES, have_same_tables, merged, union};
use crate::expressions::is_comparison;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, plan_err};
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, LogicalPlan, Projection, SubqueryAlias, TableScan, TableScanBuilder, Union,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Parts of a plan of one kind that read the same tables, different ones only.
pub(crate) fn families(
    plan: &LogicalPlan,
    is_member: fn(&LogicalPlan) -> Result<bool>,
    are_alike: fn(&LogicalPlan, &LogicalPlan) -> bool,
) -> Result<Vec<Vec<LogicalPlan>>> {
    let (mut nodes, mut families) = (0_usize, Vec::<Vec<LogicalPlan>>::new());
    plan.apply_with_subqueries(|node| {
        nodes += 1;
        if nodes > MAX_NODES {
            families.clear();
            return Ok(TreeNodeRecursion::Stop);
        }
        if !is_member(node)? {
            return Ok(TreeNodeRecursion::Continue);
        }
        for family in &mut families {
            if let Some(first) = family.first()
                && are_alike(first, node)
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

/// The rows of several plans.
pub(crate) struct Rows {
    pub(crate) plan: LogicalPlan,
    /// For each plan, what its rows meet.
    pub(crate) conditions: Vec<Vec<Expr>>,
}

/// The rows of plans that differ in conditions and in columns alone.
pub(crate) fn merge(plans: &[&LogicalPlan]) -> Option<Rows> {
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
        LogicalPlan::Aggregate(_) => merge_aggregates(plans),
        LogicalPlan::Union(_) => merge_unions(plans),
        _ => None,
    }
}

pub(crate) fn all<'a, T>(
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
    // What all have in common is met below by all rows.
    let is_common = |part: &Expr| predicates.iter().all(|other| split_conjunction(other).contains(&part));
    for (conditions, predicate) in rows.conditions.iter_mut().zip(&predicates) {
        add(conditions, split_conjunction(predicate).into_iter().filter(|part| !is_common(part)));
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

/// Groups of the rows of all. Conditions on keys are met by all rows of a group or by none, and apply to groups as well.
fn merge_aggregates(plans: &[&LogicalPlan]) -> Option<Rows> {
    let aggregates = all(plans, |plan| match plan {
        LogicalPlan::Aggregate(aggregate) => Some(aggregate),
        _ => None,
    })?;
    let keys = &aggregates.first()?.group_expr;
    if !aggregates.iter().all(|other| other.group_expr == *keys) {
        return None;
    }
    let rows = merge(&aggregates.iter().map(|aggregate| aggregate.input.as_ref()).collect::<Vec<_>>())?;
    let is_key = |column: &Column| keys.iter().any(|key| matches!(key, Expr::Column(key) if key == column));
    if !rows.conditions.iter().flatten().all(|condition| condition.column_refs().into_iter().all(is_key)) {
        return None;
    }
    let mut functions: Vec<Expr> = Vec::new();
    for aggregate in &aggregates {
        functions = union(&functions, &aggregate.aggr_expr);
    }
    let plan = Aggregate::try_new(Arc::new(rows.plan), keys.clone(), functions).ok()?;
    Some(Rows { plan: LogicalPlan::Aggregate(plan), conditions: rows.conditions })
}

/// The rows of all, where those of each plan meet the same conditions in all of its parts.
fn merge_unions(plans: &[&LogicalPlan]) -> Option<Rows> {
    let unions = all(plans, |plan| match plan {
        LogicalPlan::Union(union) => Some(union),
        _ => None,
    })?;
    let first = *unions.first()?;
    if !unions.iter().all(|other| other.schema == first.schema && other.inputs.len() == first.inputs.len()) {
        return None;
    }
    let (mut parts, mut conditions) = (Vec::new(), None);
    for (at, part) in first.inputs.iter().enumerate() {
        let inputs: Vec<&LogicalPlan> =
            unions.iter().map(|union| union.inputs.get(at).map(Arc::as_ref)).collect::<Option<_>>()?;
        if !inputs.iter().all(|input| input.schema() == part.schema()) {
            return None;
        }
        let rows = merge(&inputs)?;
        let above = rows
            .conditions
            .iter()
            .map(|of_one| of_one.iter().map(|condition| by_place(condition, part, &first.schema)).collect());
        let above = above.collect::<Option<Vec<Vec<Expr>>>>()?;
        if *conditions.get_or_insert_with(|| above.clone()) != above {
            return None;
        }
        let columns = part.schema().iter().map(|column| Expr::Column(Column::from(column)));
        parts.push(Arc::new(LogicalPlan::Projection(
            Projection::try_new(columns.collect(), Arc::new(rows.plan)).ok()?,
        )));
    }
    let plan = LogicalPlan::Union(Union { inputs: parts, schema: Arc::clone(&first.schema) });
    Some(Rows { plan, conditions: conditions? })
}

/// A condition on columns of a part of a union, on those of the union.
fn by_place(condition: &Expr, part: &LogicalPlan, union: &DFSchema) -> Option<Expr> {
    let moved = condition.clone().transform(|of| {
        let Expr::Column(column) = of else { return Ok(Transformed::no(of)) };
        match place_of(&column, part) {
            Some(place) => Ok(Transformed::yes(Expr::Column(Column::from(union.qualified_field(place))))),
            None => plan_err!("a condition is on a column that the part does not give"),
        }
    });
    moved.data().ok()
}

/// At which place a part gives a column, by its own name or another one.
fn place_of(column: &Column, part: &LogicalPlan) -> Option<usize> {
    let is_named = |expr: &Expr| match expr {
        Expr::Alias(alias) => matches!(alias.expr.as_ref(), Expr::Column(of) if of == column),
        _ => false,
    };
    part.schema().maybe_index_of_column(column).or_else(|| match part {
        LogicalPlan::Projection(projection) => projection.expr.iter().position(is_named),
        _ => None,
    })
}

/// A scan for the rows of all. What a scan leaves out may not be looked at again above it, so conditions of one of them count; those that all
/// have go to the scan as they went before.
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
    let is_common = |filter: &Expr| scans.iter().all(|scan| scan.filters.contains(filter));
    let schema = first.source.schema();
    let (mut columns, mut conditions) = (Vec::new(), Vec::with_capacity(scans.len()));
    for scan in &scans {
        let mut own = Vec::new();
        let filters = scan.filters.iter().filter(|filter| !is_common(filter));
        add(&mut own, filters.flat_map(split_conjunction));
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
    let common = first.filters.iter().filter(|filter| is_common(filter)).cloned();
    let filters = common.chain(filters.and_then(either)).collect();
    let scan = TableScanBuilder::new(first.table_name.clone(), Arc::clone(&first.source))
        .with_projection(Some(columns))
        .with_filters(filters)
        .with_statistics_requests(first.statistics_requests.clone())
        .build();
    Some(Rows { plan: LogicalPlan::TableScan(scan.ok()?), conditions })
}

/// Adds conditions that are not there.
fn add<'a>(conditions: &mut Vec<Expr>, parts: impl Iterator<Item = &'a Expr>) {
    for part in parts {
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
pub(crate) fn never_fails(condition: &Expr) -> bool {
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
            Expr::BinaryExpr(binary) => !binary.op.is_logic_operator() && !is_comparison(binary.op),
            _ => true,
        })
    });
    may_fail.is_ok_and(|may_fail| !may_fail)
}
