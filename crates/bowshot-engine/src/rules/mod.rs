//! DataFusion's optimiser rules, less those that give wrong answers where they do, and with those that it lacks.

mod cross_joins;
mod decimals;
mod floats;
mod join_order;
mod same_names;
mod step_aside;
mod veil;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use std::sync::Arc;

pub(crate) use cross_joins::logical;
pub use join_order::SESSION_JOIN_ORDER;
pub(crate) use join_order::SessionJoinOrder;
pub(crate) use step_aside::StepAside;

/// The rules of the physical optimiser, in their order.
pub(crate) fn physical() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = join_order::before_selection(same_names::physical());
    // Behind all that look into expressions.
    rules.push(Arc::new(decimals::NarrowDecimals));
    rules.push(Arc::new(floats::FloatsInOrder));
    rules
}
