//! Groups by keys of which one is said to follow from the others. DataFusion says so of all columns of an aggregation, for each key
//! that was unique further below, also where a join has repeated it since: grouped once more, `GROUP BY a.k, l.v` over a join with
//! `(SELECT DISTINCT v …) AS l` loses `a.k`. While keys are left out, nothing is said to follow.

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, FunctionalDependencies, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::fmt;
use std::sync::Arc;

/// The rule that leaves out what nobody needs, keys of groups among it. Projections of all columns are some of that.
pub(super) const LEAVES_OUT: &str = "optimize_projections";

/// See the module.
pub(super) struct AllKeys(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for AllKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AllKeys").field(&self.0.name()).finish()
    }
}

impl OptimizerRule for AllKeys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let plan = plan
            .transform_down_with_subqueries(|node| match node {
                LogicalPlan::Aggregate(groups) if has_doubtful_keys(&groups) => independent(groups),
                node => Ok(Transformed::no(node)),
            })
            .data()?;
        self.0.rewrite(plan, config)
    }
}

fn has_doubtful_keys(groups: &Aggregate) -> bool {
    groups.group_expr.len() > 1 && !groups.input.schema().functional_dependencies().is_empty()
}

/// The same over all columns of its input, of which nothing else is known.
fn independent(mut groups: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = groups.input;
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    let schema =
        DFSchema::clone(input.schema()).with_functional_dependencies(FunctionalDependencies::empty())?;
    let projection = Projection::try_new_with_schema(columns, input, Arc::new(schema))?;
    groups.input = Arc::new(LogicalPlan::Projection(projection));
    Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
}
