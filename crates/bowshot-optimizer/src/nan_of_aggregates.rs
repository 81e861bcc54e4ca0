//! Aggregates and window functions make a NaN with a negative sign of infinities: their results get the one NaN before anything
//! reads them ([`bowshot_kernels::nan`]).

use crate::node_rule::Replacement;
use crate::windows::partition_totals::PartitionTotalsExec;
use bowshot_kernels::nan;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateOutputMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use std::sync::Arc;

/// Functions that give one of the values that they are given.
const CHOOSING: [&str; 11] = [
    "any_value",
    "arg_max",
    "arg_min",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
];

pub(super) fn one_nan(node: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Replacement {
    let computed = computed(node.as_ref());
    if computed.is_empty() {
        return Ok(None);
    }
    with_one_nan(Arc::clone(node), &computed, &Arc::new(config.clone())).map(Some)
}

/// The columns of a node that are computed of several floating-point numbers.
fn computed(node: &dyn ExecutionPlan) -> Vec<usize> {
    let (first, names): (usize, Vec<&str>) = if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        if aggregate.mode().output_mode() == AggregateOutputMode::Partial {
            return Vec::new();
        }
        let names = aggregate.aggr_expr().iter().map(|function| function.fun().name());
        (node.schema().fields().len().saturating_sub(names.len()), names.collect())
    } else if let Some(totals) = node.downcast_ref::<PartitionTotalsExec>() {
        let names = totals.functions().iter().map(|function| function.fun().name());
        (node.schema().fields().len().saturating_sub(names.len()), names.collect())
    } else {
        let functions = match node.downcast_ref::<WindowAggExec>() {
            Some(window) => window.window_expr(),
            None => match node.downcast_ref::<BoundedWindowAggExec>() {
                Some(window) => window.window_expr(),
                None => return Vec::new(),
            },
        };
        let names = functions.iter().map(|function| function.name());
        (node.schema().fields().len().saturating_sub(names.len()), names.collect())
    };
    let schema = node.schema();
    let is_computed = |(at, name): (usize, &str)| {
        let function = name.split('(').next().unwrap_or(name);
        let is_floating = schema.fields().get(at).is_some_and(|field| field.data_type().is_floating());
        (is_floating && !CHOOSING.contains(&function)).then_some(at)
    };
    names.into_iter().enumerate().map(|(at, name)| (first + at, name)).filter_map(is_computed).collect()
}

fn with_one_nan(
    node: Arc<dyn ExecutionPlan>,
    computed: &[usize],
    config: &Arc<ConfigOptions>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let function = nan::function();
    let schema = node.schema();
    let columns = schema.fields().iter().enumerate().map(|(at, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let expr: Arc<dyn PhysicalExpr> = if computed.contains(&at) {
            let (name, field) = (function.name(), Arc::clone(field));
            Arc::new(ScalarFunctionExpr::new(
                name,
                Arc::clone(&function),
                vec![column],
                field,
                Arc::clone(config),
            ))
        } else {
            column
        };
        ProjectionExpr { expr, alias: field.name().clone() }
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), node)?))
}
