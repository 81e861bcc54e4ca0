//! Queries over Flight SQL against the real program: few, since other suites ask many.

use crate::program::{TestServer, fetch, show};
use expect_test::expect;

#[tokio::test]
async fn tables_are_named_after_their_files() {
    let server = TestServer::start(&[]);
    let answer = server
        .query("SELECT o.customer, p.age, sum(o.amount) AS total FROM orders o JOIN people p ON p.name = o.customer GROUP BY 1, 2 ORDER BY 1")
        .await;
    expect![[r#"
        +----------+-----+-------+
        | customer | age | total |
        +----------+-----+-------+
        | ada      | 36  | 40.5  |
        | bob      | 41  | 20.25 |
        +----------+-----+-------+"#]]
    .assert_eq(&answer);
}

#[tokio::test]
async fn mistakes_are_told_with_what_to_do() {
    let server = TestServer::start(&[]);
    let client = server.client().await;
    for (sql, word) in [
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM ordrs", "ordrs"),
        ("SELECT colour FROM orders", "colour"),
        ("DROP TABLE orders", ""),
        ("SELECT * FROM '/etc/passwd'", ""),
        ("COPY orders TO 'stolen.csv'", "storage.exchange_folder"),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", ""),
    ] {
        let answer = show(&client, sql).await;
        assert!(answer.starts_with("error: ") && answer.contains(word), "{sql}: {answer}");
    }
    assert_eq!(fetch(&client, "SELECT 1").await.expect("still serving").len(), 1);
    assert!(!server.path("stolen.csv").exists());
}

// The connection needs a thread of its own, since the test waits for the server without yielding.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_stream_frees_everything() {
    use futures::TryStreamExt;
    let server = TestServer::start(&[]);
    let client = server.client().await;
    let query = client
        .execute("SELECT a.value, b.value AS other FROM generate_series(1, 1000000) AS a(value), generate_series(1, 1000000) AS b(value)")
        .await
        .expect("start");
    let mut batches = query.batches();
    assert!(batches.try_next().await.expect("a batch").is_some());
    drop(batches);
    server.wait_for_metric("bowshot_running_queries", 0.0);
    server.wait_for_metric("bowshot_open_results", 0.0);
    server.wait_for_metric("bowshot_query_memory_bytes", 0.0);
}
