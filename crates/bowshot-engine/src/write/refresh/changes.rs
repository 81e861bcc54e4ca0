//! The rows of a materialized view that changes of its tables concern, as plans.
//!
//! The rows that came since a version, and those that went, are read where they are stored ([`Table::beyond`]); rows that were only
//! moved are on both sides and cancel each other ([`crate::execute::row_balance`]). A row of the
//! query that is new has a row that came, beside rows of the tables as they are now; one that is gone has a row that went, beside
//! rows of the tables as they were. The keys of these rows are touched: their rows are taken out of the view and computed anew.

use super::form::Form;
use crate::execute::row_balance::{self, BALANCE};
use crate::write::change::ADDRESS;
use crate::write::merge::{ACT, PUT, TAKE};
use bowshot_tables::{Definition, Table};
use bowshot_types::storage_type;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, TableScan, lit};
use std::sync::Arc;

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

/// What takes the place of the table of a scan.
enum Rows<'a> {
    Of(&'a Arc<Table>),
    /// Those of the first that are not balanced by those of the second.
    More(&'a Arc<Table>, &'a Arc<Table>),
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
    if form.grouped.is_none() && sources.iter().all(|source| source.went.rows() == 0) {
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

/// The rows that a query without groups has more, where no table has lost any: each scan in its turn reads what came, those
/// before it what is there now and those behind it what was there.
fn added(query: &LogicalPlan, sources: &[Source]) -> Result<LogicalPlan> {
    let changed = sources.iter().enumerate().filter(|(_, source)| source.has_changed());
    let parts = changed.map(|(changed, _)| {
        reading(query, sources, |at, source| {
            Rows::Of(match at.cmp(&changed) {
                std::cmp::Ordering::Less => &source.now,
                std::cmp::Ordering::Equal => &source.came,
                std::cmp::Ordering::Greater => &source.before,
            })
        })
    });
    union(parts.collect::<Result<_>>()?)
}

/// The keys of all rows of the query, or of the rows that it groups, that came or went.
fn touched(query: &LogicalPlan, form: &Form<'_>, sources: &[Source]) -> Result<LogicalPlan> {
    let below = form.grouped.map_or(query, |grouped| grouped.input.as_ref());
    let mut parts = Vec::new();
    for (changed, there) in sources.iter().enumerate().filter(|(_, source)| source.has_changed()) {
        if there.came.rows() > 0 {
            parts.push(reading(below, sources, |at, source| {
                if at == changed { Rows::More(&source.came, &source.went) } else { Rows::Of(&source.now) }
            })?);
        }
        if there.went.rows() > 0 {
            parts.push(reading(below, sources, |at, source| {
                if at == changed { Rows::More(&source.went, &source.came) } else { Rows::Of(&source.before) }
            })?);
        }
    }
    let keys = parts.into_iter().map(|part| {
        let exprs = key_expressions(&part, form)?;
        let named = exprs.into_iter().enumerate().map(|(at, expr)| expr.alias(key_name(at)));
        let named = named.chain([lit(true).alias(MARK)]);
        LogicalPlanBuilder::from(part).project(named.collect::<Vec<Expr>>())?.build()
    });
    let all = union(keys.collect::<Result<_>>()?)?;
    LogicalPlanBuilder::from(all).distinct()?.alias(TOUCHED)?.build()
}

/// The query over the touched keys alone. Rows are left out before they are grouped.
fn recomputed(query: &LogicalPlan, form: &Form<'_>, touched: &LogicalPlan) -> Result<LogicalPlan> {
    if form.grouped.is_none() {
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

/// The plan with other rows for its scans, which stand in their order in `sources`.
fn reading<'a>(
    plan: &LogicalPlan,
    sources: &'a [Source],
    rows: impl Fn(usize, &'a Source) -> Rows<'a>,
) -> Result<LogicalPlan> {
    let mut at = 0;
    let read = plan.clone().transform_down(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
        let source = sources.get(at).ok_or_else(missing)?;
        let replaced = match rows(at, source) {
            Rows::Of(table) => LogicalPlan::TableScan(scan_of(&scan, table)),
            // Nothing was moved where all rows are on one side.
            Rows::More(more, less) if less.rows() == 0 || !is_grouped(more) => {
                LogicalPlan::TableScan(scan_of(&scan, more))
            }
            Rows::More(more, less) => unbalanced(&scan, more, less)?,
        };
        at += 1;
        Ok(Transformed::new(replaced, true, TreeNodeRecursion::Jump))
    })?;
    Ok(read.data)
}

fn scan_of(scan: &TableScan, table: &Arc<Table>) -> TableScan {
    TableScan { source: provider_as_source(table.provider()), ..scan.clone() }
}

/// Whether rows can be counted by all their columns.
fn is_grouped(table: &Table) -> bool {
    table.schema().fields().iter().all(|field| !field.data_type().is_nested())
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
