//! DataFusion's logical rules inside of ours, which look at the plan first.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

pub(super) type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Rewrites a plan, with the rule inside or without.
type Rewrite = fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

#[derive(Debug)]
struct WrappedRule {
    inner: Rule,
    rewrite: Rewrite,
}

/// A rule inside of another one, which has its name.
pub(super) fn wrapped(inner: Rule, rewrite: Rewrite) -> Rule {
    Arc::new(WrappedRule { inner, rewrite })
}

impl OptimizerRule for WrappedRule {
    bowshot_api::delegate! { inner:
        fn name(&self) -> &str;
        fn apply_order(&self) -> Option<ApplyOrder>;
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&*self.inner, plan, config)
    }
}
