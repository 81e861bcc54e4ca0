//! Optimizer and analyzer rules: DataFusion's, less those that give wrong answers, and those that it lacks; and the operators and
//! functions that the rules put into plans. This file has the order of the physical rules, [`analyzer_rules`] that of the analyzer's,
//! [`logical_rules`] that of the logical ones. [`cooperative`] is applied to plans that are finished.

mod aggregate_answers;
mod analyzer_rules;
mod anti_joins;
mod barrier;
mod coarser_sets;
pub mod common_subplans;
mod constant_conditions;
mod constant_sides;
mod constants;
pub mod cooperative;
mod decimals;
mod drop_ordering;
mod eager_aggregation;
mod expressions;
mod floats;
mod frame_exclusion;
mod frame_offsets;
mod functional_dependencies;
pub mod fused_groups;
pub mod fused_totals;
mod grouping_sets;
mod integers;
mod join_order;
mod limit_pushdown;
mod logical_rules;
pub mod materialized_cte;
pub mod materialized_rows;
mod merged_rows;
mod nan_of_aggregates;
mod node_rule;
mod null_masking;
mod offsets;
mod operators;
mod physical_expressions;
mod recursions;
mod running_extremes;
mod same_names;
mod set_operations_all;
mod short_circuit;
mod sorted_joins;
mod subqueries;
#[cfg(test)]
mod test_sessions;
mod unary_operator;
mod window_marks;
mod windows;
mod wrapped_rule;
mod zero_keys;

pub use analyzer_rules::with_our_meaning;
pub use decimals::{narrow, narrow_arithmetic};
pub use drop_ordering::{DropOrdering, Dropped};
pub use floats::{extreme, extreme_of};
pub use join_order::{SESSION_JOIN_ORDER, SessionJoinOrder, estimated_rows};
pub use logical_rules::logical;
pub use operators::{MySqlOperands, ParameterOperands, compared_by_labels, is_glued};
pub use short_circuit::{guard, guarded, guarded_operator};
pub use subqueries::one_row_function;
pub use windows::hashes_partitions;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use node_rule::{behind, node_rule};
use std::sync::Arc;

/// The rules of the physical optimizer, in their order. Scratch sessions, which are compared with DataFusion, keep its view of what
/// is constant and needed.
pub fn physical(scratch: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = vec![
        node_rule("CoarserSets", coarser_sets::from_finest_set),
        node_rule("NothingKnownOfSets", grouping_sets::nothing_known),
        node_rule("NoOrderByExtremes", running_extremes::without_order),
        node_rule("OneZeroInKeys", zero_keys::one_zero),
    ];
    let mut stock = aggregate_answers::beyond_doubt(same_names::physical());
    if !scratch {
        rules.push(node_rule("FieldsInFiles", null_masking::fields_in_files));
        rules.push(constants::nothing_constant_of_parts());
        rules.push(node_rule("SkippedInOrder", offsets::skipped_in_order));
        stock = constants::behind_filters(stock);
        stock = behind(stock, "WindowTopN", || node_rule("UnorderedGroups", constants::unordered_groups));
    }
    let stock = join_order::before_selection(stock);
    let stock =
        behind(stock, join_order::SELECTION, || node_rule("SortedJoins", sorted_joins::with_sorted_sides));
    // In front of that one.
    let stock = behind(stock, join_order::SELECTION, || {
        node_rule("EagerAggregation", eager_aggregation::before_joins)
    });
    // In front of the rules that sort for windows, behind those that move filters.
    let stock = behind(stock, "WindowTopN", || node_rule("RankedRows", windows::below_filter::ranked_rows));
    let stock = behind(stock, "WindowTopN", windows::without_sort::rule);
    rules.extend(limit_pushdown::above_groups(stock));
    // Behind all that look into expressions.
    rules.push(node_rule("NarrowDecimals", decimals::narrow_decimals));
    rules.push(node_rule("FloatsInOrder", floats::in_order));
    rules.push(node_rule("NanOfAggregates", nan_of_aggregates::one_nan));
    rules.push(node_rule("GuardedConditions", short_circuit::guarded_conditions));
    rules
}
