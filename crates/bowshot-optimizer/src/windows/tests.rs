//! Plans with and without these rules, and that their answers are the same.

use crate::common_subplans::SharedWork;
use crate::join_order::SessionJoinOrder;
use crate::test_sessions::{answer, physical_plan};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Rows with NULLs and equal values in all columns but `id`, in three partitions.
async fn context(wanted: bool, failures: usize, memory: usize) -> SessionContext {
    let shared = SharedWork { ranked_windows: wanted, hashed_windows: wanted, ..SharedWork::default() };
    let config = SessionConfig::new()
        .with_target_partitions(3)
        .with_batch_size(64)
        .with_option_extension(shared)
        .with_option_extension(SessionJoinOrder { failures, ..SessionJoinOrder::default() });
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(memory, 1.0).build_arc().unwrap();
    let builder =
        SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let builder = builder.with_physical_optimizer_rules(crate::physical(false));
    let context = SessionContext::new_with_state(builder.build());
    let sql = "CREATE TABLE t AS SELECT value AS id, CASE WHEN value % 11 > 0 THEN value % 5 END AS p, \
        'name ' || (value % 3) AS s, CASE WHEN value % 7 > 0 THEN value * 37 % 101 END AS v, \
        CAST(value * 17 % 13 AS DOUBLE) / 4 AS x FROM range(0, 2000)";
    context.sql(sql).await.unwrap().collect().await.unwrap();
    context
}

async fn ample(wanted: bool) -> SessionContext {
    context(wanted, 0, 1 << 30).await
}

const RANKED: &str = "RankedRowsExec";
const HASHED: &str = "PartitionTotalsExec";

#[tokio::test]
async fn only_rows_that_no_function_of_the_window_counts_are_dropped() {
    let (with, without) = (ample(true).await, ample(false).await);
    let dropped = [
        "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY p ORDER BY v DESC) AS r FROM t) WHERE r <= 3",
        "SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY p, s ORDER BY v) AS r FROM t) WHERE r < 3",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY p ORDER BY v, id) AS r FROM t) WHERE 1 = r",
        "SELECT * FROM (SELECT id, rank() OVER (ORDER BY x NULLS FIRST) AS r FROM t) WHERE 4 > r AND id > 9",
        // The column of the rank is another one above each projection.
        "SELECT * FROM (SELECT CAST(r AS BIGINT) AS v, id AS p FROM (SELECT rank() OVER (PARTITION BY p ORDER BY v, id) AS r, \
         id, x FROM t)) WHERE v <= 2",
        "SELECT * FROM (SELECT id, rank() OVER w AS a, row_number() OVER w AS b, dense_rank() OVER w AS c FROM t \
         WINDOW w AS (PARTITION BY s ORDER BY v, id)) WHERE c <= 4 AND b > 1",
    ];
    let kept = [
        // Another function counts all rows, or those that follow; another order; a rank from below; no order at all.
        "SELECT * FROM (SELECT id, rank() OVER w AS a, lead(id) OVER w AS b FROM t WINDOW w AS (PARTITION BY s ORDER BY v, id)) \
         WHERE a <= 2",
        "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY s ORDER BY v, id) AS a, count(*) OVER (ORDER BY id) AS b FROM t) \
         WHERE a <= 2 AND b > 0",
        "SELECT * FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM t) WHERE r >= 1990 OR r <= 2",
        "SELECT * FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM t) WHERE id <= 5",
        // Most rows are wanted.
        "SELECT * FROM (SELECT id, rank() OVER (ORDER BY v, id) AS r FROM t) WHERE r <= 1500",
    ];
    let queries = dropped.map(|query| (true, query)).into_iter().chain(kept.map(|query| (false, query)));
    for (is_dropped, query) in queries {
        let shown = physical_plan(&with, query).await;
        // Two windows of other orders are two operators, of which one may be above the other.
        if !query.contains("count(*) OVER") {
            assert_eq!(shown.contains(RANKED), is_dropped, "{query}\n{shown}");
        }
        assert!(!physical_plan(&without, query).await.contains(RANKED));
        assert_eq!(answer(&with, query).await, answer(&without, query).await, "{query}");
    }
}

#[tokio::test]
async fn equal_rows_have_one_number_each() {
    let (with, without) = (ample(true).await, ample(false).await);
    let sql = "SELECT p, s, count(*) FROM (SELECT p, s, row_number() OVER (PARTITION BY p ORDER BY s) AS n FROM t) WHERE n <= 7 GROUP BY p, s";
    assert!(physical_plan(&with, sql).await.contains(RANKED));
    assert_eq!(answer(&with, sql).await, answer(&without, sql).await);
}

#[tokio::test]
async fn whole_partitions_are_hashed() {
    let (with, without) = (ample(true).await, ample(false).await);
    let hashed = [
        "SELECT id, avg(v) OVER (PARTITION BY p) FROM t",
        "SELECT id, count(*) OVER w, count(v) OVER w, sum(v) OVER w, min(s) OVER w, max(x) OVER w, min(x) OVER w FROM t \
         WINDOW w AS (PARTITION BY s, p)",
        "SELECT id, max(v) OVER (PARTITION BY p ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t",
        "SELECT s, sum(v) * 100 / sum(sum(v)) OVER (PARTITION BY s) FROM t GROUP BY s, p",
        "SELECT id, sum(v) OVER (PARTITION BY p) AS a FROM t WHERE id < 0",
        "SELECT id, sum(v) OVER (PARTITION BY p) AS a FROM t ORDER BY a, id LIMIT 5",
        "SELECT id, sum(v) OVER (PARTITION BY p) AS a, rank() OVER (PARTITION BY p ORDER BY v, id) AS r FROM t",
    ];
    let sorted = [
        // A condition, a frame with an end, functions that look at the order, keys of which equal ones may differ.
        "SELECT id, sum(v) FILTER (WHERE v > 9) OVER (PARTITION BY p) FROM t",
        "SELECT id, sum(v) OVER (PARTITION BY p ORDER BY id) FROM t",
        "SELECT id, count(DISTINCT v) OVER (PARTITION BY p) FROM t",
        "SELECT id, sum(v) OVER (PARTITION BY x) FROM t",
        "SELECT id, sum(v) OVER () FROM t",
        // Sorted by the keys anyway.
        "SELECT p, id, sum(v) OVER (PARTITION BY p) FROM t ORDER BY p, id",
    ];
    let queries = hashed.map(|query| (true, query)).into_iter().chain(sorted.map(|query| (false, query)));
    for (is_hashed, query) in queries {
        let shown = physical_plan(&with, query).await;
        assert_eq!(shown.contains(HASHED), is_hashed, "{query}\n{shown}");
        assert!(!physical_plan(&without, query).await.contains(HASHED));
        assert_eq!(answer(&with, query).await, answer(&without, query).await, "{query}");
    }
}

#[tokio::test]
async fn rows_that_memory_does_not_hold_go_to_files() {
    let sql = "SELECT id, s, count(*) OVER (PARTITION BY s) AS n, max(v) OVER (PARTITION BY s) AS m FROM t";
    // An eighth of it is for rows.
    let (small, without) = (context(true, 0, 256 << 10).await, ample(false).await);
    assert!(physical_plan(&small, sql).await.contains(HASHED));
    assert_eq!(answer(&small, sql).await, answer(&without, sql).await);
    assert!(!physical_plan(&context(true, 1, 1 << 30).await, sql).await.contains(HASHED));
}
