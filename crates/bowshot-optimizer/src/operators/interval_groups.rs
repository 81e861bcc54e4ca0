//! Groups of intervals, JSONB and nested floating-point numbers: equal values, as a month and 30 days, are one group, which shows one
//! of its members. `min` and `max` of intervals go by length, those of an enumerated type by its labels.

use super::distinct_values;
use super::enums;
use super::functions::length_of;
use super::intervals::is_interval;
use super::keys::Key;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection};
use std::sync::Arc;

/// The node with its groups by their keys.
pub(super) fn by_key(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => aggregated(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) if has_key(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            aggregated(Aggregate::try_new(input, columns, Vec::new())?)
        }
        node => Ok(Transformed::no(node)),
    }
}

fn has_key(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| Key::is_of(field))
}

fn aggregated(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let in_sets = aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
    if in_sets || !has_key(&aggregate.schema) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = Arc::clone(aggregate.input.schema());
    let (mut groups, mut functions) = (Vec::new(), aggregate.aggr_expr.clone());
    let mut members: Vec<Option<usize>> = Vec::new();
    for expr in &aggregate.group_expr {
        let Some(key) = Key::of(expr, &schema) else {
            groups.push(expr.clone());
            members.push(None);
            continue;
        };
        let value = expr.clone().unalias();
        groups.push(key.call(value.clone()).alias(format!("__bowshot_key_{}", members.len())));
        let member = Expr::AggregateFunction(first(value, Vec::new()))
            .alias(format!("__bowshot_member_{}", members.len()));
        members.push(Some(functions.len()));
        functions.push(member);
    }
    if members.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let (all, count) = (aggregate.aggr_expr.len(), groups.len());
    let grouped = Aggregate::try_new(Arc::clone(&aggregate.input), groups, functions)?;
    let places = members.iter().enumerate().map(|(place, member)| member.map_or(place, |at| count + at));
    let places: Vec<usize> = places.chain((0..all).map(|at| count + at)).collect();
    let columns = places.into_iter().zip(aggregate.schema.iter());
    let columns = columns.map(|(place, (qualifier, field))| {
        let column = Expr::Column(Column::from(grouped.schema.qualified_field(place)));
        let is_same = grouped.schema.qualified_field(place).1.name() == field.name();
        if is_same { column } else { column.alias_qualified(qualifier.cloned(), field.name()) }
    });
    let columns: Vec<Expr> = columns.collect();
    let grouped = Arc::new(LogicalPlan::Aggregate(grouped));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, grouped)?)))
}

/// Aggregates that look at how long an interval is, or at what JSONB is.
pub(super) fn function(mut function: AggregateFunction, schema: &DFSchema) -> Transformed<AggregateFunction> {
    let [value] = function.params.args.as_slice() else { return Transformed::no(function) };
    let value = value.clone();
    match function.func.name() {
        "count" if function.params.distinct => {
            let Some(key) = key(value, schema) else { return Transformed::no(function) };
            function.params.args = vec![key];
            Transformed::yes(function)
        }
        name @ ("min" | "max") => {
            let length = is_interval(&value, schema).then(|| length_of(value.clone()));
            let Some(key) = length.or_else(|| enums::extreme_key(&value, schema)) else {
                return Transformed::no(function);
            };
            let mut extreme = first(value, vec![Sort::new(key, name == "min", false)]);
            extreme.params.filter = function.params.filter;
            Transformed::yes(extreme)
        }
        _ => match distinct_values::by_key(&mut function, schema) {
            true => Transformed::yes(function),
            false => Transformed::no(function),
        },
    }
}

/// The key of a value, or of a row of the keys of those that it is made of.
fn key(value: Expr, schema: &DFSchema) -> Option<Expr> {
    let mut value = value.unalias();
    let mut changed = false;
    if let Expr::ScalarFunction(row) = &mut value
        && row.func.name() == "struct"
    {
        for part in &mut row.args {
            if let Some(key) = Key::of(part, schema) {
                *part = key.call(std::mem::take(part));
                changed = true;
            }
        }
    }
    match Key::of(&value, schema) {
        Some(key) => Some(key.call(value)),
        None => changed.then_some(value),
    }
}

/// The first of the values that are there.
fn first(value: Expr, order_by: Vec<Sort>) -> AggregateFunction {
    let treatment = Some(NullTreatment::IgnoreNulls);
    AggregateFunction::new_udf(first_value_udaf(), vec![value], false, None, order_by, treatment)
}
