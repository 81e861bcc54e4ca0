//! Physical rules that are functions, and what those have in common that look at one operator after the other, from the leaves up.

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::projection::ProjectionExec;
use std::fmt;
use std::sync::Arc;

pub(super) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

type Optimized = Result<Arc<dyn ExecutionPlan>>;

/// What comes in the place of an operator, if anything.
pub(super) type Replacement = Result<Option<Arc<dyn ExecutionPlan>>>;

pub(super) type Change = fn(&Arc<dyn ExecutionPlan>, &ConfigOptions) -> Replacement;

struct FunctionRule<F> {
    name: String,
    checks_schema: bool,
    optimize: F,
}

impl<F> fmt::Debug for FunctionRule<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FunctionRule").field(&self.name).finish()
    }
}

impl<F> PhysicalOptimizerRule for FunctionRule<F>
where
    F: Fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Optimized + 'static,
{
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Optimized {
        (self.optimize)(plan, config)
    }

    bowshot_api::getters!(name: &str);

    fn schema_check(&self) -> bool {
        self.checks_schema
    }
}

pub(super) fn plan_rule(
    name: &str,
    optimize: impl Fn(Arc<dyn ExecutionPlan>, &ConfigOptions) -> Optimized + Send + Sync + 'static,
) -> Rule {
    Arc::new(FunctionRule { name: name.to_owned(), checks_schema: true, optimize })
}

/// The rule with this name that changes one operator after the other.
pub(super) fn node_rule(name: &str, change: Change) -> Rule {
    plan_rule(name, move |plan, config| {
        plan.transform_up(|node| {
            let changed = change(&node, config)?;
            Ok(changed.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    })
}

/// The rules, those of these names run by a function, which may give them another plan.
pub(super) fn run_by(
    rules: Vec<Rule>,
    names: &[&str],
    run: impl Fn(&dyn PhysicalOptimizerRule, Arc<dyn ExecutionPlan>, &ConfigOptions) -> Optimized
    + Clone
    + Send
    + Sync
    + 'static,
) -> Vec<Rule> {
    let wrapped = |rule: Rule| -> Rule {
        if !names.contains(&rule.name()) {
            return rule;
        }
        let (name, checks_schema, run) = (rule.name().to_owned(), rule.schema_check(), run.clone());
        let optimize = move |plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions| run(&*rule, plan, config);
        Arc::new(FunctionRule { name, checks_schema, optimize })
    };
    rules.into_iter().map(wrapped).collect()
}

/// The rules, with another one behind each of that name.
pub(super) fn behind(rules: Vec<Rule>, name: &str, other: fn() -> Rule) -> Vec<Rule> {
    let with_other = |rule: Rule| {
        let other = (rule.name() == name).then(other);
        std::iter::once(rule).chain(other)
    };
    rules.into_iter().flat_map(with_other).collect()
}

type Changed = Result<Transformed<Arc<dyn PhysicalExpr>>>;

pub(super) fn change_projection(
    projection: &ProjectionExec,
    change: impl Fn(Arc<dyn PhysicalExpr>, &Schema) -> Changed,
) -> Result<Option<ProjectionExec>> {
    let schema = projection.input().schema();
    let mut changed = false;
    let mut expressions = Vec::with_capacity(projection.expr().len());
    for ProjectionExpr { expr, alias } in projection.expr() {
        let new = change(Arc::clone(expr), schema.as_ref())?;
        changed |= new.transformed;
        expressions.push(ProjectionExpr { expr: new.data, alias: alias.clone() });
    }
    if !changed {
        return Ok(None);
    }
    let (input, schema) = (Arc::clone(projection.input()), projection.schema());
    ProjectionExec::try_new_with_schema_metadata(expressions, input, &schema).map(Some)
}

/// The aggregation with changed arguments, if any is. Functions of which DataFusion would lose something on the way stay.
pub(super) fn change_arguments(
    aggregate: &AggregateExec,
    change: impl Fn(Arc<dyn PhysicalExpr>, &Schema) -> Changed,
) -> Replacement {
    // The others read states, and have the arguments for show.
    if aggregate.mode().input_mode() != AggregateInputMode::Raw {
        return Ok(None);
    }
    let schema = aggregate.input_schema();
    let mut changed = false;
    let mut functions = Vec::with_capacity(aggregate.aggr_expr().len());
    for function in aggregate.aggr_expr() {
        let arguments = function.expressions().into_iter().map(|argument| change(argument, schema.as_ref()));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let plain = !function.is_reversed() && function.order_bys().is_empty();
        let new = if plain && arguments.iter().any(|argument| argument.transformed) {
            let arguments = arguments.into_iter().map(|argument| argument.data).collect();
            function.with_new_expressions(arguments, Vec::new()).map(Arc::new)
        } else {
            None
        };
        changed |= new.is_some();
        functions.push(new.unwrap_or_else(|| Arc::clone(function)));
    }
    Ok(changed.then(|| Arc::new(aggregate.with_new_aggr_exprs(functions)) as Arc<_>))
}

/// The call of an aggregate function by another function, or with other arguments. It keeps its name, but no order of rows.
pub(super) fn call_again(
    call: &AggregateFunctionExpr,
    function: Arc<AggregateUDF>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
) -> Result<Arc<AggregateFunctionExpr>> {
    let new = AggregateExprBuilder::new(function, arguments)
        .schema(schema)
        .alias(call.name())
        .with_ignore_nulls(call.ignore_nulls())
        .with_distinct(call.is_distinct());
    let new = match call.human_display() {
        Some(shown) => new.human_display(shown),
        None => new,
    };
    new.build().map(Arc::new)
}
