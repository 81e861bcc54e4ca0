//! What DataFusion reads.

use super::*;
use arrow::array::Array;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, StatisticsArgs, StatisticsContext, collect_partitioned,
};
use std::collections::BTreeSet;

/// Segments of very different sizes, 1000 rows.
fn uneven(store: &Arc<TableStore>) -> Arc<Table> {
    table(store, [rows(0..3), rows(3..4), rows(4..700), rows(700..701), rows(701..900), rows(900..1000)])
}

async fn plan(provider: Arc<dyn TableProvider>, sql: &str) -> Arc<dyn ExecutionPlan> {
    let context = session();
    context.register_table("t", provider).unwrap();
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

#[tokio::test]
async fn limits_are_kept() {
    let store = store();
    let table = uneven(&store);
    for limit in [0, 1, 3, 5, 16, 17, 699, 999, 1000, 1001] {
        let expected = limit.min(1000);
        let found = integers(table.provider(), &format!("SELECT id FROM t LIMIT {limit}")).await;
        assert_eq!(found.len(), expected, "limit {limit}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), expected, "limit {limit}");
        let rest = integers(table.provider(), &format!("SELECT id FROM t OFFSET {limit}")).await;
        assert_eq!(rest.len(), 1000 - expected, "offset {limit}");
        let sql = format!("SELECT id FROM t WHERE id >= 500 LIMIT {limit}");
        let found = integers(table.provider(), &sql).await;
        assert_eq!(found.len(), limit.min(500), "limit {limit} after a filter");
        assert!(found.iter().all(|id| *id >= 500));
        let sql = format!("SELECT count(*) FROM (SELECT id FROM t LIMIT {limit})");
        assert_eq!(integers(table.provider(), &sql).await, [expected as i64]);
    }
}

#[tokio::test]
async fn each_partition_stops_at_its_fetch() {
    let store = store();
    let plan = plan(uneven(&store).provider(), "SELECT id FROM t").await;
    for (fetch, expected) in [(Some(0), 0), (Some(20), 80), (None, 1000)] {
        let plan = plan.with_fetch(Some(3)).unwrap().with_fetch(fetch).unwrap();
        let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap();
        assert_eq!(statistics.num_rows.get_value(), Some(&expected));
        let parts = collect_partitioned(plan, session().task_ctx()).await.unwrap();
        assert_eq!(parts.iter().flatten().map(RecordBatch::num_rows).sum::<usize>(), expected);
    }
}

#[tokio::test]
async fn partitions_have_like_numbers_of_rows() {
    let store = store();
    for batches in [vec![rows(0..1000)], (0..100).map(|at| rows(at * 10..at * 10 + 10)).collect()] {
        let plan = plan(table(&store, batches).provider(), "SELECT id FROM t").await;
        assert_eq!(plan.output_partitioning().partition_count(), PARTITIONS);
        let parts = collect_partitioned(plan, session().task_ctx()).await.unwrap();
        let sizes: Vec<usize> =
            parts.iter().map(|part| part.iter().map(RecordBatch::num_rows).sum::<usize>()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes.iter().all(|size| size.abs_diff(250) <= 3 * BATCH_ROWS), "{sizes:?}");
    }
}

#[tokio::test]
async fn few_rows_have_one_partition() {
    let store = store();
    for batches in [vec![], vec![rows(0..BATCH_ROWS as i64)]] {
        let table = table(&store, batches);
        let plan = plan(table.provider(), "SELECT id FROM t").await;
        assert_eq!(plan.output_partitioning().partition_count(), 1);
        assert_eq!(integers(table.provider(), "SELECT id FROM t").await.len() as u64, table.rows());
    }
}

#[tokio::test]
async fn columns_are_not_copied() {
    let store = store();
    let table = table(&store, [rows(0..10)]);
    let stored =
        table.batches().map(Result::unwrap).next().unwrap().column(1).to_data().buffers()[0].as_ptr();
    let plan = plan(table.provider(), "SELECT value FROM t").await;
    let parts = collect_partitioned(plan, session().task_ctx()).await.unwrap();
    assert_eq!(parts[0][0].column(0).to_data().buffers()[0].as_ptr(), stored);
}

#[tokio::test]
async fn statistics_are_exact() {
    let store = store();
    let table = uneven(&store);
    let plan = plan(table.addressed_provider("_address"), "SELECT value, _address FROM t").await;
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap();
    assert_eq!(statistics.num_rows.get_value(), Some(&1000));
    assert_eq!(statistics.num_rows.is_exact(), Some(true));
    let nulls: Vec<_> = statistics.column_statistics.iter().map(|column| column.null_count).collect();
    assert_eq!(nulls.iter().map(|nulls| nulls.is_exact()).collect::<Vec<_>>(), [Some(true), Some(true)]);
    assert_eq!(
        nulls.iter().map(|nulls| nulls.get_value().copied()).collect::<Vec<_>>(),
        [Some(200), Some(0)]
    );
    let of_partitions: usize = (0..PARTITIONS)
        .map(|partition| {
            let args = StatisticsArgs::new().with_partition(Some(partition));
            *StatisticsContext::new().compute(plan.as_ref(), &args).unwrap().num_rows.get_value().unwrap()
        })
        .sum();
    assert_eq!(of_partitions, 1000);
}

#[tokio::test]
async fn counting_needs_no_scan() {
    let store = store();
    let plan = plan(uneven(&store).provider(), "SELECT count(*), count(value) FROM t").await;
    let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
    assert!(!shown.contains("DataSourceExec"), "{shown}");
}

#[tokio::test]
async fn addresses_tell_rows_apart() {
    let store = store();
    let table = uneven(&store);
    let all = addresses(&table, "true").await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 1000);
    for id in [0, 3, 4, 600, 700, 899, 900, 999] {
        assert_eq!(addresses(&table, &format!("id = {id}")).await, [address_of(&table, id).unwrap()]);
    }
    let gone = addresses(&table, "id % 7 = 3").await;
    let (left, count) = table.delete(&store, &gone).unwrap();
    let expected: Vec<i64> = (0..1000).filter(|id| id % 7 != 3).collect();
    assert_eq!((ids(&left), count as usize), (expected, gone.len()));
}

#[tokio::test]
async fn addresses_come_in_any_projection() {
    let store = store();
    let table = uneven(&store);
    let provider = || table.addressed_provider("_address");
    let fields: Vec<String> = provider().schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(fields, ["id", "value", "_address"]);
    assert_eq!(integers(provider(), "SELECT count(*) FROM t").await, [1000]);
    assert_eq!(integers(provider(), "SELECT count(_address) FROM t").await, [1000]);
    assert_eq!(integers(provider(), "SELECT sum(id) FROM t").await, [499_500]);
    let sql = "SELECT arrow_cast(_address, 'Int64'), id FROM t WHERE id > 990 ORDER BY id DESC LIMIT 1";
    assert_eq!(integers(provider(), sql).await, [address_of(&table, 999).unwrap() as i64]);
    let answer = query(provider(), "SELECT * FROM t WHERE value = 9010").await;
    assert_eq!(answer.column(2).as_primitive::<UInt64Type>().value(0), address_of(&table, 901).unwrap());
    let limited = query(provider(), "SELECT _address FROM t LIMIT 20").await;
    assert_eq!((limited.num_rows(), limited.column(0).null_count()), (20, 0));
}
