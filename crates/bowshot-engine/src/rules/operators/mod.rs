//! Operators that DataFusion has, but with other values than SQL gives them: dates and intervals, comparisons of intervals,
//! quotients of decimals, lists of floating-point numbers, and lists whose intersection forgets that the value may be NULL.
//! They are rewritten before types are settled, when what was written can still be told.

mod accuracy;
mod apart;
mod booleans;
mod chars;
mod dates;
mod floats;
mod functions;
mod interval_groups;
mod interval_windows;
mod intervals;
mod lists;
mod nan;
mod numbers;
mod order;
mod parameters;
mod untyped;
mod uuids;

use super::expressions::{in_node, type_of};
use apart::Place;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

pub(super) use booleans::BooleanLiterals;
pub(super) use floats::of_one_kind;
pub(super) use intervals::IntervalPlanner;
pub(super) use lists::BothZeros;
pub(super) use nan::OnlyOneNan;
pub(super) use numbers::is_division;
pub(crate) use parameters::{ParameterOperands, is_glued};
pub(super) use untyped::UntypedTexts;
pub(super) use uuids::UuidPlanner;

/// The functions that operators become, for those that look them up by name.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    functions::all()
        .iter()
        .map(Arc::clone)
        .chain(numbers::functions())
        .chain([apart::function(), bowshot_kernels::nan::function()])
        .collect()
}

/// See the module.
#[derive(Debug)]
pub(super) struct OperatorsOfSql;

impl AnalyzerRule for OperatorsOfSql {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut changed = false;
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Union(union) => {
                let union = floats::union(union)?;
                changed |= union.transformed;
                Ok(union)
            }
            node => {
                let Transformed { data: node, transformed, .. } = interval_groups::by_length(node)?;
                if transformed {
                    changed = true;
                    // The groups are rewritten below what gives them their names.
                    let rewritten = node.map_children(|below| in_node(below, in_expression, &mut changed))?;
                    return rewritten.data.recompute_schema().map(Transformed::yes);
                }
                let takes_rows =
                    matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_) | LogicalPlan::TableScan(_));
                let mut rewritten =
                    in_node(node, if takes_rows { in_condition } else { in_expression }, &mut changed)?;
                match &mut rewritten.data {
                    LogicalPlan::Sort(sort) => {
                        order::by(sort);
                        rewritten.transformed = true;
                    }
                    LogicalPlan::Join(join) => {
                        rewritten.transformed |= intervals::keys(join) | uuids::keys(join);
                    }
                    LogicalPlan::Aggregate(aggregate) => rewritten.transformed |= order::distinct(aggregate),
                    _ => {}
                }
                Ok(rewritten)
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "operators_of_sql"
    }
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    apart::kept_apart(expr, Place::Value)?
        .transform_data(|expr| expr.transform_up(|node| in_part(node, schema)))
}

/// The same for what takes rows.
fn in_condition(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    apart::kept_apart(expr, Place::Rows)?
        .transform_data(|expr| expr.transform_up(|node| in_part(node, schema)))
}

fn in_part(node: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match node {
        Expr::BinaryExpr(binary) => {
            chars::compared(binary, schema)?.transform_data(|binary| in_binary(binary, schema))
        }
        Expr::Between(between) => {
            let between = chars::between(between, schema)?;
            let between = between.transform_data(|between| Ok(uuids::between(between, schema)))?;
            let between = between.transform_data(|between| Ok(floats::between(between, schema)))?;
            between.transform_data(|between| Ok(dates::between(between, schema)))
        }
        Expr::InList(list) => {
            let list = chars::in_list(list, schema)?;
            let list = list.transform_data(|list| Ok(uuids::in_list(list, schema)))?;
            let list = list.transform_data(|list| Ok(floats::in_list(list, schema)))?;
            let list = list.transform_data(|list| Ok(intervals::in_list(list, schema)))?;
            list.transform_data(|list| Ok(lists::columns_apart(list)))
        }
        Expr::InSubquery(mut inside) => {
            let changed = intervals::beside_subquery(&mut inside.expr, &mut inside.subquery, schema)?;
            let inside = Expr::InSubquery(inside);
            Ok(if changed { Transformed::yes(inside) } else { Transformed::no(inside) })
        }
        Expr::SetComparison(mut set) => {
            let changed = intervals::beside_subquery(&mut set.expr, &mut set.subquery, schema)?;
            let set = Expr::SetComparison(set);
            Ok(if changed { Transformed::yes(set) } else { Transformed::no(set) })
        }
        Expr::Case(case) => Ok(floats::case(case, schema).update_data(Expr::Case)),
        Expr::ScalarFunction(mut call) => {
            let changed = floats::arguments(&mut call.args, schema);
            let call = Expr::ScalarFunction(call);
            Ok(if changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        Expr::WindowFunction(mut call) => {
            accuracy::check(call.fun.name(), &call.params.args)?;
            let changed = floats::arguments(&mut call.params.args, schema);
            let changed = order::of_window(&mut call.params, schema) || changed;
            let changed = interval_windows::by_length(&mut call, schema) || changed;
            let call = Expr::WindowFunction(call);
            Ok(if changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        Expr::Literal(value, metadata) => Ok(numbers::literal(value, metadata)),
        Expr::Cast(cast) => Ok(numbers::cast(cast, schema)),
        Expr::AggregateFunction(function) => {
            accuracy::check(function.func.name(), &function.params.args)?;
            let function = interval_groups::function(function, schema);
            function.transform_data(|function| Ok(of_durations(function)))
        }
        node => Ok(Transformed::no(node)),
    }
}

fn in_binary(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((left, right)) = types(&binary.left, &binary.right, schema) else {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    };
    floats::beside(binary, (&left, &right)).transform_data(|binary| {
        if binary.op.supports_propagation() {
            let dates = dates::compared(binary, schema);
            return dates.transform_data(|expr| Ok(intervals::compared(expr, schema)));
        }
        match dates::arithmetic(binary, (&left, &right)) {
            Transformed { data: Expr::BinaryExpr(binary), transformed: false, .. } => {
                Ok(numbers::quotient(binary, (&left, &right)))
            }
            dates => Ok(dates),
        }
    })
}

fn types(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(DataType, DataType)> {
    Some((type_of(left, schema).ok()?, type_of(right, schema).ok()?))
}

/// Aggregates know durations better than intervals: those of differences take the differences as they are.
fn of_durations(mut function: AggregateFunction) -> Transformed<Expr> {
    let mut changed = false;
    for argument in &mut function.params.args {
        if let Some(duration) = functions::duration_within(argument) {
            *argument = duration;
            changed = true;
        }
    }
    let function = Expr::AggregateFunction(function);
    if changed { Transformed::yes(function) } else { Transformed::no(function) }
}
