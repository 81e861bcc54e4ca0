//! Filter pushdown moves conditions without columns below every aggregate. One without groups, or with grouping sets, gives a row
//! even without input: `SELECT … FROM (SELECT count(*) FROM t) WHERE 'a' = 'b'` has no rows, and would have one. Here such
//! conditions are decided above the aggregate, or stay there.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{EmptyRelation, Expr, Filter, LogicalPlan};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule that takes conditions down.
pub(super) const FILTERS: &str = "push_down_filter";

pub(super) fn decided_above(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(filter) = &plan else { return rule.rewrite(plan, config) };
    let (conditions, input) = conditions(filter);
    let (constant, others): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|condition| condition.column_refs().is_empty());
    if constant.is_empty() || !has_a_row_of_none(input) {
        return rule.rewrite(plan, config);
    }
    let Some(holds) = decided(constant, config)? else { return Ok(Transformed::no(plan)) };
    let rows = if holds {
        LogicalPlan::clone(input)
    } else {
        let schema = Arc::clone(input.schema());
        LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema })
    };
    let rest = if holds { conjunction(others) } else { None };
    let Some(rest) = rest else { return Ok(Transformed::yes(rows)) };
    let mut rewritten = rule.rewrite(LogicalPlan::Filter(Filter::try_new(rest, Arc::new(rows))?), config)?;
    rewritten.transformed = true;
    Ok(rewritten)
}

/// The conditions of all filters down to what is none.
fn conditions(filter: &Filter) -> (Vec<Expr>, &Arc<LogicalPlan>) {
    let mut conditions = split_conjunction_owned(filter.predicate.clone());
    let mut input = &filter.input;
    while let LogicalPlan::Filter(below) = input.as_ref() {
        conditions.extend(split_conjunction_owned(below.predicate.clone()));
        input = &below.input;
    }
    (conditions, input)
}

fn has_a_row_of_none(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate)
        if aggregate.group_expr.is_empty()
            || aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))))
}

/// Whether conditions without columns hold; `None` for what is only known when the query runs, such as a subquery.
fn decided(conditions: Vec<Expr>, config: &dyn OptimizerConfig) -> Result<Option<bool>> {
    let Some(condition) = conjunction(conditions) else { return Ok(Some(true)) };
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(config.options())
        .with_query_execution_start_time(config.query_execution_start_time())
        .build();
    Ok(match ExprSimplifier::new(context).simplify(condition)? {
        Expr::Literal(value, _) => Some(value == ScalarValue::Boolean(Some(true))),
        _ => None,
    })
}
