//! Answers are the same wherever rows are grouped, and the place follows the statistics.

use super::cost::is_below_join;
use super::{Level, in_steps};
use crate::common_subplans::SharedWork;
use crate::join_order::{SELECTION, SessionJoinOrder};
use crate::node_rule::{Change, Replacement, node_rule};
use crate::same_names;
use crate::test_sessions::{answer, physical_plan, register_file, session};
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::config::ConfigOptions;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

fn possible(levels: &[Level]) -> impl DoubleEndedIterator<Item = usize> + '_ {
    (0..levels.len()).filter(move |at| is_below_join(levels, *at) && levels[*at].may_be_grouped())
}

fn at_highest(node: &Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Replacement {
    in_steps(node, &|_: &AggregateExec, levels: &[Level]| possible(levels).next())
}

fn at_lowest(node: &Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Replacement {
    in_steps(node, &|_: &AggregateExec, levels: &[Level]| possible(levels).next_back())
}

/// DataFusion, with rows grouped at some level wherever that is possible.
fn context(change: Option<Change>) -> SessionContext {
    let mut rules = same_names::physical();
    if let Some(change) = change {
        let settled = rules.iter().position(|rule| rule.name() == SELECTION).expect("a rule for sides");
        rules.insert(settled + 1, node_rule("Forced", change));
    }
    let config = SessionConfig::new().with_target_partitions(2).with_batch_size(7);
    let context = session(config, rules);
    for (name, rows) in [("sales", 200), ("kinds", 12), ("shops", 9), ("nothing", 0)] {
        let halves = vec![vec![table(0, rows / 2)], vec![table(rows / 2, rows)]];
        let table = MemTable::try_new(halves[0][0].schema(), halves).expect("a table");
        context.register_table(name, Arc::new(table)).expect("a new name");
    }
    context
}

/// Rows with keys that repeat, are NULL, or have no partner. Where the key has none, `v` is 0.
fn table(from: i64, to: i64) -> RecordBatch {
    let numbers = |of: &dyn Fn(i64) -> Option<i64>| Int64Array::from_iter((from..to).map(of));
    let prices = (from..to).map(|n| (n % 4 > 0).then_some(i128::from(n) * 7));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(numbers(&|n| (n % 5 > 0).then_some(n % 11)))),
        ("j", Arc::new(numbers(&|n| (n % 6 > 0).then_some(n % 4)))),
        ("v", Arc::new(numbers(&|n| if n % 11 > 8 { Some(0) } else { (n % 7 > 0).then_some(n) }))),
        (
            "price",
            Arc::new(Decimal128Array::from_iter(prices).with_precision_and_scale(9, 2).expect("a type")),
        ),
        ("x", Arc::new(Float64Array::from_iter((from..to).map(|n| (n % 9 > 0).then_some((n % 13) as f64))))),
        (
            "s",
            Arc::new(StringArray::from_iter((from..to).map(|n| (n % 3 > 0).then(|| format!("s{}", n % 4))))),
        ),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

async fn is_eager(context: &SessionContext, sql: &str) -> bool {
    physical_plan(context, sql).await.contains("PartialReduce")
}

const FUNCTIONS: &str = "count(*), count(a.v), sum(a.v), sum(a.price), avg(a.price), avg(a.x), min(a.s), max(a.v), \
    round(stddev(a.v), 6), sum(a.v) FILTER (WHERE a.x > 3), bool_or(a.v > 100), sum(CASE WHEN a.j = 1 THEN a.price END)";

#[tokio::test]
async fn answers_do_not_depend_on_where_rows_are_grouped() {
    let (plain, forced) = (context(None), [context(Some(at_highest)), context(Some(at_lowest))]);
    let with_functions = |rest: &str| rest.replace('#', FUNCTIONS);
    for (eager, sql) in [
        (true, with_functions("SELECT b.s, # FROM sales a JOIN kinds b ON a.k = b.k GROUP BY b.s")),
        (true, with_functions("SELECT b.s, a.j, # FROM sales a JOIN kinds b ON a.k = b.k GROUP BY a.j, b.s")),
        (true, with_functions("SELECT b.s, # FROM sales a LEFT JOIN kinds b ON a.k = b.k AND b.v > 3 GROUP BY b.s")),
        (true, with_functions("SELECT b.s, # FROM kinds b RIGHT JOIN sales a ON a.k = b.k GROUP BY b.s")),
        (true, with_functions("SELECT b.s, # FROM sales a JOIN kinds b ON a.k = b.k AND a.j < b.v GROUP BY b.s")),
        (true, with_functions("SELECT b.s, # FROM nothing a JOIN kinds b ON a.k = b.k GROUP BY b.s")),
        (true, with_functions("SELECT b.s, # FROM sales a JOIN nothing b ON a.k = b.k GROUP BY b.s")),
        (
            true,
            with_functions(
                "SELECT b.s, c.s, # FROM sales a JOIN kinds b ON a.k = b.k JOIN shops c ON a.j = c.j GROUP BY b.s, c.s",
            ),
        ),
        (
            true,
            with_functions(
                "SELECT upper(b.s) AS u, b.j + a.j AS t, # FROM sales a JOIN kinds b ON a.k = b.k + 1 \
                 LEFT JOIN shops c ON c.k = b.k GROUP BY upper(b.s), b.j + a.j HAVING count(*) > 2",
            ),
        ),
        (true, "SELECT b.s, count(*) FROM sales a JOIN kinds b ON a.k = b.k GROUP BY b.s".to_owned()),
        (true, "SELECT a.j, count(*) FROM kinds a JOIN kinds b USING (k) JOIN kinds c USING (k) GROUP BY a.j".to_owned()),
        (true, "SELECT max(a.v) AS m FROM sales a JOIN kinds b ON a.k = b.k GROUP BY b.s ORDER BY m DESC NULLS LAST LIMIT 2".to_owned()),
        // Functions that depend on the order of rows or on each of them, that read both sides or rows that may be missing.
        (false, "SELECT b.s, count(DISTINCT a.v) FROM sales a JOIN kinds b ON a.k = b.k GROUP BY b.s".to_owned()),
        (false, "SELECT b.s, sum(a.v + b.v) FROM sales a JOIN kinds b ON a.k = b.k GROUP BY b.s".to_owned()),
        (false, "SELECT b.s, sum(a.v) FROM kinds b LEFT JOIN sales a ON a.k = b.k GROUP BY b.s".to_owned()),
        (false, "SELECT b.s, count(*), sum(a.v), sum(b.v) FROM sales a FULL JOIN kinds b ON a.k = b.k GROUP BY b.s".to_owned()),
        // A number of both signs of zero among what is needed above.
        (false, "SELECT a.x, sum(a.v) FROM sales a JOIN kinds b ON a.k = b.k GROUP BY a.x".to_owned()),
        // Fails for rows that the join takes away.
        (false, "SELECT b.s, sum(10 / a.v) FROM sales a JOIN kinds b ON a.k = b.k WHERE b.k < 9 GROUP BY b.s".to_owned()),
    ] {
        let expected = answer(&plain, &sql).await;
        for context in &forced {
            assert_eq!(is_eager(context, &sql).await, eager, "{sql}");
            assert_eq!(answer(context, &sql).await, expected, "{sql}");
        }
    }
}

/// Tables in Parquet files, which have statistics: sales of few customers, and of as many tickets as there are sales.
async fn with_files(folder: &std::path::Path, wanted: bool) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_option_extension(SessionJoinOrder::default())
        .with_option_extension(SharedWork { eager_aggregation: wanted, ..SharedWork::default() });
    let context = session(config, crate::physical(false));
    for (name, rows, of) in
        [("sales", 60_000_i64, 1_000), ("customers", 1_000, 1_000), ("tickets", 60_000, 60_000)]
    {
        let names = (0..rows).map(|n| format!("name {}", n % 50));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("customer", Arc::new(Int64Array::from_iter_values((0..rows).map(|n| n % of)))),
            ("price", Arc::new(Int64Array::from_iter_values((0..rows).map(|n| n % 100)))),
            ("name", Arc::new(StringArray::from_iter_values(names))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        register_file(&context, folder, name, batch).await;
    }
    context
}

#[tokio::test]
async fn rows_are_grouped_first_where_that_leaves_far_fewer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (with, without) = (with_files(folder.path(), true).await, with_files(folder.path(), false).await);
    let fewer = [
        "SELECT c.name, sum(s.price) FROM sales s JOIN customers c ON s.customer = c.id GROUP BY c.name",
        "SELECT c.name, c.price, sum(s.price) FROM sales s JOIN customers c ON s.customer = c.id \
         GROUP BY ROLLUP (c.name, c.price)",
    ];
    let others = [
        // Each row is a group of its own.
        "SELECT t.name, sum(s.price) FROM sales s JOIN tickets t ON s.id = t.id GROUP BY t.name",
        // Few rows.
        "SELECT c.name, sum(d.price) FROM customers d JOIN customers c ON d.id = c.id GROUP BY c.name",
    ];
    for (sql, expected) in fewer.map(|sql| (sql, true)).into_iter().chain(others.map(|sql| (sql, false))) {
        let shown = physical_plan(&with, sql).await;
        let below_join =
            shown.split("HashJoinExec").nth(1).is_some_and(|below| below.contains("mode=Partial,"));
        assert_eq!(below_join, expected, "{shown}");
        assert_eq!(answer(&with, sql).await, answer(&without, sql).await, "{sql}");
    }
}
