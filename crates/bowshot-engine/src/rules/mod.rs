//! DataFusion's optimiser rules, less those that give wrong answers where they do, and with those that it lacks.

mod aggregate_answers;
mod analysis;
mod anti_joins;
mod barrier;
mod below_nulls;
pub(crate) mod computed_once;
mod constant_conditions;
mod constant_sides;
mod constants;
mod cross_joins;
mod decimals;
mod dependencies;
mod excluded_rows;
mod expressions;
mod floats;
mod forgetful;
mod grouping_sets;
mod guards;
mod integers;
mod join_order;
mod limits;
mod multisets;
mod nan_of_aggregates;
mod offsets;
mod operators;
mod recursions;
mod running_extremes;
mod same_names;
mod subqueries;
mod zero_keys;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use std::sync::Arc;

pub(crate) use analysis::with_our_meaning;
pub(crate) use cross_joins::logical;
pub(crate) use decimals::{narrow, narrow_arithmetic};
pub(crate) use floats::{extreme, extreme_of};
pub(crate) use forgetful::{Forgetful, Forgotten};
pub(crate) use guards::{guard, guarded_operator};
pub use join_order::{SESSION_JOIN_ORDER, SessionJoinOrder};
pub(crate) use operators::{MySqlOperands, ParameterOperands, compared_by_labels, is_glued};
pub(crate) use subqueries::{OuterTypes, Unnest, one_row_function};

/// The rules of the physical optimiser, in their order. Scratch sessions, which are compared with DataFusion, keep its view of what
/// is constant and needed.
pub(crate) fn physical(scratch: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> =
        vec![Arc::new(grouping_sets::NothingKnownOfSets), Arc::new(running_extremes::NoOrderByExtremes)];
    rules.push(Arc::new(zero_keys::OneZeroInKeys));
    let mut stock = aggregate_answers::beyond_doubt(same_names::physical());
    if !scratch {
        rules.push(Arc::new(below_nulls::FieldsInFiles));
        rules.push(Arc::new(constants::NothingConstantOfParts));
        rules.push(Arc::new(offsets::SkippedInOrder));
        stock = constants::behind_filters(stock);
    }
    rules.extend(limits::above_groups(join_order::before_selection(stock)));
    // Behind all that look into expressions.
    rules.push(Arc::new(decimals::NarrowDecimals));
    rules.push(Arc::new(floats::FloatsInOrder));
    rules.push(Arc::new(nan_of_aggregates::NanOfAggregates));
    rules.push(Arc::new(guards::GuardedConditions));
    rules
}
