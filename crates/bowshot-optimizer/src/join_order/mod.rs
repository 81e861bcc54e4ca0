//! Inner joins in the order that statistics tell to be the cheapest. DataFusion joins tables in the order in which a query
//! names them, so that the first two may give rows without number of which the next tables leave a few.

mod build;
mod cost;
mod search;
mod selectivity;
mod set;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;
mod tree;

use super::barrier::Barrier;
use super::node_rule::{Rule, run_by};
use cost::Model;
use datafusion::common::Result;
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;
use tree::{Shape, Tree};

/// Another order must be so much cheaper than that of the query: what is guessed is never as good as what a person knows.
const WORTHWHILE: f64 = 0.8;

extensions_options! {
    /// What one session says about the order of joins.
    pub struct SessionJoinOrder {
        /// Whether inner joins are put in another order than that of the query.
        pub by_statistics: bool, default = true
        /// How often hash tables of the query at hand have not fit into memory.
        pub failures: usize, default = 0
    }
}

impl ConfigExtension for SessionJoinOrder {
    const PREFIX: &'static str = "bowshot_join_order";
}

/// The key of [`SessionJoinOrder::by_statistics`] among the engine's options.
pub const SESSION_JOIN_ORDER: &str = "bowshot_join_order.by_statistics";

/// The rule that chooses which side of a join is the build side, and whether it is collected.
pub(crate) const SELECTION: &str = "join_selection";

/// How many rows a plan gives, as far as statistics tell.
pub fn estimated_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<f64> {
    statistics::Facts::of(plan).map(|facts| facts.rows)
}

/// The rules of a physical optimiser, with joins in order before their sides are chosen.
pub(super) fn before_selection(rules: Vec<Rule>) -> Vec<Rule> {
    choosing(rules, worthwhile)
}

/// Which shape takes the place of the given one.
type Choose = fn(&mut Model, Shape) -> Shape;

/// Puts joins in order, then lets the rule for their sides see how many rows those are thought to have.
fn choosing(rules: Vec<Rule>, choose: Choose) -> Vec<Rule> {
    run_by(rules, &[SELECTION], move |rule, plan, config| {
        let wanted = config.extensions.get::<SessionJoinOrder>().is_some_and(|wanted| wanted.by_statistics);
        if wanted {
            Barrier::lifted(rule.optimize(ordered(plan, choose)?, config)?)
        } else {
            rule.optimize(plan, config)
        }
    })
}

/// The plan with all its inner joins in the order that is cheapest.
fn ordered(plan: Arc<dyn ExecutionPlan>, choose: Choose) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some((mut tree, given)) = Tree::of(&plan)?
        && let Some(mut model) = Model::of(&tree)
    {
        let relations = std::mem::take(&mut tree.relations).into_iter().map(|plan| ordered(plan, choose));
        tree.relations = relations.collect::<Result<_>>()?;
        let shape = choose(&mut model, given);
        return build::plan(&tree, &mut model, &shape, &plan.schema());
    }
    let children = plan.children().into_iter().map(|child| ordered(Arc::clone(child), choose));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// The cheapest shape, if it is worth to leave the given one.
fn worthwhile(model: &mut Model, given: Shape) -> Shape {
    match search::cheapest(model) {
        Some(cheapest) if model.cost(&cheapest) < WORTHWHILE * model.cost(&given) => cheapest,
        _ => given,
    }
}
