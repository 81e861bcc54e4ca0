//! The rule that takes conditions down to the tables takes `c = 2 AND 2 = c` for a contradiction: it compares conditions of one
//! column as they are written. Conditions come in the second form from joins, subqueries and columns that are constants, after
//! the rule that turns them has run. Here they are turned before that rule looks at them.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::fmt;
use std::sync::Arc;

/// See the module.
pub(super) struct ConstantsOnTheRight(pub(super) Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for ConstantsOnTheRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConstantsOnTheRight").field(&self.0.name()).finish()
    }
}

impl OptimizerRule for ConstantsOnTheRight {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return self.0.rewrite(plan, config) };
        let turned = turned(filter)?;
        let mut rewritten = self.0.rewrite(LogicalPlan::Filter(turned.data), config)?;
        rewritten.transformed |= turned.transformed;
        Ok(rewritten)
    }
}

/// The filter, and those right below it, which the rule puts together.
fn turned(filter: Filter) -> Result<Transformed<Filter>> {
    let mut changed = false;
    let conditions: Vec<Expr> = split_conjunction_owned(filter.predicate)
        .into_iter()
        .map(|condition| {
            let turned = turn(condition);
            changed |= turned.transformed;
            turned.data
        })
        .collect();
    let input = match filter.input.as_ref() {
        LogicalPlan::Filter(below) if below_needs_it(below) => {
            changed = true;
            Arc::new(LogicalPlan::Filter(turned(below.clone())?.data))
        }
        _ => filter.input,
    };
    let Some(predicate) = conjunction(conditions) else {
        return datafusion::common::internal_err!("a filter has a condition");
    };
    let filter = Filter::try_new(predicate, input)?;
    Ok(if changed { Transformed::yes(filter) } else { Transformed::no(filter) })
}

fn below_needs_it(filter: &Filter) -> bool {
    let here = split_conjunction_owned(filter.predicate.clone()).into_iter().any(|one| turn(one).transformed);
    here || matches!(filter.input.as_ref(), LogicalPlan::Filter(below) if below_needs_it(below))
}

/// `2 < c` as `c > 2`.
fn turn(condition: Expr) -> Transformed<Expr> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(*left, Expr::Literal(..)) && !matches!(*right, Expr::Literal(..)) =>
        {
            match op.swap() {
                Some(other) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(right, other, left))),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
            }
        }
        other => Transformed::no(other),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, RecordBatch};
    use datafusion::execution::session_state::SessionStateBuilder;
    use datafusion::prelude::SessionContext;
    use std::sync::Arc;

    /// How many rows there are; `t` has 2 and 3 in `c`.
    async fn count(sql: &str) -> usize {
        let state = SessionStateBuilder::new().with_default_features();
        let state = state.with_optimizer_rules(crate::rules::logical(false)).build();
        let context = SessionContext::new_with_state(state);
        let column = Arc::new(Int32Array::from(vec![2, 3])) as _;
        let rows = RecordBatch::try_from_iter([("c", column)]).expect("rows");
        context.register_batch("t", rows).expect("table");
        let rows = context.sql(sql).await.expect("plan").collect().await.expect(sql);
        rows.iter().map(RecordBatch::num_rows).sum()
    }

    #[tokio::test]
    async fn one_condition_written_twice_is_no_contradiction() {
        for (sql, rows) in [
            ("SELECT * FROM t WHERE c = 2 AND character_length('ab') = c", 1),
            ("SELECT * FROM t WHERE character_length('ab') = c AND c = 3", 0),
            ("SELECT * FROM t AS o WHERE 1 + 1 IN (SELECT c FROM t WHERE c = 2)", 2),
            ("SELECT * FROM t AS o WHERE 1 + 1 NOT IN (SELECT c FROM t WHERE c = 2)", 0),
            ("SELECT * FROM (SELECT 2 AS two, c FROM t) WHERE two = c AND c = 2", 1),
            ("SELECT * FROM (SELECT c FROM t WHERE c = 2) AS u JOIN (SELECT 2 AS two) AS w ON two = c", 1),
            ("SELECT * FROM (SELECT 3 AS three, c FROM t) WHERE three > c AND c < 3", 1),
        ] {
            assert_eq!(count(sql).await, rows, "{sql}");
        }
    }
}
