//! Analyzer rules: the meaning of plans before they are optimized, where DataFusion's differs from SQL's. Sessions with a scratch
//! catalog are plain DataFusion.

use super::subqueries::{outer_types, unnest};
use super::window_marks::mark;
use super::{frame_exclusion, frame_offsets, integers, null_masking, operators, set_operations_all};
use bowshot_sql::rewrite::{EXCLUDING, FRAME_OFFSET};
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::{AnalyzerRule, analyzer::type_coercion::TypeCoercion};
use std::sync::Arc;

/// The state to be built with our rules of analysis, and with the functions that these put into plans.
pub fn with_our_meaning(mut state: SessionStateBuilder) -> SessionStateBuilder {
    state.scalar_functions().get_or_insert_default().extend(integers::functions());
    state.scalar_functions().get_or_insert_default().extend(operators::functions());
    state.scalar_functions().get_or_insert_default().extend(null_masking::functions());
    state.scalar_functions().get_or_insert_default().push(mark(EXCLUDING, 1));
    state.scalar_functions().get_or_insert_default().push(mark(FRAME_OFFSET, 2));
    let planners = state.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(operators::IntervalPlanner));
    planners.insert(0, Arc::new(operators::UuidPlanner));
    planners.insert(0, Arc::new(operators::UntypedTexts));
    planners.insert(0, Arc::new(integers::IntegerLiterals));
    planners.insert(0, Arc::new(operators::BooleanLiterals));
    planners.insert(0, Arc::new(operators::ParameterOperands::AS_POSTGRES));
    state.with_analyzer_rules(rules())
}

type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

/// The meaning that a rule gives to a plan.
type Analyze = fn(LogicalPlan, &ConfigOptions) -> Result<LogicalPlan>;

#[derive(Debug)]
struct PlanRule {
    name: &'static str,
    analyze: Analyze,
}

impl AnalyzerRule for PlanRule {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        (self.analyze)(plan, config)
    }

    bowshot_api::getters!(name: &str);
}

fn plan_rule(name: &'static str, analyze: Analyze) -> Rule {
    Arc::new(PlanRule { name, analyze })
}

fn rules() -> Vec<Rule> {
    let types = TypeCoercion::new();
    let mut rules = vec![
        plan_rule("mysql_lists", operators::mysql_lists),
        plan_rule("sql_casts", bowshot_types::sql_casts),
        plan_rule("without_variant_order", bowshot_types::without_variant_order),
    ];
    for rule in Analyzer::new().rules {
        if rule.name() == types.name() {
            rules.push(plan_rule("frame_offsets", frame_offsets::with_offsets));
            rules.push(plan_rule("counted_copies", set_operations_all::counted_copies));
            rules.push(plan_rule("operators_of_sql", operators::operators_of_sql));
            rules.push(plan_rule("meeting_times", bowshot_types::meeting_times));
            rules.push(plan_rule("outer_types", outer_types));
            rules.push(plan_rule("texts_of_times", bowshot_types::texts_of_times));
            rules.push(plan_rule("integers_in_range", integers::integers_in_range));
            rules.push(plan_rule("both_zeros", operators::both_zeros));
            rules.push(plan_rule("only_one_nan", operators::only_one_nan));
            rules.push(plan_rule("nothing_below_nulls", null_masking::nothing_below_nulls));
        } else {
            rules.push(rule);
        }
    }
    rules.push(plan_rule("excluded_rows", frame_exclusion::without_excluded_rows));
    // Last, so that all types are settled.
    rules.push(plan_rule("unnest_subqueries", unnest));
    rules
}
