//! The rows of a materialized view that changes of its tables concern, as plans.
//!
//! The rows that came since a version, and those that went, are read where they are stored ([`Table::beyond`]); rows that were only
//! moved are on both sides and cancel each other ([`crate::execute::row_balance`]). A row of the query that is new has a row that came,
//! beside rows of the tables as they are now; one that is gone has a row that went, beside rows of the tables as they were. Where an
//! outer join gives NULL for a side, a row is also new because of a row of that side that went, and gone because of one that came. The
//! keys of these rows are touched: their rows are taken out of the view and computed anew.

use super::form::{Form, input, optional_sides};
use crate::execute::row_balance::{self, BALANCE};
use crate::write::change::ADDRESS;
use crate::write::merge::{ACT, PUT, TAKE};
use bowshot_tables::{Definition, Table};
use bowshot_types::declared::Declared;
use bowshot_types::storage_type;
use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, TableScan, lit,
};
use std::sync::Arc;

/// Changed rows from which on a full refresh is cheaper: as many as this,
const MANY_CHANGES: u64 = 10_000;
/// and more than this part of the tables. Rows that OPTIMIZE has moved count: they are compared to find that they are the same.
const MANY_PART: u64 = 8;

/// Names of the relations in the plans.
const TOUCHED: &str = "__bowshot_touched";
const VIEW: &str = "__bowshot_view";
/// A column beside the keys: a semi join on all columns of both sides would be taken for an INTERSECT ALL.
const MARK: &str = "touched";

/// One scan of the query, then and now.
#[derive(Debug)]
pub(super) struct Source {
    now: Arc<Table>,
    before: Arc<Table>,
    came: Arc<Table>,
    went: Arc<Table>,
}

/// A side of a join, with what its scans read.
struct Side<'a> {
    plan: &'a LogicalPlan,
    sources: &'a [Source],
    /// Whether the join may give NULL for all its columns.
    is_optional: bool,
}

impl Source {
    pub(super) fn new(now: Arc<Table>, before: Arc<Table>) -> Self {
        let came = Arc::new(now.beyond(&before));
        let went = Arc::new(before.beyond(&now));
        Self { now, before, came, went }
    }

    pub(super) fn has_changed(&self) -> bool {
        self.came.rows() > 0 || self.went.rows() > 0
    }

    /// The change from now to before.
    fn undone(&self) -> Self {
        Self {
            now: Arc::clone(&self.before),
            before: Arc::clone(&self.now),
            came: Arc::clone(&self.went),
            went: Arc::clone(&self.came),
        }
    }

    /// The rows that came. Rows that were moved did not, where they can be counted by all their columns.
    fn more(&self, scan: &TableScan) -> Result<Option<LogicalPlan>> {
        let is_counted = || self.came.definition().columns.iter().all(|column| is_plain(&column.field));
        Ok(match (self.came.rows(), self.went.rows()) {
            (0, _) => None,
            (_, 1..) if is_counted() => Some(unbalanced(scan, &self.came, &self.went)?),
            _ => Some(LogicalPlan::TableScan(scan_of(scan, &self.came))),
        })
    }
}

/// The plan of a MERGE that makes the rows of the view those of its query: addresses, acts and columns.
///
/// # Errors
/// When a plan cannot be made.
pub(super) fn merge(
    query: &LogicalPlan,
    form: &Form<'_>,
    sources: &[Source],
    view: &Arc<Table>,
) -> Result<LogicalPlan> {
    let definition = view.definition().as_ref();
    if only_adds(query, sources)? {
        return put(added(query, sources)?, definition);
    }
    let touched = touched(query, form, sources)?;
    let provider =
        storage_type::as_declared(view.addressed_provider(ADDRESS), definition, TableReference::bare(VIEW))?;
    let there = LogicalPlanBuilder::scan(VIEW, provider_as_source(provider), None)?.build()?;
    let columns = there.schema().columns();
    let key = key_columns(&columns, form)?;
    let gone = take(semi_join(there, key, &touched)?, &columns)?;
    let anew = put(recomputed(query, form, &touched)?, definition)?;
    LogicalPlanBuilder::from(gone).union(anew)?.build()
}

/// Whether it is cheaper to compute all rows than those that the changes concern.
pub(super) fn are_many(query: &LogicalPlan, sources: &[Source]) -> Result<bool> {
    // An update is a row that went and one that came.
    let changed: u64 = sources.iter().map(|source| source.came.rows().max(source.went.rows())).sum();
    let all: u64 = sources.iter().map(|source| source.now.rows()).sum();
    Ok(changed >= MANY_CHANGES && changed > all / MANY_PART && !only_adds(query, sources)?)
}

/// Whether the changes only add rows to those of a plan.
fn only_adds(plan: &LogicalPlan, sources: &[Source]) -> Result<bool> {
    let has_changed = |sources: &[Source]| sources.iter().any(Source::has_changed);
    match plan {
        _ if !has_changed(sources) => Ok(true),
        LogicalPlan::TableScan(_) => Ok(sources.iter().all(|source| source.went.rows() == 0)),
        LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => Ok(false),
        LogicalPlan::Join(join) => {
            let [left, right] = sides(join, sources)?;
            let side = |side: Side<'_>| -> Result<bool> {
                Ok(!(side.is_optional && has_changed(side.sources)) && only_adds(side.plan, side.sources)?)
            };
            Ok(side(left)? && side(right)?)
        }
        _ => only_adds(input(plan).ok_or_else(missing)?, sources),
    }
}

/// The rows that a query has more, where changes only add some: each scan in its turn reads what came, those before it what is there
/// now and those behind it what was there.
fn added(query: &LogicalPlan, sources: &[Source]) -> Result<LogicalPlan> {
    let changed = sources.iter().enumerate().filter(|(_, source)| source.has_changed());
    let parts = changed.map(|(changed, _)| {
        reading(query, sources, |at, source| match at.cmp(&changed) {
            std::cmp::Ordering::Less => &source.now,
            std::cmp::Ordering::Equal => &source.came,
            std::cmp::Ordering::Greater => &source.before,
        })
    });
    union(parts.collect::<Result<_>>()?)
}

/// The keys of all rows of the query, or of the rows that it groups, that came or went.
fn touched(query: &LogicalPlan, form: &Form<'_>, sources: &[Source]) -> Result<LogicalPlan> {
    let below = form.grouped.map_or(query, |grouped| grouped.input.as_ref());
    let mut parts = more(below, sources)?;
    parts.extend(more(below, &undone(sources))?);
    let keys = parts.into_iter().map(|part| {
        let exprs = key_expressions(&part, form)?;
        let named = exprs.into_iter().enumerate().map(|(at, expr)| expr.alias(key_name(at)));
        let named = named.chain([lit(true).alias(MARK)]);
        LogicalPlanBuilder::from(part).project(named.collect::<Vec<Expr>>())?.build()
    });
    let all = union(keys.collect::<Result<_>>()?)?;
    LogicalPlanBuilder::from(all).distinct()?.alias(TOUCHED)?.build()
}

/// Whether equal values are the same: of JSONB and of lists a grouping keeps one of several.
fn is_plain(field: &Field) -> bool {
    !field.data_type().is_nested() && Declared::of(field) != Some(Declared::Jsonb)
}

fn undone(sources: &[Source]) -> Vec<Source> {
    sources.iter().map(Source::undone).collect()
}

/// Plans of all rows that a plan has now and had not before, and perhaps of others.
fn more(plan: &LogicalPlan, sources: &[Source]) -> Result<Vec<LogicalPlan>> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let source = sources.first().ok_or_else(missing)?;
            Ok(source.more(scan)?.into_iter().collect())
        }
        LogicalPlan::Join(join) => more_pairs(join, sources),
        _ => {
            let input = input(plan).ok_or_else(missing)?;
            let over = more(input, sources)?.into_iter().map(|rows| {
                plan.clone().map_children(|_| Ok(Transformed::yes(rows.clone()))).map(|over| over.data)
            });
            over.collect()
        }
    }
}

/// The same of a join: rows of a side that are new, with what is beside them; and rows that stand beside NULL now because a row that
/// stood beside them is gone.
fn more_pairs(join: &Join, sources: &[Source]) -> Result<Vec<LogicalPlan>> {
    let [left, right] = sides(join, sources)?;
    let now = |side: &Side<'_>| reading(side.plan, side.sources, |_, source| &source.now);
    let mut parts = Vec::new();
    for (side, other, outer) in [(&left, &right, JoinType::Left), (&right, &left, JoinType::Right)] {
        let joined = |rows: LogicalPlan, others: LogicalPlan, join_type: JoinType| {
            let (left, right) = if outer == JoinType::Left { (rows, others) } else { (others, rows) };
            let joined = Join { left: Arc::new(left), right: Arc::new(right), join_type, ..join.clone() };
            LogicalPlan::Join(joined).recompute_schema()
        };
        for rows in more(side.plan, side.sources)? {
            let join_type = if other.is_optional { outer } else { JoinType::Inner };
            parts.push(joined(rows, now(other)?, join_type)?);
        }
        let gone = if other.is_optional { more(other.plan, &undone(other.sources))? } else { Vec::new() };
        for gone in gone {
            let pairs = joined(now(side)?, gone, JoinType::Inner)?;
            let columns = side.plan.schema().columns().into_iter().map(Expr::Column);
            let rows = LogicalPlanBuilder::from(pairs).project(columns)?.build()?;
            // No literals: the analyzer may give the columns other types.
            let none = LogicalPlanBuilder::from(other.plan.clone()).filter(lit(false))?.build()?;
            parts.push(joined(rows, none, outer)?);
        }
    }
    Ok(parts)
}

fn sides<'a>(join: &'a Join, sources: &'a [Source]) -> Result<[Side<'a>; 2]> {
    let mut scans = 0;
    join.left.as_ref().apply(|node| {
        scans += usize::from(matches!(node, LogicalPlan::TableScan(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let (left, right) = sources.split_at_checked(scans).ok_or_else(missing)?;
    let [left_optional, right_optional] = optional_sides(join.join_type).ok_or_else(missing)?;
    Ok([
        Side { plan: join.left.as_ref(), sources: left, is_optional: left_optional },
        Side { plan: join.right.as_ref(), sources: right, is_optional: right_optional },
    ])
}

/// The query over the touched keys alone. Rows are left out before they are grouped.
fn recomputed(query: &LogicalPlan, form: &Form<'_>, touched: &LogicalPlan) -> Result<LogicalPlan> {
    if form.grouped.is_none() {
        if let LogicalPlan::Distinct(Distinct::All(rows)) = query {
            let rows = semi_join(rows.as_ref().clone(), key_expressions(rows, form)?, touched)?;
            return LogicalPlanBuilder::from(rows).distinct()?.build();
        }
        return semi_join(query.clone(), key_expressions(query, form)?, touched);
    }
    let narrowed = query.clone().transform_down(|node| {
        let LogicalPlan::Aggregate(mut grouped) = node else { return Ok(Transformed::no(node)) };
        let input = grouped.input.as_ref().clone();
        grouped.input = Arc::new(semi_join(input, grouped.group_expr.clone(), touched)?);
        Ok(Transformed::new(LogicalPlan::Aggregate(grouped), true, TreeNodeRecursion::Jump))
    })?;
    Ok(narrowed.data)
}

/// The key of a row in a plan below the grouping, or of the query without one.
fn key_expressions(plan: &LogicalPlan, form: &Form<'_>) -> Result<Vec<Expr>> {
    match form.grouped {
        Some(grouped) => Ok(grouped.group_expr.clone()),
        None => key_columns(&plan.schema().columns(), form),
    }
}

fn key_columns(columns: &[Column], form: &Form<'_>) -> Result<Vec<Expr>> {
    let column = |at: &usize| columns.get(*at).cloned().map(Expr::Column).ok_or_else(missing);
    form.key.iter().map(column).collect()
}

fn missing() -> DataFusionError {
    DataFusionError::Internal("a materialized view lacks a column of its query".to_owned())
}

fn key_name(at: usize) -> String {
    format!("key_{at}")
}

/// The rows of a plan whose key is touched; unknown values are equal to one another.
fn semi_join(rows: LogicalPlan, key: Vec<Expr>, touched: &LogicalPlan) -> Result<LogicalPlan> {
    let of_touched = |at: usize| Expr::Column(Column::new(Some(TOUCHED), key_name(at)));
    let on = key.into_iter().map(Expr::unalias).enumerate().map(|(at, expr)| (expr, of_touched(at)));
    let join = Join::try_new(
        Arc::new(rows),
        Arc::new(touched.clone()),
        on.collect(),
        None,
        JoinType::LeftSemi,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )?;
    Ok(LogicalPlan::Join(join))
}

/// Rows of the view that go.
fn take(rows: LogicalPlan, columns: &[Column]) -> Result<LogicalPlan> {
    let address = Expr::Column(Column::new(Some(VIEW), ADDRESS)).alias(ADDRESS);
    let kept = columns.iter().filter(|column| column.name != ADDRESS);
    let kept = kept.map(|column| Expr::Column(column.clone()).alias(column.name.clone()));
    let all: Vec<Expr> = [address, lit(TAKE).alias(ACT)].into_iter().chain(kept).collect();
    LogicalPlanBuilder::from(rows).project(all)?.build()
}

/// Rows that come, under the names of the view's columns.
fn put(rows: LogicalPlan, definition: &Definition) -> Result<LogicalPlan> {
    let columns = rows.schema().columns();
    if columns.len() != definition.columns.len() {
        return Err(missing());
    }
    let named = columns.into_iter().zip(&definition.columns);
    let named = named.map(|(column, kept)| Expr::Column(column).alias(kept.field.name()));
    let address = Expr::Literal(ScalarValue::UInt64(None), None).alias(ADDRESS);
    let all: Vec<Expr> = [address, lit(PUT).alias(ACT)].into_iter().chain(named).collect();
    LogicalPlanBuilder::from(rows).project(all)?.build()
}

fn union(parts: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    let mut parts = parts.into_iter();
    let first = parts.next().ok_or_else(|| DataFusionError::Internal("nothing has changed".to_owned()))?;
    let all = parts.try_fold(LogicalPlanBuilder::from(first), LogicalPlanBuilder::union)?;
    all.build()
}

/// The plan with other tables for those of its scans, which stand in their order in `sources`.
fn reading<'a>(
    plan: &LogicalPlan,
    sources: &'a [Source],
    table: impl Fn(usize, &'a Source) -> &'a Arc<Table>,
) -> Result<LogicalPlan> {
    let mut at = 0;
    let read = plan.clone().transform_down(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
        let source = sources.get(at).ok_or_else(missing)?;
        let replaced = LogicalPlan::TableScan(scan_of(&scan, table(at, source)));
        at += 1;
        Ok(Transformed::new(replaced, true, TreeNodeRecursion::Jump))
    })?;
    Ok(read.data)
}

fn scan_of(scan: &TableScan, table: &Arc<Table>) -> TableScan {
    TableScan { source: provider_as_source(table.provider()), ..scan.clone() }
}

/// The rows, each once, of which there are more in one table than in another.
fn unbalanced(scan: &TableScan, more: &Arc<Table>, less: &Arc<Table>) -> Result<LogicalPlan> {
    let [more, less] = [more, less].map(|table| LogicalPlan::TableScan(scan_of(scan, table)));
    let rows = row_balance::balanced(more, less)?;
    let (_, columns) = row_balance::split(&rows)?;
    let rows = LogicalPlanBuilder::from(rows)
        .filter(Expr::Column(Column::from_name(BALANCE)).gt(lit(0_i64)))?
        .project(columns)?
        .build()?;
    let rows = SubqueryAlias::try_new(Arc::new(rows), scan.table_name.clone())?;
    Ok(LogicalPlan::SubqueryAlias(rows))
}
