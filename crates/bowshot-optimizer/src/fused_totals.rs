//! Totals over the same joined tables that differ in conditions, as in `SELECT (SELECT count(*) FROM a JOIN b … WHERE b.hour = 8), (SELECT
//! count(*) FROM a JOIN b … WHERE b.hour = 9)`: the tables are joined once for the rows of all, and each total has its condition as a
//! FILTER. Totals of one table alone stay apart: its columns are at hand, and there are more rows to filter than each of them reads.

use crate::common_subplans::have_same_tables;
use crate::materialized_cte::{ComputedOnce, is_random, stands_alone};
use crate::merged_rows::{all, families, merge, never_fails};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use std::sync::Arc;

/// Functions up to which totals are put together: each of them looks at all rows.
const MOST_FUNCTIONS: usize = 32;

/// The optimized plan with such totals computed together, or `None` if it has none.
pub fn fuse(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let fused: Vec<Totals> =
        families(plan, is_total, |_, _| true)?.into_iter().filter_map(Totals::of).collect();
    if fused.is_empty() {
        return Ok(None);
    }
    let replaced = plan.clone().transform_down_with_subqueries(|node| {
        for totals in &fused {
            if let Some(reader) = totals.reader(&node)? {
                return Ok(Transformed::new(reader, true, TreeNodeRecursion::Jump));
            }
        }
        Ok(Transformed::no(node))
    });
    replaced.data().map(Some)
}

/// Whether a node gives one row for all rows of joined tables, by functions that take a condition.
fn is_total(node: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = node else { return Ok(false) };
    Ok(aggregate.group_expr.is_empty()
        && aggregate.aggr_expr.iter().all(|expr| filtered(expr, &[]).is_some())
        && aggregate.input.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))?
        && !is_random(node)?
        && stands_alone(node)?)
}

/// The call of an aggregate function for rows that meet conditions; `None` for one whose answer depends on the order of rows.
fn filtered(expr: &Expr, conditions: &[Expr]) -> Option<Expr> {
    let mut call = expr;
    while let Expr::Alias(alias) = call {
        call = &alias.expr;
    }
    let Expr::AggregateFunction(call) = call else { return None };
    if !call.params.order_by.is_empty() || call.params.null_treatment.is_some() {
        return None;
    }
    let mut call = call.clone();
    let own = call.params.filter.take().map(|filter| *filter);
    call.params.filter = conjunction(own.into_iter().chain(conditions.iter().cloned())).map(Box::new);
    Some(Expr::AggregateFunction(call))
}

struct Totals {
    number: u64,
    plan: LogicalPlan,
    /// Each of them, and which columns it has there.
    readers: Vec<(LogicalPlan, Vec<usize>)>,
}

impl Totals {
    /// `None` where they are no parts of the same rows, or a condition may fail for rows of another one.
    fn of(members: Vec<LogicalPlan>) -> Option<Self> {
        if members.len() < 2 {
            return None;
        }
        let aggregates = all(&members.iter().collect::<Vec<_>>(), |plan| match plan {
            LogicalPlan::Aggregate(aggregate) => Some(aggregate),
            _ => None,
        })?;
        let inputs: Vec<&LogicalPlan> = aggregates.iter().map(|aggregate| aggregate.input.as_ref()).collect();
        let rows = merge(&inputs)?;
        let mut conditions = rows.conditions.iter().flatten();
        if rows.conditions.iter().all(Vec::is_empty) || !conditions.all(never_fails) {
            return None;
        }
        let (mut functions, mut places) = (Vec::new(), Vec::with_capacity(members.len()));
        for (aggregate, conditions) in aggregates.iter().zip(&rows.conditions) {
            let mut columns = Vec::with_capacity(aggregate.aggr_expr.len());
            for expr in &aggregate.aggr_expr {
                let function = filtered(expr, conditions)?;
                let known = functions.iter().position(|other| *other == function);
                columns.push(known.unwrap_or(functions.len()));
                if known.is_none() {
                    functions.push(function);
                }
            }
            places.push(columns);
        }
        if functions.len() > MOST_FUNCTIONS {
            return None;
        }
        let plan = Aggregate::try_new(Arc::new(rows.plan), Vec::new(), functions).ok()?;
        let plan = LogicalPlan::Aggregate(plan);
        Some(Self {
            number: ComputedOnce::next_number(),
            plan,
            readers: members.into_iter().zip(places).collect(),
        })
    }

    /// What comes in the place of a node that is one of them.
    fn reader(&self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        for (member, columns) in &self.readers {
            if member != node || !have_same_tables(member, node)? {
                continue;
            }
            let once = ComputedOnce::equal_part(self.number, self.plan.clone());
            let schema = Arc::clone(once.schema());
            let chosen = node.schema().iter().zip(columns).map(|((qualifier, field), at)| {
                let column = Expr::Column(Column::from(schema.qualified_field(*at)));
                column.alias_qualified(qualifier.cloned(), field.name())
            });
            let reader = Projection::try_new(chosen.collect(), Arc::new(once))?;
            return Ok(Some(LogicalPlan::Projection(reader)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::fuse;
    use crate::test_sessions::{optimized, readers};

    /// Readers of totals that are computed together, in a statement.
    async fn count_readers(sql: &str) -> usize {
        let plan = optimized(sql).await;
        let Some(fused) = fuse(&plan).unwrap() else { return 0 };
        assert_eq!(fused.schema(), plan.schema());
        readers(&fused).len()
    }

    #[tokio::test]
    async fn totals_of_the_same_joins_are_computed_together() {
        let total =
            |functions: &str, rest: &str| format!("(SELECT {functions} FROM t JOIN u ON t.k = u.k {rest})");
        for (expected, one, other) in [
            (2, total("count(*)", "WHERE u.v = 1"), total("count(*)", "WHERE u.v = 2")),
            (
                2,
                total("sum(t.v)", "WHERE u.v = 1 AND t.w > 3"),
                total("max(t.v)", "WHERE u.v = 2 AND t.w > 5"),
            ),
            (2, total("sum(t.v)", "WHERE u.v = 1"), total("avg(u.w)", "WHERE u.v BETWEEN 2 AND 5")),
            // Other tables, a condition that may fail, one that belongs to the join, one that is drawn.
            (
                0,
                total("count(*)", "WHERE u.v = 1"),
                "(SELECT count(*) FROM t JOIN t AS u ON t.k = u.k WHERE u.v = 2)".into(),
            ),
            (0, total("count(*)", "WHERE 10 / u.v = 1"), total("count(*)", "WHERE u.v = 2")),
            (0, total("count(*)", "WHERE u.v < t.v"), total("count(*)", "WHERE u.v > t.v")),
            (0, total("count(*)", "WHERE u.v > random()"), total("count(*)", "WHERE u.v > 3")),
            // One table, and functions that depend on the order of rows.
            (0, "(SELECT count(*) FROM t WHERE v = 1)".into(), "(SELECT count(*) FROM t WHERE v = 2)".into()),
            (
                0,
                total("array_agg(t.v ORDER BY t.w)", "WHERE u.v = 1"),
                total("array_agg(t.v ORDER BY t.w)", "WHERE u.v = 2"),
            ),
        ] {
            let sql = format!("SELECT * FROM {one} AS a CROSS JOIN {other} AS b");
            assert_eq!(count_readers(&sql).await, expected, "{sql}");
        }
    }
}
