//! Aggregates that group by codes.

use super::functions::{CodesTogether, text_of};
use super::{code_name, texts};
use crate::joins::rows::CachedRows;
use crate::joins::substitute::is_same;
use datafusion::arrow::array::ArrayRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan,
};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{OptimizerContext, OptimizerRule};
use std::sync::Arc;

/// The plan with its aggregates over cached rows grouping by codes, where their keys have some.
pub(in crate::joins) fn grouped_by_codes(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let grouped = plan.clone().transform_up(|node| match &node {
        LogicalPlan::Aggregate(aggregate) => Ok(match grouped(aggregate)? {
            Some(grouped) => Transformed::yes(grouped),
            None => Transformed::no(node),
        }),
        _ => Ok(Transformed::no(node)),
    })?;
    if !grouped.transformed {
        return Ok(grouped.data);
    }
    // Texts that nobody needs any more would be filtered and handed on.
    Ok(OptimizeProjections::new().rewrite(grouped.data, &OptimizerContext::new())?.data)
}

/// A plan that gives what one has given, and the codes of one of its columns.
struct Coded {
    plan: LogicalPlan,
    /// Where it gives the codes.
    place: usize,
    texts: ArrayRef,
}

impl Coded {
    /// The column of the codes; `None` if another one has its name.
    fn column(&self) -> Option<Column> {
        let schema = self.plan.schema();
        let column = Column::from(schema.qualified_field(self.place));
        (schema.maybe_index_of_column(&column) == Some(self.place)).then_some(column)
    }
}

struct Key {
    /// Its place among the keys.
    place: usize,
    codes: Column,
    texts: ArrayRef,
    nullable: bool,
}

fn grouped(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let (mut input, mut coded) = (aggregate.input.as_ref().clone(), Vec::new());
    for (place, key) in aggregate.group_expr.iter().enumerate() {
        if let Expr::Column(column) = key.clone().unalias()
            && let Some(found) = with_codes(&input, &column)?
            && let Some(codes) = found.column()
        {
            let Coded { plan, texts, .. } = found;
            let nullable = aggregate.schema.field(place).is_nullable();
            coded.push(Key { place, codes, texts, nullable });
            input = plan;
        }
    }
    if coded.is_empty() {
        return Ok(None);
    }
    let together = CodesTogether::new(coded.iter().map(|key| key.texts.len())).filter(|_| coded.len() > 1);
    let columns = coded.iter().map(|key| Expr::Column(key.codes.clone()));
    // Several codes are one number: grouping by one key is faster than by two.
    let mut keys = match &together {
        Some(together) => vec![together.together().call(columns.collect())],
        None => columns.collect(),
    };
    let codes = keys.len();
    let others = aggregate.group_expr.iter().enumerate();
    let others = others.filter(|(place, _)| coded.iter().all(|key| key.place != *place));
    keys.extend(others.map(|(_, key)| key.clone()));
    let by_codes = Aggregate::try_new(Arc::new(input), keys, aggregate.aggr_expr.clone())?;

    let given = |place: usize| Expr::Column(Column::from(by_codes.schema.qualified_field(place)));
    // What is neither a code nor a text stands in the same order as before.
    let mut rest = (codes..by_codes.schema.fields().len()).map(given);
    let mut outputs = Vec::with_capacity(aggregate.schema.fields().len());
    for (place, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let output = match coded.iter().position(|key| key.place == place) {
            Some(at) => {
                let Some(Key { texts, nullable, .. }) = coded.get(at) else { return Ok(None) };
                let code = match &together {
                    Some(together) => together.apart(at, *nullable).call(vec![given(0)]),
                    None => given(at),
                };
                let text = text_of(Arc::clone(texts)).call(vec![code]);
                text.alias_qualified(qualifier.cloned(), field.name())
            }
            None => match rest.next() {
                Some(output) => output,
                None => return Ok(None),
            },
        };
        outputs.push(output);
    }
    let by_codes = LogicalPlanBuilder::new(LogicalPlan::Aggregate(by_codes)).project(outputs)?.build()?;
    Ok(is_same(&aggregate.schema, by_codes.schema()).then_some(by_codes))
}

/// The plan with the codes of a column, if it hands that on as it is from cached rows.
fn with_codes(plan: &LogicalPlan, column: &Column) -> Result<Option<Coded>> {
    match plan {
        LogicalPlan::TableScan(scan) => scanned(scan, column),
        LogicalPlan::Filter(filter) => {
            let coded = with_codes(&filter.input, column)?;
            above(coded, |input, _| {
                let filter = Filter::try_new(filter.predicate.clone(), Arc::new(input.plan))?;
                Ok((LogicalPlan::Filter(filter), input.place))
            })
        }
        LogicalPlan::Projection(projection) => {
            let place = projection.schema.maybe_index_of_column(column);
            let Some(expr) = place.and_then(|place| projection.expr.get(place)) else { return Ok(None) };
            let Expr::Column(inner) = expr.clone().unalias() else { return Ok(None) };
            let coded = with_codes(&projection.input, &inner)?;
            above(coded, |input, codes| {
                let (mut exprs, column) = (projection.expr.clone(), Expr::Column(codes));
                let place = exprs.iter().position(|expr| *expr == column).unwrap_or(exprs.len());
                if place == exprs.len() {
                    exprs.push(column);
                }
                let projection = Projection::try_new(exprs, Arc::new(input.plan))?;
                Ok((LogicalPlan::Projection(projection), place))
            })
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some(place) = alias.schema.maybe_index_of_column(column) else { return Ok(None) };
            let inner = Column::from(alias.input.schema().qualified_field(place));
            let coded = with_codes(&alias.input, &inner)?;
            above(coded, |input, _| {
                let named = SubqueryAlias::try_new(Arc::new(input.plan), alias.alias.clone())?;
                Ok((LogicalPlan::SubqueryAlias(named), input.place))
            })
        }
        _ => Ok(None),
    }
}

/// A node above an input that gives codes, in the column that `node` is told of.
fn above(
    coded: Option<Coded>,
    node: impl FnOnce(Coded, Column) -> Result<(LogicalPlan, usize)>,
) -> Result<Option<Coded>> {
    let Some((coded, codes)) = coded.and_then(|coded| coded.column().map(|codes| (coded, codes))) else {
        return Ok(None);
    };
    let texts = Arc::clone(&coded.texts);
    let (plan, place) = node(coded, codes)?;
    Ok(Some(Coded { plan, place, texts }))
}

fn scanned(scan: &TableScan, column: &Column) -> Result<Option<Coded>> {
    let provider = source_as_provider(&scan.source)?;
    let Some(rows) = provider.downcast_ref::<CachedRows>() else { return Ok(None) };
    let (Some(texts), Some(name)) = (texts(rows.loaded(), &column.name), code_name(&column.name)) else {
        return Ok(None);
    };
    let place = scan.source.schema().index_of(&name)?;
    let mut places =
        scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect());
    let among = places.iter().position(|other| *other == place).unwrap_or(places.len());
    if among == places.len() {
        places.push(place);
    }
    let builder = LogicalPlanBuilder::scan_with_filters_fetch(
        scan.table_name.clone(),
        Arc::clone(&scan.source),
        Some(places),
        scan.filters.clone(),
        scan.fetch,
    )?;
    Ok(Some(Coded { plan: builder.build()?, place: among, texts }))
}
