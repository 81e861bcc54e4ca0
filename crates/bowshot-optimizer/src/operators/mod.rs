//! Operators whose values in DataFusion differ from SQL: dates and intervals, comparisons of intervals, quotients of decimals,
//! lists of floating-point numbers, and lists whose intersection ignores that the value may be NULL. They are rewritten before
//! types are coerced, while it can still be seen what was written.

mod accuracy;
mod booleans;
mod chars;
mod dates;
mod distinct_values;
mod enum_functions;
mod enums;
mod floats;
mod functions;
mod interval_groups;
mod interval_windows;
mod intervals;
mod keys;
mod lists;
mod mysql_numbers;
mod nan;
mod numbers;
mod order;
mod parameters;
mod separate_lists;
mod untyped;
mod uuids;

use super::expressions::{in_node, type_of};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Case, Distinct, Expr, LogicalPlan, ScalarUDF};
use separate_lists::Place;
use std::sync::Arc;

pub(super) use booleans::BooleanLiterals;
pub use enums::compared_by_labels;
pub(super) use floats::of_one_kind;
pub(super) use intervals::IntervalPlanner;
pub(super) use lists::{BothZeros, both_zeros};
pub use mysql_numbers::MySqlOperands;
pub(super) use mysql_numbers::mysql_lists;
pub(super) use nan::only_one_nan;
pub(super) use numbers::is_division;
pub use parameters::{ParameterOperands, is_glued};
pub(super) use untyped::UntypedTexts;
pub(super) use uuids::UuidPlanner;

/// The functions that operators become, for those that look them up by name.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    functions::all()
        .iter()
        .map(Arc::clone)
        .chain(numbers::functions())
        .chain([mysql_numbers::function()])
        .chain(enum_functions::all())
        .chain([separate_lists::function(), bowshot_functions::jsonb_key()])
        .chain([bowshot_kernels::nan::function(), bowshot_kernels::nan::key_function()])
        .collect()
}

pub(super) fn operators_of_sql(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    // To others a text stays a text beside other answers of a CASE, or other rows of a union.
    let postgres = config.sql_parser.dialect == Dialect::PostgreSQL;
    let mut changed = false;
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Union(union) => {
            let written = chars::in_union(union)?.transform_data(enums::in_union)?;
            let typed = if postgres { written.transform_data(untyped::in_union)? } else { written };
            let mut union = floats::union(typed.data)?;
            union.transformed |= typed.transformed;
            changed |= union.transformed;
            Ok(union)
        }
        node => {
            let node = if postgres { in_node(node, untyped::in_choices, &mut changed)?.data } else { node };
            let Transformed { data: node, transformed, .. } = interval_groups::by_key(node)?;
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
                    rewritten.transformed |= keys::of_join(join) | uuids::keys(join);
                }
                LogicalPlan::Aggregate(aggregate) => rewritten.transformed |= order::distinct(aggregate),
                LogicalPlan::Distinct(Distinct::On(distinct)) => {
                    rewritten.transformed |= order::distinct_on(distinct);
                }
                _ => {}
            }
            Ok(rewritten)
        }
    })
    .data()
}

fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    separate_lists::kept_apart(expr, Place::Value)?
        .transform_data(|expr| expr.transform_up(|node| in_part(node, schema)))
}

/// The same for what takes rows.
fn in_condition(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    separate_lists::kept_apart(expr, Place::Rows)?
        .transform_data(|expr| expr.transform_up(|node| in_part(node, schema)))
}

fn in_part(node: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match node {
        Expr::BinaryExpr(binary) => {
            let binary = chars::compared(binary, schema)?;
            let binary = binary.transform_data(|binary| enums::compared(binary, schema))?;
            let binary = binary.transform_data(|binary| Ok(keys::compared(binary, schema)))?;
            binary.transform_data(|binary| in_binary(binary, schema))
        }
        Expr::Between(between) => {
            let between = chars::between(between, schema)?;
            let between = between.transform_data(|between| Ok(untyped::between(between, schema)))?;
            let between = between.transform_data(|between| enums::between(between, schema))?;
            let between = between.transform_data(|between| Ok(uuids::between(between, schema)))?;
            let between = between.transform_data(|between| Ok(floats::between(between, schema)))?;
            let between = between.transform_data(|between| Ok(keys::between(between, schema)))?;
            let between = between.transform_data(|between| Ok(intervals::between(between, schema)))?;
            between.transform_data(|between| Ok(dates::between(between, schema)))
        }
        Expr::InList(list) => {
            enums::check_list(&list, schema)?;
            let list = chars::in_list(list, schema)?;
            let list = list.transform_data(|list| Ok(uuids::in_list(list, schema)))?;
            let list = list.transform_data(|list| Ok(floats::in_list(list, schema)))?;
            let list = list.transform_data(|list| Ok(keys::in_list(list, schema)))?;
            let list = list.transform_data(|list| Ok(intervals::in_list(list, schema)))?;
            list.transform_data(|list| Ok(lists::columns_apart(list)))
        }
        Expr::InSubquery(mut inside) => {
            let changed = keys::beside_subquery(&mut inside.expr, &mut inside.subquery, schema)?
                || uuids::beside_subquery(&mut inside.expr, &mut inside.subquery, schema)?;
            Ok(Transformed::new_transformed(Expr::InSubquery(inside), changed))
        }
        Expr::SetComparison(mut set) => {
            let changed = enums::beside_subquery(&mut set, schema)?
                || keys::beside_subquery(&mut set.expr, &mut set.subquery, schema)?
                || uuids::beside_subquery(&mut set.expr, &mut set.subquery, schema)?;
            Ok(Transformed::new_transformed(Expr::SetComparison(set), changed))
        }
        Expr::Case(mut case) => {
            let changed = in_case(&mut case, schema)?;
            let mut case = enums::case(case, schema)?;
            case.transformed |= changed;
            Ok(case)
        }
        Expr::ScalarFunction(call) => in_call(call, schema),
        Expr::WindowFunction(mut call) => {
            accuracy::check(call.fun.name(), &call.params.args)?;
            let changed = floats::arguments(&mut call.params.args, schema);
            let changed = order::of_window(&mut call.params, schema) || changed;
            let changed = interval_windows::by_length(&mut call, schema) || changed;
            Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
        }
        Expr::Literal(value, metadata) => Ok(numbers::literal(value, metadata)),
        Expr::Cast(cast) => Ok(numbers::cast(cast, schema)),
        Expr::AggregateFunction(mut function) => {
            accuracy::check(function.func.name(), &function.params.args)?;
            enums::check_aggregate(&function, schema)?;
            let ordered = order::of_aggregate(&mut function, schema);
            let mut function = interval_groups::function(function, schema);
            function.transformed |= ordered;
            let function = function.transform_data(|function| Ok(of_durations(function)))?;
            function.transform_data(|function| Ok(chars::extreme(function, schema)))
        }
        node => Ok(Transformed::no(node)),
    }
}

/// Whether a function gives one of the values that it takes.
fn is_choice(function: &str) -> bool {
    matches!(function, "coalesce" | "nvl" | "ifnull" | "nullif" | "greatest" | "least")
}

fn in_call(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(expr) = uuids::told_type(&call, schema).or_else(|| intervals::chosen(&call, schema)) {
        return Ok(Transformed::yes(expr));
    }
    if let Some(expr) = enums::called(&call, schema)? {
        return Ok(Transformed::yes(expr));
    }
    let mut changed = false;
    if is_choice(call.name()) {
        changed |= uuids::among_choices(call.args.iter_mut().collect(), schema);
        uuids::check_choices(&call, schema)?;
    }
    if call.name() == "nullif" {
        changed |= chars::among(call.args.iter_mut().collect(), schema)?;
    }
    changed |= uuids::quantified(&mut call, schema);
    changed |= intervals::sought(&mut call, schema);
    changed |= keys::sought(&mut call, schema);
    changed |= floats::arguments(&mut call.args, schema);
    Ok(Transformed::new_transformed(Expr::ScalarFunction(call), changed))
}

/// The values that a CASE compares, and those that it gives: each kind meets among itself. Says whether that changed any.
fn in_case(case: &mut Case, schema: &DFSchema) -> Result<bool> {
    let answers = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
    let mut answers: Vec<&mut Expr> = answers.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect();
    let mut changed = uuids::among_choices(answers.iter_mut().map(|answer| &mut **answer).collect(), schema);
    changed |= floats::together(answers.into_iter(), schema);
    if let Some(base) = &mut case.expr {
        let tests = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
        let mut tests: Vec<&mut Expr> = std::iter::once(base.as_mut()).chain(tests).collect();
        changed |= uuids::among_choices(tests.iter_mut().map(|test| &mut **test).collect(), schema);
        changed |= chars::among(tests.iter_mut().map(|test| &mut **test).collect(), schema)?;
        changed |= intervals::lengths(tests.iter_mut().map(|test| &mut **test).collect(), schema);
        changed |= keys::nested_floats(tests.iter_mut().map(|test| &mut **test), schema);
        changed |= floats::together(tests.into_iter(), schema);
    }
    Ok(changed)
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
    Transformed::new_transformed(Expr::AggregateFunction(function), changed)
}
