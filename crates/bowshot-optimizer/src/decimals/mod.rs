//! Sums, differences and products of decimals are computed in 64 bits where the values of a batch allow it. A decimal takes 128
//! bits, and checked arithmetic on those is most of the time of a query over prices and amounts. Types, results and errors stay
//! those of Arrow's kernels.

mod expression;

use crate::node_rule::{Replacement, change_arguments, change_projection};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use expression::narrowed;
pub use expression::{narrow, narrow_arithmetic};
use std::sync::Arc;

/// Leaves filters and join conditions alone: other rules rewrite those.
pub(super) fn narrow_decimals(node: &Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Replacement {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        return in_projection(projection);
    }
    node.downcast_ref::<AggregateExec>().map_or(Ok(None), |aggregate| change_arguments(aggregate, narrowed))
}

/// The projection with such arithmetic, if it has any.
fn in_projection(projection: &ProjectionExec) -> Replacement {
    let Some(new) = change_projection(projection, narrowed)? else { return Ok(None) };
    Ok(says_the_same(&new, projection).then(|| Arc::new(new) as Arc<_>))
}

/// Whether nothing that is known of the rows was lost: operators above may have been chosen for their order, which is known
/// because an input is in order of an expression that the projection has too.
fn says_the_same(new: &ProjectionExec, old: &ProjectionExec) -> bool {
    let (new, old) = (new.properties(), old.properties());
    // An unknown partitioning equals none, not even itself.
    new.output_partitioning().to_string() == old.output_partitioning().to_string()
        && new.output_ordering() == old.output_ordering()
        && new.equivalence_properties().to_string() == old.equivalence_properties().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_sessions::session;
    use arrow::array::{ArrayRef, Decimal128Array, Int32Array, RecordBatch};
    use datafusion::common::Result;
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    fn context(with: bool) -> SessionContext {
        let rules = if with { crate::physical(false) } else { crate::same_names::physical() };
        session(SessionConfig::new().with_target_partitions(1), rules)
    }

    fn decimals(values: Vec<Option<i128>>, precision: u8, scale: i8) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(precision, scale).expect("type"))
    }

    /// Prices that fit into 64 bits but for those of one row, if there is such a row, and `NULL`s.
    fn rows(wide: bool) -> RecordBatch {
        let wide_value = if wide { 10_i128.pow(25) } else { 5 };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("k", Arc::new(Int32Array::from_iter_values(0..6))),
            (
                "price",
                decimals(vec![Some(12_345), Some(-99), None, Some(wide_value), Some(0), Some(1)], 38, 2),
            ),
            ("discount", decimals(vec![Some(5), Some(10), Some(7), None, Some(-3), Some(100)], 15, 2)),
            ("rate", decimals(vec![Some(1), Some(999_999), Some(3), Some(4), None, Some(-6)], 12, 6)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .expect("batch")
    }

    async fn answer(sql: &str, wide: bool, with: bool) -> Result<Vec<RecordBatch>> {
        let context = context(with);
        context.register_batch("t", rows(wide))?;
        context.sql(sql).await?.collect().await
    }

    const QUERIES: [&str; 9] = [
        "SELECT k, price * (1 - discount) AS a, price + rate AS b, rate - price AS c, discount * rate AS d FROM t ORDER BY k",
        "SELECT sum(price * (1 - discount)), avg(discount * rate), min(rate - discount), count(price + 1) FROM t",
        "SELECT k % 2 AS g, sum(CASE WHEN discount > 0 THEN price * rate ELSE 0 END) FROM t GROUP BY g ORDER BY g",
        "SELECT price * price * price AS a FROM t ORDER BY k",
        "SELECT (discount + discount) * (rate - NULL) AS a, 2 * 3.5 * discount AS b FROM t ORDER BY k",
        "SELECT sum(price * discount) FILTER (WHERE k > 1), sum(DISTINCT discount * rate) FROM t",
        "SELECT c, rn, sum(k) OVER (PARTITION BY c) AS s FROM (SELECT k, price * discount AS c, \
         row_number() OVER (ORDER BY price * discount) AS rn FROM t) AS o ORDER BY rn",
        "SELECT c, sum(k) OVER (PARTITION BY c ORDER BY k) FROM (SELECT k, price * discount AS c FROM t \
         WHERE price * discount = 61.725) AS o",
        "SELECT array_agg(price * discount ORDER BY k DESC), first_value(price - discount ORDER BY k) FROM t",
    ];

    #[tokio::test]
    async fn answers_types_and_errors_stay() {
        for sql in QUERIES {
            for wide in [false, true] {
                match (answer(sql, wide, true).await, answer(sql, wide, false).await) {
                    (Ok(with), Ok(without)) => assert_eq!(with, without, "{sql}"),
                    (Err(with), Err(without)) => assert_eq!(with.to_string(), without.to_string(), "{sql}"),
                    (with, without) => panic!("{sql}: {with:?} and {without:?}"),
                }
            }
        }
        let error = answer(QUERIES[3], true, true).await.expect_err("10^75 in 128 bits");
        assert!(error.to_string().contains("verflow"), "{error}");
    }

    #[tokio::test]
    async fn arithmetic_is_found_in_projections_and_arguments() {
        let context = context(true);
        context.register_batch("t", rows(false)).expect("table");
        for (sql, narrow) in
            [(QUERIES[0], true), (QUERIES[1], true), ("SELECT k + 1, discount FROM t", false)]
        {
            let plan = context.sql(sql).await.expect("plan").create_physical_plan().await.expect("plan");
            let mut found = false;
            let walked = plan.apply(|node| {
                let of_projection = node.downcast_ref::<ProjectionExec>().is_some_and(|projection| {
                    projection.expr().iter().any(|one| expression::is_narrowed(&one.expr))
                });
                let of_aggregate = node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
                    aggregate
                        .aggr_expr()
                        .iter()
                        .any(|one| one.expressions().iter().any(expression::is_narrowed))
                });
                found |= of_projection || of_aggregate;
                Ok(TreeNodeRecursion::Continue)
            });
            walked.expect("walk");
            assert_eq!(found, narrow, "{sql}: {}", displayable(plan.as_ref()).indent(false));
        }
    }
}
