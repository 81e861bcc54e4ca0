//! Joins of queries for which hash tables did not fit into memory. A hash join cannot spill; one that sorts both sides can, and takes
//! longer. A query comes here when it has failed: then large sides are sorted, and all of them when it has failed again.

use crate::join_order::SessionJoinOrder;
use crate::join_order::statistics::Facts;
use crate::node_rule::Replacement;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

/// A hash table of so many rows is kept where not all of them have to go.
const FEW_ROWS: f64 = 100_000.0;

/// Must run after all rules that look for hash joins, and before those that add sorts.
pub(super) fn with_sorted_sides(node: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Replacement {
    let failures = config.extensions.get::<SessionJoinOrder>().map_or(0, |order| order.failures);
    let Some(join) = node.downcast_ref::<HashJoinExec>().filter(|join| failures > 0 && can_be_sorted(join))
    else {
        return Ok(None);
    };
    if failures == 1 && Facts::of(join.left()).is_some_and(|side| side.rows <= FEW_ROWS) {
        return Ok(None);
    }
    let sorted = SortMergeJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        join.on().to_vec(),
        join.filter().map(left_first).transpose()?,
        *join.join_type(),
        vec![SortOptions::default(); join.on().len()],
        join.null_equality(),
    )?;
    let Some(chosen) = &join.projection else { return Ok(Some(Arc::new(sorted))) };
    let schema = sorted.schema();
    let columns = chosen.iter().map(|at| {
        let name = schema.field(*at).name();
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, *at));
        ProjectionExpr { expr, alias: name.clone() }
    });
    let columns: Vec<_> = columns.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, Arc::new(sorted))?)))
}

/// The condition with the columns of the left side before those of the right: `SortMergeJoinExec` gives them in that order, whatever
/// order the condition names, which is the other one where the sides were exchanged.
fn left_first(filter: &JoinFilter) -> Result<JoinFilter> {
    let indices = filter.column_indices();
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_by_key(|at| indices.get(*at).is_none_or(|column| column.side != JoinSide::Left));
    let moved = |expr: Arc<dyn PhysicalExpr>| {
        let place = expr.downcast_ref::<Column>().and_then(|column| {
            let place = order.iter().position(|at| *at == column.index())?;
            Some(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>)
        });
        Ok(place.map_or_else(|| Transformed::no(expr), Transformed::yes))
    };
    let condition = Arc::clone(filter.expression()).transform(moved)?.data;
    let columns = order.iter().filter_map(|at| indices.get(*at).cloned()).collect();
    Ok(JoinFilter::new(condition, columns, Arc::new(filter.schema().project(&order)?)))
}

/// Whether rows meet the same partners when they are sorted: not by NaN, and where NULL in a list decides about all rows.
fn can_be_sorted(join: &HashJoinExec) -> bool {
    let schema = join.left().schema();
    let mut keys = join.on().iter().map(|(key, _)| key.data_type(&schema));
    // Others are given conditions on rows without a partner.
    let is_plain = match join.join_type() {
        JoinType::Inner => true,
        JoinType::Full => false,
        _ => join.filter().is_none(),
    };
    is_plain
        && !join.null_aware
        && join.fetch().is_none()
        && keys.all(|of| of.is_ok_and(|of| is_comparable(&of)))
}

/// The types that `SortMergeJoinExec` compares, but for floating-point numbers.
fn is_comparable(of: &DataType) -> bool {
    of.is_integer()
        || of.is_string()
        || of.is_binary()
        || matches!(of, DataType::Boolean | DataType::Decimal128(..) | DataType::Timestamp(_, None))
        || matches!(of, DataType::Date32 | DataType::Date64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sessions::{answer, physical_plan, session};
    use datafusion::prelude::{SessionConfig, SessionContext};

    async fn context(failures: usize) -> SessionContext {
        let order = SessionJoinOrder { failures, ..SessionJoinOrder::default() };
        let config = SessionConfig::new().with_target_partitions(2).with_option_extension(order);
        let context = session(config, crate::physical(false));
        for sql in [
            "CREATE TABLE a AS SELECT value % 7 AS k, value AS v, 'n' || (value % 3) AS s FROM range(0, 40)",
            "CREATE TABLE b AS SELECT CASE WHEN value % 5 > 0 THEN value % 9 END AS k, value AS v FROM range(0, 30)",
            "CREATE TABLE f AS SELECT CAST(value AS DOUBLE) AS k FROM range(0, 9)",
        ] {
            context.sql(sql).await.unwrap().collect().await.unwrap();
        }
        context
    }

    #[tokio::test]
    async fn answers_are_the_same_and_small_sides_are_hashed_at_first() {
        let (hashed, once, twice) = (context(0).await, context(1).await, context(2).await);
        for (sql, can_be_sorted) in [
            ("SELECT a.s, b.v FROM a JOIN b ON a.k = b.k", true),
            ("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k AND a.v < b.v", true),
            ("SELECT a.v, b.v FROM b JOIN a ON a.k = b.k AND a.v < b.v", true),
            ("SELECT a.v, b.v FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v", false),
            ("SELECT a.v, b.v FROM a LEFT JOIN b ON a.k = b.k", true),
            ("SELECT v FROM a WHERE k IN (SELECT k FROM b WHERE v > 3)", true),
            ("SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", true),
            ("SELECT v FROM a WHERE k NOT IN (SELECT k FROM b)", false),
            ("SELECT f.k, g.k FROM f JOIN f AS g ON f.k = g.k", false),
        ] {
            let expected = answer(&hashed, sql).await;
            for (context, is_sorted) in [(&once, false), (&twice, can_be_sorted)] {
                let plan = physical_plan(context, sql).await;
                assert_eq!(plan.contains("SortMergeJoin"), is_sorted, "{plan}");
                assert_eq!(answer(context, sql).await, expected, "{sql}");
            }
        }
    }
}
