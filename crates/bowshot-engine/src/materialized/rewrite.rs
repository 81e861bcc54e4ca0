//! Parts of a query that materialized views answer: the same joins of the same tables, with the view's conditions and perhaps more
//! of them over columns that it shows; the same groups, or coarser ones whose aggregates its own add up to.

use crate::catalog::materialized_query;
use crate::materialized::block::Block;
use bowshot_tables::{EntryName, Table};
use bowshot_types::{result_metadata, storage_type};
use chrono::{DateTime, Utc};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use std::sync::Arc;
use std::time::Duration;

/// A view with its query.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: EntryName,
    pub(crate) table: Arc<Table>,
    pub(crate) block: Arc<Block>,
}

/// The plan, in which the smallest views stand for what they answer; `None` where none answers anything. The rows of a view may be
/// as old as `staleness`.
pub(crate) fn rewritten(
    plan: &LogicalPlan,
    views: &[View],
    staleness: Duration,
    state: &SessionState,
) -> Result<Option<LogicalPlan>> {
    let rewritten = plan.clone().transform_down_with_subqueries(|node| {
        Ok(match replacement(&node, views, staleness, state) {
            Some(view) => Transformed::new(view, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(rewritten.transformed.then_some(rewritten.data))
}

fn replacement(
    node: &LogicalPlan,
    views: &[View],
    staleness: Duration,
    state: &SessionState,
) -> Option<LogicalPlan> {
    let is_root = matches!(
        node,
        LogicalPlan::Aggregate(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Join(_)
    );
    let query = Block::read(node).filter(|_| is_root)?;
    // Of the steps above a grouping only the grouping itself is answered.
    if query.groups.is_some() && !matches!(node, LogicalPlan::Aggregate(_)) {
        return None;
    }
    let tables = materialized_query::tables(node)?;
    let mut fitting: Vec<&View> = views
        .iter()
        .filter(|view| view.block.tables == query.tables && shows(&view.table, &tables, staleness))
        .collect();
    if fitting.is_empty() {
        return None;
    }
    fitting.sort_by_key(|view| view.table.rows());
    let shape = result_metadata::analysed_schema(state, node);
    fitting.into_iter().find_map(|view| answer(node, &query, view, &shape).ok().flatten())
}

/// Whether a view shows these states of its tables, or older ones that are new enough. What is not committed no view shows.
pub(crate) fn shows(view: &Table, tables: &[Arc<Table>], staleness: Duration) -> bool {
    let Some(known) = &view.definition().materialized else { return false };
    let ended = known.last.as_ref().and_then(|last| DateTime::from_timestamp_micros(last.ended_us));
    let is_recent = || {
        let age = ended.and_then(|ended| (Utc::now() - ended).to_std().ok());
        age.is_some_and(|age| age <= staleness)
    };
    tables.iter().all(|table| {
        let shown = known.sources.iter().find(|source| source.table == table.id());
        shown.is_some_and(|shown| {
            table.has_rows_of(shown.version) || (!staleness.is_zero() && table.is_committed() && is_recent())
        })
    })
}

/// The rows of a view under the names and with the types of a step of the query.
fn answer(node: &LogicalPlan, query: &Block, view: &View, shape: &Schema) -> Result<Option<LogicalPlan>> {
    let kept = &view.block;
    if !kept.conditions.iter().all(|condition| query.conditions.contains(condition)) {
        return Ok(None);
    }
    let rows = scan(view)?;
    let shown = ViewColumns::new(&kept.columns, rows.schema());
    let more = query.conditions.iter().filter(|condition| !kept.conditions.contains(condition));
    let Some(more) = more.map(|condition| shown.over(condition)).collect::<Option<Vec<Expr>>>() else {
        return Ok(None);
    };
    let is_narrowed = !more.is_empty();
    let rows = match conjunction(more) {
        Some(condition) => LogicalPlanBuilder::from(rows).filter(condition)?.build()?,
        None => rows,
    };
    let grouping = match (&kept.groups, &query.groups) {
        (Some(_), None) => return Ok(None),
        // One row comes of no rows, which a condition on it would take away.
        (Some(kept), _) if kept.is_empty() && is_narrowed => return Ok(None),
        (None, None) => None,
        (Some(kept), Some(asked)) if same(kept, asked) => None,
        (kept, Some(asked)) => Some((kept.is_some(), asked)),
    };
    let (rows, columns) = match grouping {
        None => (rows, shown.all_over(&query.columns)),
        Some((is_grouped, groups)) => {
            let aggregates = query.columns.get(groups.len()..).unwrap_or_default();
            let aggregates: Option<Vec<Expr>> = match is_grouped {
                true => {
                    aggregates.iter().map(|aggregate| shown.rolled_up(aggregate, rows.schema())).collect()
                }
                false => aggregates.iter().map(|aggregate| shown.aggregate_over(aggregate)).collect(),
            };
            let Some((groups, aggregates)) = shown.all_over(groups).zip(aggregates) else { return Ok(None) };
            let (rows, columns) = grouped(rows, groups, aggregates)?;
            let columns = if is_grouped { counted(columns, query) } else { Some(columns) };
            (rows, columns)
        }
    };
    let Some(columns) = columns else { return Ok(None) };
    named(rows, columns, (node.schema(), shape))
}

/// All rows of a view.
fn scan(view: &View) -> Result<LogicalPlan> {
    let (name, definition) = (&view.name, view.table.definition().as_ref());
    let name = TableReference::full(name.catalog.as_str(), name.schema.as_str(), name.name.as_str());
    let provider = storage_type::as_declared(view.table.provider(), definition, name.clone())?;
    LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.build()
}

fn same(one: &[Expr], other: &[Expr]) -> bool {
    one.iter().all(|expr| other.contains(expr)) && other.iter().all(|expr| one.contains(expr))
}

fn grouped(rows: LogicalPlan, groups: Vec<Expr>, aggregates: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    let name = |at: usize| format!("__bowshot_{at}");
    let count = groups.len() + aggregates.len();
    let first = groups.len();
    let groups = groups.into_iter().enumerate().map(|(at, expr)| expr.alias(name(at)));
    let aggregates = aggregates.into_iter().enumerate().map(|(at, expr)| expr.alias(name(first + at)));
    let (groups, aggregates): (Vec<Expr>, Vec<Expr>) = (groups.collect(), aggregates.collect());
    let rows = LogicalPlanBuilder::from(rows).aggregate(groups, aggregates)?.build()?;
    let columns = (0..count).map(|at| Expr::Column(Column::from_name(name(at)))).collect();
    Ok((rows, columns))
}

/// Of no groups at all a count is 0, and their sum is unknown.
fn counted(columns: Vec<Expr>, query: &Block) -> Option<Vec<Expr>> {
    let columns = columns.into_iter().zip(&query.columns).map(|(column, asked)| match asked {
        Expr::AggregateFunction(call) if call.func.name() == "count" => {
            when(column.clone().is_null(), lit(0_i64)).otherwise(cast(column, DataType::Int64)).ok()
        }
        _ => Some(column),
    });
    columns.collect()
}

/// Columns under the names of a step, in the types that the step has once it is analysed. `None` for other types.
fn named(
    rows: LogicalPlan,
    columns: Vec<Expr>,
    (schema, shape): (&DFSchema, &Schema),
) -> Result<Option<LogicalPlan>> {
    let fields = schema.iter().zip(shape.fields());
    let mut all = Vec::with_capacity(columns.len());
    for (expr, ((qualifier, field), analysed)) in columns.into_iter().zip(fields) {
        if !field.metadata().is_empty() || field.data_type() != analysed.data_type() {
            return Ok(None);
        }
        let is_same = expr.get_type(rows.schema())? == *field.data_type();
        let is_sum = matches!(field.data_type(), DataType::Decimal128(_, _) | DataType::Int64);
        let expr = match is_same {
            true => expr,
            // Sums of sums have more digits.
            false if is_sum => cast(expr, field.data_type().clone()),
            false => return Ok(None),
        };
        all.push(expr.alias_qualified(qualifier.cloned(), field.name()));
    }
    if all.len() != schema.fields().len() {
        return Ok(None);
    }
    LogicalPlanBuilder::from(rows).project(all)?.build().map(Some)
}

/// The columns of a view by what they show.
struct ViewColumns<'a>(Vec<(&'a Expr, Column)>);

impl<'a> ViewColumns<'a> {
    fn new(exprs: &'a [Expr], schema: &DFSchema) -> Self {
        let plain = exprs.iter().zip(schema.columns()).zip(schema.fields());
        // A constant may stand in an expression and mean something else there.
        let plain = plain
            .filter(|((expr, _), field)| !matches!(expr, Expr::Literal(..)) && field.metadata().is_empty());
        Self(plain.map(|(shown, _)| shown).collect())
    }

    fn column(&self, expr: &Expr) -> Option<Expr> {
        self.0.iter().find(|(shown, _)| *shown == expr).map(|(_, column)| Expr::Column(column.clone()))
    }

    fn all_over(&self, exprs: &[Expr]) -> Option<Vec<Expr>> {
        exprs.iter().map(|expr| self.over(expr)).collect()
    }

    /// An expression over columns of tables as one over those of the view; `None` where the view lacks some, or an aggregate.
    fn over(&self, expr: &Expr) -> Option<Expr> {
        let mut is_complete = true;
        let over = expr.clone().transform_down(|part| {
            if let Some(column) = self.column(&part) {
                return Ok(Transformed::new(column, true, TreeNodeRecursion::Jump));
            }
            is_complete &= !matches!(part, Expr::Column(_) | Expr::AggregateFunction(_));
            Ok(Transformed::no(part))
        });
        over.ok().filter(|_| is_complete).map(|over| over.data)
    }

    /// An aggregate of rows of the view.
    fn aggregate_over(&self, aggregate: &Expr) -> Option<Expr> {
        let mut is_complete = matches!(aggregate, Expr::AggregateFunction(_));
        let over = aggregate.clone().map_children(|part| match self.over(&part) {
            Some(over) => Ok(Transformed::yes(over)),
            None => {
                is_complete = false;
                Ok(Transformed::no(part))
            }
        });
        over.ok().filter(|_| is_complete).map(|over| over.data)
    }

    /// An aggregate of the aggregates of several groups.
    fn rolled_up(&self, aggregate: &Expr, schema: &DFSchema) -> Option<Expr> {
        let Expr::AggregateFunction(call) = aggregate else { return None };
        let column = self.column(aggregate)?;
        // The sum of floating-point numbers depends on their order.
        let is_exact = !column.get_type(schema).ok()?.is_floating();
        let func = match call.func.name() {
            "count" => sum_udaf(),
            "sum" if is_exact => Arc::clone(&call.func),
            "min" | "max" => Arc::clone(&call.func),
            _ => return None,
        };
        let is_plain = !call.params.distinct && call.params.order_by.is_empty();
        is_plain.then(|| {
            let plain = AggregateFunction::new_udf(func, vec![column], false, None, Vec::new(), None);
            Expr::AggregateFunction(plain)
        })
    }
}
