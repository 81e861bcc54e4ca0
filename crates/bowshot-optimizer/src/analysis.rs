//! Analyzer rules: the meaning of plans before they are optimized, where DataFusion's differs from SQL's. Sessions with a scratch
//! catalog are plain DataFusion.

use super::subqueries::{OuterTypes, Unnest};
use super::{excluded_rows, integers, null_masking, operators, set_operations_all};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::{AnalyzerRule, analyzer::type_coercion::TypeCoercion};
use std::sync::Arc;

/// The state to be built with our rules of analysis, and with the functions that these put into plans.
pub fn with_our_meaning(mut state: SessionStateBuilder) -> SessionStateBuilder {
    state.scalar_functions().get_or_insert_default().extend(integers::functions());
    state.scalar_functions().get_or_insert_default().extend(operators::functions());
    state.scalar_functions().get_or_insert_default().extend(null_masking::functions());
    state.scalar_functions().get_or_insert_default().push(excluded_rows::mark());
    let planners = state.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(operators::IntervalPlanner));
    planners.insert(0, Arc::new(operators::UuidPlanner));
    planners.insert(0, Arc::new(operators::UntypedTexts));
    planners.insert(0, Arc::new(integers::IntegerLiterals));
    planners.insert(0, Arc::new(operators::BooleanLiterals));
    planners.insert(0, Arc::new(operators::ParameterOperands::AS_POSTGRES));
    state.with_analyzer_rules(rules())
}

fn rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let types = TypeCoercion::new();
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> =
        vec![Arc::new(operators::MySqlLists), bowshot_types::casts()];
    for rule in Analyzer::new().rules {
        if rule.name() == types.name() {
            rules.push(Arc::new(set_operations_all::CountedCopies) as _);
            rules.push(Arc::new(operators::OperatorsOfSql) as _);
            rules.push(bowshot_types::times());
            rules.push(Arc::new(OuterTypes::new()));
            rules.push(bowshot_types::texts());
            rules.push(Arc::new(integers::IntegersInRange) as _);
            rules.push(Arc::new(operators::BothZeros) as _);
            rules.push(Arc::new(operators::OnlyOneNan) as _);
            rules.push(Arc::new(null_masking::NothingBelowNulls) as _);
        } else {
            rules.push(rule);
        }
    }
    rules.push(Arc::new(excluded_rows::ExcludedRows));
    // Last, so that all types are settled.
    rules.push(Arc::new(Unnest));
    rules
}
