//! Subqueries of every kind become joins, by Neumann and Kemper, "Unnesting Arbitrary Queries" (BTW 2015). DataFusion refuses many
//! forms and answers others wrongly: NULL in NOT IN, several rows of a scalar subquery, LIMIT per row. It keeps only the forms in
//! [`native`]. For others, the distinct values from outside ([`correlation_values`]) are pushed down to their uses
//! ([`dependent`]) and joined back ([`forms`], [`lateral`]). What cannot be pushed down is refused, never guessed.

mod comparison;
mod correlation_values;
mod dependent;
mod expressions;
mod forms;
mod join_condition;
mod joins;
mod lateral;
mod limits;
mod native;
mod one_row;
mod outer_aggregates;
mod outer_types;
mod plans;
mod positions;
mod recursions;
mod walk;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use std::cell::Cell;

pub use one_row::function as one_row_function;
pub(crate) use outer_types::outer_types;

pub(crate) fn unnest(plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
    if !plans::has_subqueries(&plan)? {
        return Ok(plan);
    }
    outer_aggregates::check(&plan)?;
    let names = Names::beyond(&plan)?;
    plans::unions_of_nulls(walk::rewritten(plan, &names)?)
}

/// Gives names to relations that the rule makes, unique within one plan.
#[derive(Debug, Default)]
struct Names {
    given: Cell<usize>,
}

impl Names {
    /// Names that are not in the plan: a part of it may have been here before.
    fn beyond(plan: &LogicalPlan) -> Result<Self> {
        let mut most = 0;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::SubqueryAlias(alias) = node
                && let Some((stem, number)) = alias.alias.table().rsplit_once('_')
                && stem.starts_with("__")
            {
                most = most.max(number.parse().unwrap_or(0));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(Self { given: Cell::new(most) })
    }

    fn next(&self, stem: &str) -> String {
        self.given.set(self.given.get().saturating_add(1));
        format!("{stem}_{}", self.given.get())
    }
}
