//! Subqueries of every kind in every place, as joins: the general way of Neumann and Kemper, "Unnesting Arbitrary Queries"
//! (BTW 2015).
//!
//! DataFusion's own rules refuse many forms, and take others for something that they are not: a NULL among the rows of NOT
//! IN, a value out of several rows, LIMIT and OFFSET for each row. This rule comes behind the coercion of types and leaves
//! DataFusion only those forms that it answers rightly and fast ([`keep`]). For all others a subquery becomes rows of its own:
//! the distinct values that it takes from outside ([`domain`]) are pushed down to where they are used ([`dependent`]), and
//! what comes out is joined with the rows outside by those values ([`forms`], [`lateral`]). What cannot be pushed down is
//! refused, never guessed.

mod comparison;
mod dependent;
mod domain;
mod expressions;
mod forms;
mod joins;
mod keep;
mod lateral;
mod levels;
mod limits;
mod one_row;
mod outer_types;
mod places;
mod plans;
mod recursions;
mod sides;
mod walk;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use std::cell::Cell;

pub(crate) use one_row::function as one_row_function;
pub(crate) use outer_types::OuterTypes;

/// The rule.
#[derive(Debug)]
pub(crate) struct Unnest;

impl AnalyzerRule for Unnest {
    fn name(&self) -> &str {
        "unnest_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !plans::has_subqueries(&plan)? {
            return Ok(plan);
        }
        levels::check(&plan)?;
        let names = Names::beyond(&plan)?;
        plans::unions_of_nulls(walk::rewritten(plan, &names)?)
    }
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
