//! Inner joins in the order that statistics tell to be the cheapest. DataFusion joins tables in the order in which a query
//! names them, so that the first two may give rows without number of which the next tables leave a few.

mod build;
mod cost;
mod facts;
mod search;
mod selectivity;
mod set;
mod tree;

use cost::Model;
use datafusion::common::Result;
use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use std::sync::Arc;
use tree::Tree;

/// Another order must be so much cheaper than that of the query: what is guessed is never as good as what a person knows.
const WORTHWHILE: f64 = 0.8;

extensions_options! {
    /// What one session says about the order of joins.
    pub(crate) struct SessionJoinOrder {
        /// Whether inner joins are put in another order than that of the query.
        pub by_statistics: bool, default = true
    }
}

impl ConfigExtension for SessionJoinOrder {
    const PREFIX: &'static str = "bowshot_join_order";
}

/// The key of [`SessionJoinOrder::by_statistics`] among the engine's options.
pub const SESSION_JOIN_ORDER: &str = "bowshot_join_order.by_statistics";

/// See the module.
#[derive(Debug)]
pub(super) struct JoinOrder;

impl PhysicalOptimizerRule for JoinOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = config.extensions.get::<SessionJoinOrder>().is_some_and(|wanted| wanted.by_statistics);
        if wanted { ordered(plan) } else { Ok(plan) }
    }

    fn name(&self) -> &'static str {
        "JoinOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with all its inner joins in the order that is cheapest.
fn ordered(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some((mut tree, shape)) = Tree::of(&plan)?
        // The sides of one join are chosen by DataFusion's own rule.
        && tree.relations.len() > 2
        && let Some(mut model) = Model::of(&tree)
        && let Some(cheapest) = search::cheapest(&mut model)
    {
        let (before, after) = (model.cost(&shape), model.cost(&cheapest));
        if after < WORTHWHILE * before {
            let relations = std::mem::take(&mut tree.relations).into_iter().map(ordered);
            tree.relations = relations.collect::<Result<_>>()?;
            return build::plan(&tree, &mut model, &cheapest, &plan.schema());
        }
    }
    let children = plan.children().into_iter().map(|child| ordered(Arc::clone(child)));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}
