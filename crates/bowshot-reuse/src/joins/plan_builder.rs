//! The plan of a join from its shape: the inverse of `block.rs` and `expression_text.rs`.

use super::expression_text;
use super::substitute::column_name;
use crate::cache::{ColumnRef, Member, OuterKind, Tree};
use datafusion::catalog::TableProvider;
use datafusion::common::{JoinType, Result, TableReference, internal_err, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use std::sync::Arc;

pub(super) struct Builder<'a> {
    /// The tables, in the order of the shape.
    pub(super) providers: &'a [Arc<dyn TableProvider>],
    pub(super) state: &'a SessionState,
}

impl Builder<'_> {
    pub(super) fn plan(&self, tree: &Tree, columns: &[ColumnRef]) -> Result<LogicalPlan> {
        let outputs = columns.iter().map(|column| {
            expression_text::column(column.table, &column.column)
                .alias(column_name(column.table, &column.column))
        });
        self.tree(tree)?.project(outputs.collect::<Vec<Expr>>())?.build()
    }

    /// All members combined, and the conditions on top: the optimiser makes joins of them.
    fn tree(&self, tree: &Tree) -> Result<LogicalPlanBuilder> {
        let mut plan: Option<LogicalPlanBuilder> = None;
        for member in &tree.members {
            let member = self.member(member)?;
            plan = Some(match plan {
                Some(plan) => plan.cross_join(member.build()?)?,
                None => member,
            });
        }
        let Some(plan) = plan else { return internal_err!("a join of nothing") };
        match self.conditions(&tree.conditions)?.into_iter().reduce(Expr::and) {
            Some(condition) => plan.filter(condition),
            None => Ok(plan),
        }
    }

    fn member(&self, member: &Member) -> Result<LogicalPlanBuilder> {
        match member {
            Member::Table(number) => {
                let Some(provider) = self.providers.get(*number) else {
                    return plan_err!("no table {number}");
                };
                let name = TableReference::bare(format!("#{number}"));
                LogicalPlanBuilder::scan(name, provider_as_source(Arc::clone(provider)), None)
            }
            Member::Outer(outer) => {
                let join_type = match outer.kind {
                    OuterKind::Left => JoinType::Left,
                    OuterKind::Full => JoinType::Full,
                    OuterKind::Semi => JoinType::LeftSemi,
                    OuterKind::Anti => JoinType::LeftAnti,
                };
                let right = self.tree(&outer.right)?.build()?;
                self.tree(&outer.left)?.join_on(right, join_type, self.conditions(&outer.on)?)
            }
        }
    }

    fn conditions(&self, texts: &[String]) -> Result<Vec<Expr>> {
        texts.iter().map(|condition| expression_text::parse(condition, self.state)).collect()
    }
}
